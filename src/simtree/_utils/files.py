"""Atomic writing of files: a file is either written completely or left unchanged."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def disk_full(file: Path | str, error: OSError) -> OSError:
    """Return an error that says which file found no space, and what to do."""
    said = OSError(f"{file} cannot be written: {error.strerror or 'no space left'}; free some space, or write to another disk.")
    said.errno = error.errno
    return said


def write_atomically(file: Path, content: str | bytes) -> None:
    """Write a file under a temporary name and move it into place, creating its folder if needed."""
    with opened_atomically(file) as unfinished:
        unfinished.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def opened_atomically(file: Path) -> Iterator[BinaryIO]:
    """Open a file for writing in several steps; if an error occurs, the existing file is left unchanged.

    A symbolic link stays one, and its target is written. Pipes and devices are written directly: a file moved into their place
    would destroy them.
    """
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder; give the name of a file.")
    target = file.resolve() if file.is_symlink() else file
    direct = is_special(file)
    unfinished = file if direct else target.with_name(f".{target.name}.{os.getpid()}")
    if not direct:
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with unfinished.open("wb") as stream:
            yield stream
        if not direct:
            os.replace(unfinished, target)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise disk_full(file, error) from error
    finally:
        if not direct:
            unfinished.unlink(missing_ok=True)


def is_special(file: Path) -> bool:
    """Return whether this is a pipe, a device or a socket: there is something, but neither a regular file nor a folder."""
    return file.exists() and not file.is_file() and not file.is_dir()
