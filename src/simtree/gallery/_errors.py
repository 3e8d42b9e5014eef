"""What can go wrong with a gallery, whatever its store, in one sentence each."""

from __future__ import annotations

import errno
from pathlib import Path

from simtree._utils.files import disk_full


class GalleryError(ValueError):
    """Error raised if something is not a gallery, is damaged, or was written by another version of simtree."""


class NotEnrolledError(ValueError):
    """Error raised if an id is not enrolled."""


class ChangedWhileReadError(GalleryError):
    """Error raised if a file was changed by another user while this one read it without a lock."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was changed by another user while it was being read; try again.")


class DamagedContentError(Exception):
    """Something in a gallery does not have the content that was written."""


def foreign(name: Path | str) -> GalleryError:
    """Return the error that something is not a gallery."""
    return GalleryError(f"{name} is not a gallery of simtree; give another one.")


def damaged(name: Path | str, what: str) -> GalleryError:
    """Return the error that a gallery is damaged."""
    return GalleryError(f"{name} is damaged: {what}; restore a backup of it.")


def locked(name: Path | str, timeout: float) -> TimeoutError:
    """Return the error that another process did not stop writing in time."""
    return TimeoutError(
        f"{name} is locked by another process, and was still so after timeout={timeout:g} seconds; try again, or open it with "
        "a larger timeout."
    )


def full(name: Path | str) -> OSError:
    """Return the error that the disk of a gallery has no space left."""
    return disk_full(str(name), OSError(errno.ENOSPC, "no space left on the disk"))


def check_version(name: Path | str, version: int, present: int, oldest: int = 1) -> None:
    """Raise if a gallery has another schema version than the present one."""
    if version > present:
        raise GalleryError(
            f"{name} was written by a newer simtree (schema version {version}; this one reads up to {present}): upgrade "
            "simtree."
        )
    if version < oldest:
        raise damaged(name, f"its schema version is {version}")
    if version < present:
        raise GalleryError(
            f"{name} was written by an older simtree (schema version {version}; this one reads {present}): upgrade it with "
            "simtree gallery upgrade, or Gallery.upgrade, which makes a backup first."
        )
