"""Keys of a service: who may ask for what.

A key is ``id.secret`` with 32 random bytes. Its file holds the SHA-256 of the secret: a slow hash is for passwords that people
choose, and here would let anybody keep the service busy with wrong keys. Keys are found by their id, and secrets are compared
in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from simtree._utils.validation import check_choice

SCOPES = ("verify", "identify", "enrol", "metrics", "admin")
VERSION = 1
SECRET_BYTES = 32
MAX_NOTE_LENGTH = 100
# Longer headers are not looked at.
MAX_TOKEN_LENGTH = 200
# How often a running service looks whether the file has changed, in seconds.
RELOAD_SECONDS = 1.0


class KeyFileError(ValueError):
    """Error raised if a file of keys cannot be used."""


@dataclass(frozen=True)
class Key:
    """A key without its secret.

    Parameters
    ----------
    id : str
        What it is found by, and what the audit says.
    sha256 : str
        Hash of the secret, in hexadecimal digits.
    scopes : tuple of str
        What it allows.
    note : str
        Whose it is, in the words of whoever made it.
    created : str
        When it was made, in UTC.
    """

    id: str
    sha256: str
    scopes: tuple[str, ...]
    note: str
    created: str

    def allows(self, scope: str) -> bool:
        """Return whether the key allows something; ``admin`` allows everything."""
        return scope in self.scopes or "admin" in self.scopes

    @classmethod
    def from_entry(cls, entry: Any) -> Self:
        """Return a key as the file has it; raise if something is wrong with it."""
        made = cls(**{**entry, "scopes": tuple(entry["scopes"])})
        if not all(isinstance(value, str) for value in (made.id, made.sha256, made.note, made.created, *made.scopes)):
            raise TypeError("an entry is not text")
        if len(bytes.fromhex(made.sha256)) != hashlib.sha256().digest_size or not set(made.scopes) <= set(SCOPES):
            raise ValueError("an entry is not a key")
        return made


#: Who calls a service that has no keys.
LOCAL = Key("local", "", ("admin",), "no keys are asked for", "")


def read_keys(path: Path) -> dict[str, Key]:
    """Return the keys in a file by id; raise if others than its owner may read it.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        The keys.
    """
    try:
        with path.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            content = stream.read()
    except FileNotFoundError:
        raise KeyFileError(f"there is no file of keys {path}; make a key with: simtree keys add --keys {path}") from None
    except OSError as error:
        raise KeyFileError(f"the file of keys {path} cannot be read ({error.strerror}).") from error
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise KeyFileError(f"others than the owner may read or write {path}; run: chmod 600 {path}")
    try:
        document = json.loads(content)
        if document["version"] != VERSION:
            raise KeyFileError(
                f"{path} has version {document['version']!r}, and this simtree reads {VERSION}: upgrade simtree."
            )
        keys = [Key.from_entry(entry) for entry in document["keys"]]
    except KeyFileError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise KeyFileError(f"{path} is not a file of keys of simtree, or is damaged; restore it, or make another.") from error
    return {key.id: key for key in keys}


def add_key(path: Path, scopes: Iterable[str], note: str = "") -> tuple[Key, str]:
    """Add a key to a file, which is made if there is none.

    Parameters
    ----------
    path : Path
        The file.
    scopes : iterable of str
        What the key allows.
    note : str, default=""
        Whose it is.

    Returns
    -------
    key : Key
        What the file has of it.
    token : str
        The key itself, ``id.secret``, which is nowhere else.
    """
    allowed = tuple(sorted({check_choice("scope", scope, SCOPES) for scope in scopes}))
    if not allowed:
        raise ValueError(f"a key without a scope allows nothing; give one or more of {', '.join(SCOPES)}.")
    if len(note) > MAX_NOTE_LENGTH or not note.isprintable():
        raise ValueError(f"note={note!r:.60} is not usable; give at most {MAX_NOTE_LENGTH} printable characters.")
    secret = secrets.token_urlsafe(SECRET_BYTES)
    with _changed(path) as keys:
        name = secrets.token_hex(4)
        while name in keys:
            name = secrets.token_hex(4)
        key = Key(name, hash_secret(secret), allowed, note, datetime.now(UTC).isoformat(timespec="seconds"))
        keys[name] = key
    return key, f"{name}.{secret}"


def remove_key(path: Path, id: str) -> Key:
    """Remove a key from a file; a running service refuses it within a second or two.

    Parameters
    ----------
    path : Path
        The file.
    id : str
        The first part of the key.

    Returns
    -------
    Key
        What was removed.
    """
    with _changed(path) as keys:
        if id not in keys:
            known = ", ".join(sorted(keys)) or "none"
            raise ValueError(f"{path} has no key {id!r}; it has {known}.")
        return keys.pop(id)


def hash_secret(secret: str) -> str:
    """Return the hash of a secret that the file holds."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


@contextmanager
def _changed(path: Path) -> Iterator[dict[str, Key]]:
    """Change the keys of a file inside the context: completely, or not at all if an error is raised.

    The new file has a fixed temporary name that must not exist, so that two processes cannot overwrite what the other adds.
    """
    unfinished = path.with_name(f".{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise FileExistsError(f"another process is changing {path}; try again, or remove {unfinished} if none is.") from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            keys = read_keys(path) if path.exists() else {}
            yield keys
            document = {"version": VERSION, "keys": [asdict(key) for key in keys.values()]}
            stream.write((json.dumps(document, indent=1) + "\n").encode())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


class KeyRing:
    """The keys of a running service, which follows its file.

    Parameters
    ----------
    path : Path or None
        The file; None for a service without keys.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._keys: dict[str, Key] = {} if path is None else read_keys(path)
        self._mark = self._look()
        self._checked = time.monotonic()

    @property
    def is_needed(self) -> bool:
        """Whether a key is asked for."""
        return self.path is not None

    def authenticate(self, header: str | None) -> Key | None:
        """Return the key in an ``Authorization`` header; None if there is none, or a wrong one.

        Raise `KeyFileError` if the file has become unusable: then no key is accepted.
        """
        if self.path is None:
            return LOCAL
        self._follow()
        kind, _, token = (header or "").partition(" ")
        if kind.lower() != "bearer" or len(token) > MAX_TOKEN_LENGTH:
            return None
        name, _, secret = token.strip().partition(".")
        key = self._keys.get(name)
        # Also compared if there is no such key, so that the time does not tell.
        expected = hash_secret("") if key is None else key.sha256
        is_right = hmac.compare_digest(hash_secret(secret), expected)
        return key if is_right and key is not None else None

    def _follow(self) -> None:
        """Read the file again if it has changed."""
        now = time.monotonic()
        if self.path is None or now - self._checked < RELOAD_SECONDS:
            return
        mark = self._look()
        if mark != self._mark or mark is None:
            self._keys = {}
            self._keys, self._mark = read_keys(self.path), mark
        self._checked = now

    def _look(self) -> tuple[int, int, int] | None:
        if self.path is None:
            return None
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
