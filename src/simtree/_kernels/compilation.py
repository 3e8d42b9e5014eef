"""How kernels are compiled: once, cached on disk, without the GIL, and announced on a terminal."""

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

# error_model="numpy": a division by zero gives inf or nan as in NumPy, so loops with a division vectorise.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def _fingerprint() -> str:
    """A name for the present state of all kernels.

    Numba notices when the file of a kernel changes, but not when a kernel that it calls does, and it stumbles over what a
    former version of the package left. So each state of the sources gets a cache folder of its own.
    """
    # Bounds checking is a setting that Numba's own cache does not tell apart.
    digest = hashlib.sha256(f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> str | None:
    """The first writable folder of: NUMBA_CACHE_DIR, the package's own, the user's cache. None if there is none."""
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
    """Compile ``function`` at its first call and keep the machine code in `CACHE_FOLDER`.

    Without such a folder the kernel is compiled anew in each process, which is slow but works.
    """
    if CACHE_FOLDER is None:
        return numba.njit(**_OPTIONS, **options)(function)
    # Numba reads the setting when a function is decorated; other libraries must not notice.
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = CACHE_FOLDER
    try:
        return numba.njit(cache=True, **_OPTIONS, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def any_order_kernel(function: Callable[..., Any]) -> Any:
    """A kernel whose sums may be taken in any order, several at a time: fast, but not the same to the last bit everywhere."""
    return kernel(function, fastmath={"reassoc", "contract", "nsz"})


class _Announcer(event.Listener):
    """Writes one line when the first kernel of a process is compiled (a cached kernel raises no event)."""

    def __init__(self) -> None:
        self.announced = False

    def on_start(self, event: Any) -> None:
        """A compilation begins."""
        if not self.announced:
            self.announced = True
            where = "once on this machine" if CACHE_FOLDER else "no folder to keep them in: set NUMBA_CACHE_DIR"
            print(f"simtree: compiling kernels, under 30 s ({where}) ...", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """A compilation ended: nothing to say."""


_ANNOUNCER = _Announcer()


@contextmanager
def announced_compilation() -> Iterator[None]:
    """Inside this context a first compilation is announced, if a person is watching."""
    if not sys.stderr.isatty():
        yield
        return
    with event.install_listener("numba:compile", _ANNOUNCER):
        yield
