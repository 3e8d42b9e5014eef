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
    """Open a file for writing in several steps; if an error occurs, the existing file is left unchanged."""
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder; give the name of a file.")
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as stream:
            yield stream
        os.replace(unfinished, file)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise disk_full(file, error) from error
    finally:
        unfinished.unlink(missing_ok=True)
