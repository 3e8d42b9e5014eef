"""Compilation of kernels: without the GIL, cached on disk, and announced on a terminal."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from numba.core import event

# error_model="numpy": a division by zero gives inf or NaN as in NumPy, so that loops with a division vectorise.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def _fingerprint() -> str:
    """Return a hash of the sources of all kernels.

    Numba invalidates a cached kernel when its own file changes, but not when a kernel that it calls changes, and it may fail on
    cache files of an earlier version of the package. So each state of the sources gets its own cache folder.
    """
    # Numba's own cache key does not include bounds checking.
    digest = hashlib.sha256(f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> str | None:
    """Return the first writable folder among NUMBA_CACHE_DIR, the package and the user's cache, or None."""
    candidates = [Path(__file__).parent / "__pycache__"]
    if numba.config.CACHE_DIR:
        candidates.insert(0, Path(numba.config.CACHE_DIR))
    home = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    candidates.append(Path(home))
    name = f"simtree-{_fingerprint()}"
    for candidate in candidates:
        folder = candidate / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
        except OSError:
            continue
    return None


CACHE_FOLDER = _cache_folder()


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Compile ``function`` on its first call and cache the machine code in `CACHE_FOLDER`.

    Without a cache folder, the kernel is compiled in each process, which is slow but works.
    """
    if CACHE_FOLDER is None:
        return numba.njit(**_OPTIONS, **options)(function)
    # Numba reads the setting when a function is decorated; restore it so that other libraries are not affected.
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = CACHE_FOLDER
    try:
        return numba.njit(cache=True, **_OPTIONS, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def fastmath_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel whose sums may be reordered: faster, but the last bits depend on the machine."""
    return kernel(function, fastmath={"reassoc", "contract", "nsz"})


class _Announcer(event.Listener):
    """Listener that prints one line when the first kernel of a process is compiled (cached kernels raise no event)."""

    def __init__(self) -> None:
        self.announced = False

    def on_start(self, event: Any) -> None:
        """Announce the first compilation."""
        if not self.announced:
            self.announced = True
            where = (
                "once on this machine"
                if CACHE_FOLDER
                else "in each process, as no cache folder is writable: set NUMBA_CACHE_DIR"
            )
            print(f"simtree: compiling kernels, less than 30 s ({where}) ...", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Do nothing at the end of a compilation."""


_ANNOUNCER = _Announcer()


@contextmanager
def announced_compilation() -> Iterator[None]:
    """Announce a first compilation inside this context, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with event.install_listener("numba:compile", _ANNOUNCER):
        yield
