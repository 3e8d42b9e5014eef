"""Where a gallery is: a file, or a schema of a PostgreSQL database. The password of an address is never shown."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, quote, unquote

SCHEMES = ("postgresql", "postgres")
#: Schema of a gallery whose address names none.
SCHEMA = "simtree"
FORM = "write it as postgresql://user@host:port/database?schema=people"


@dataclass(frozen=True)
class PostgresAddress:
    """The address of a gallery in PostgreSQL.

    Parameters
    ----------
    parameters : dict
        How to connect, by the names of libpq; may have a password, so that it is not part of the representation.
    schema : str
        The schema whose tables are the gallery.

    Examples
    --------
    >>> str(PostgresAddress.parse("postgresql://ann:secret@db.example:5433/faces?schema=staff&sslmode=require"))
    'postgresql://ann@db.example:5433/faces?schema=staff'
    """

    parameters: Mapping[str, str] = field(repr=False)
    schema: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the parts of an address; messages about it leave out what may be a password."""
        scheme, _, rest = text.partition("://")
        rest, _, query = rest.partition("?")
        # The last @: a password may have one that is not escaped.
        authority, _, database = rest.rpartition("/") if "@" in rest.rpartition("/")[0] else rest.partition("/")
        login, _, hosts = authority.rpartition("@")
        user, _, password = login.partition(":")
        try:
            given = dict(parse_qsl(query, strict_parsing=True)) if query else {}
            names, ports = _hosts(hosts)
        except ValueError:
            raise ValueError(f"the address {scheme}://... cannot be read; {FORM}.") from None
        schema = given.pop("schema", SCHEMA)
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) or schema.startswith("pg_"):
            raise ValueError(
                f"schema={schema!r} of the address is not usable; give at most 63 lower-case letters, digits and underscores, "
                "not beginning with a digit or pg_."
            )
        named = {
            "user": unquote(user),
            "password": unquote(password),
            "host": names,
            "port": ports,
            "dbname": unquote(database),
        }
        return cls({name: value for name, value in named.items() if value} | given, schema)

    def __str__(self) -> str:
        user, hosts, ports, database = (self.parameters.get(name, "") for name in ("user", "host", "port", "dbname"))
        places = itertools.zip_longest(hosts.split(","), ports.split(","), fillvalue="")
        shown = ",".join(_quoted(host) + (f":{port}" if port else "") for host, port in places)
        login = f"{quote(user, safe='')}@" if user else ""
        return f"postgresql://{login}{shown}/{quote(database, safe='')}?schema={self.schema}"

    @property
    def secrets(self) -> list[str]:
        """Values that must not be shown."""
        return [value for name, value in self.parameters.items() if "password" in name and value]


def _hosts(text: str) -> tuple[str, str]:
    """Return the names and the ports of one or more hosts, as libpq separates them: with commas."""
    names, ports = [], []
    for place in text.split(","):
        found = re.fullmatch(r"(\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*)(?::(\d*))?", place)
        if found is None:
            raise ValueError(place)
        names.append(unquote(found[1]).strip("[]"))
        ports.append(found[2] or "")
    return ",".join(names), ",".join(ports) if any(ports) else ""


def _quoted(host: str) -> str:
    return f"[{host}]" if ":" in host else quote(host, safe="")


Address = Path | PostgresAddress


def parse_address(path: str | os.PathLike[str]) -> Address:
    """Return where a gallery is.

    Parameters
    ----------
    path : str or path-like
        Name of a file, or an address that begins with ``postgresql://``.

    Returns
    -------
    Path or PostgresAddress
        The file or the parts of the address.

    Examples
    --------
    >>> parse_address("postgresql://localhost/people")
    PostgresAddress(schema='simtree')
    """
    text = os.fspath(path)
    if text.startswith(tuple(f"{scheme}:/" for scheme in SCHEMES)):
        if "://" not in text:
            raise ValueError("the address was given as a path, which turns // into /; give it as a string.")
        return PostgresAddress.parse(text)
    return Path(path)


def shown(path: str | os.PathLike[str]) -> str:
    """Return the name of a gallery for messages, without a password.

    Examples
    --------
    >>> shown("postgres://ann:secret@db/faces"), shown("people.gallery")
    ('postgresql://ann@db/faces?schema=simtree', 'people.gallery')
    """
    return str(parse_address(path))
