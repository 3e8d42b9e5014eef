"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_whole(file: Path) -> Iterator[BinaryIO]:
    """A file to write to, under a temporary name, which is moved into place at the end; folders are made as needed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as stream:
            yield stream
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)


def write_atomically(file: Path, content: str | bytes) -> None:
    """Write a file under a temporary name and move it into place; folders are made as needed."""
    with written_whole(file) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
