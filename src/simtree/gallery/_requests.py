"""Enrolments that were asked for under a name, so that one that is repeated, such as after a lost answer, is done once.

What is kept of an enrolment, as a setting, is a hash of its name, what it did, and a hash of what was enrolled under the keys
of its identities. These keys are deleted with the identities: from then on the hash tells nobody anything, and the name stays
taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from simtree.gallery._answers import Enrolment
from simtree.gallery._audit import Subject
from simtree.gallery._store import REQUEST, Connection, get_setting, put_setting

MAX_LENGTH = 1000


def check_request(request: Any) -> str:
    """Return the name of an enrolment if it is one."""
    if not isinstance(request, str) or not 0 < len(request) <= MAX_LENGTH:
        raise ValueError(f"request={request!r:.60} is not usable; give a string of 1 to {MAX_LENGTH:,} characters.")
    return request


def content_digest(subjects: Iterable[Subject], parts: Iterable[bytes]) -> str:
    """Return a hash of what is enrolled, under the keys of all identities that it is about."""
    key = hashlib.blake2b(b"".join(subject.key for subject in sorted(subjects)), digest_size=32).digest()
    digest = hashlib.blake2b(key=key, digest_size=32)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def find_request(connection: Connection, request: str, content: str) -> Enrolment | None:
    """Return what an enrolment of this name did, if there was one; raise if it was another one."""
    known = get_setting(connection, _setting(request))
    if known is None:
        return None
    if known["content"] != content:
        raise ValueError(
            f"request={request!r:.60} was already used for another enrolment, or for one whose identities were removed since; "
            "give each enrolment a name of its own."
        )
    return Enrolment(**known["done"], is_repeated=True)


def add_request(connection: Connection, request: str, content: str, done: Enrolment) -> None:
    """Note that an enrolment was done, in its transaction."""
    counts = {name: getattr(done, name) for name in ("n_samples", "n_identities", "n_new", "n_dropped")}
    put_setting(connection, _setting(request), {"content": content, "done": counts})


def _setting(request: str) -> str:
    return REQUEST + hashlib.sha256(request.encode(errors="surrogatepass")).hexdigest()
