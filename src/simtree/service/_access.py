"""Which routes there are and which scope each needs: one table, and what is not in it is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from simtree.service._keys import Key


class Route(NamedTuple):
    """A route for clients with a key; ``scope`` None means any key."""

    method: str
    path: str
    action: str
    scope: str | None

    def matches(self, path: str) -> bool:
        """Return whether a path is one of this route."""
        return re.fullmatch(re.sub(r"\\\{\w+\\\}", ".+", re.escape(self.path)), path, re.DOTALL) is not None


ROUTES = (
    Route("GET", "/v1/gallery", "gallery", None),
    Route("POST", "/v1/verify", "verify", "verify"),
    Route("POST", "/v1/identify", "identify", "identify"),
    Route("POST", "/v1/explain", "explain", "identify"),
    Route("GET", "/v1/subjects", "subjects", "enrol"),
    Route("POST", "/v1/subjects/{id}/samples", "enrol", "enrol"),
    Route("GET", "/v1/subjects/{id}", "subject", "enrol"),
    Route("DELETE", "/v1/subjects/{id}", "remove", "admin"),
    Route("GET", "/v1/audit", "audit", "admin"),
    Route("GET", "/metrics", "metrics", "metrics"),
)
#: Paths that anybody may get: they tell nothing of the gallery.
OPEN = frozenset({"/", "/style.css", "/page.css", "/page.js", "/icon.svg", "/livez", "/readyz", "/openapi.json"})


@dataclass
class Call:
    """A request that is being answered, and what the audit will say of it.

    Parameters
    ----------
    request : str
        Its number.
    key : Key or None
        Who asks.
    action : str
        What is asked for.
    n_samples : int
        Number of samples that it is about.
    model : str
        Fingerprint of the model.
    n_identities : int or None
        Size of the gallery, if it is known.
    subjects : list of str
        Hashes of identities.
    """

    request: str
    key: Key | None = None
    action: str = "none"
    n_samples: int = 0
    model: str = ""
    n_identities: int | None = None
    subjects: list[str] = field(default_factory=list)
