"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(file: Path, content: str | bytes) -> None:
    """Write a file under a temporary name and move it into place; folders are made as needed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
