"""How kernels are compiled: once, cached on disk, without the GIL, and announced to whoever waits."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from numba.core import event

# error_model="numpy": a division by zero gives inf or NaN as in NumPy, so that loops with a division vectorise.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Kernels that are needed together, by module: once one of them is compiled, most others will be.
GROUPS: dict[str, tuple[str, ...]] = {
    "for growing and scoring trees": (
        "binning",
        "cart",
        "coordinates",
        "pairs",
        "route",
        "search",
        "segments",
    ),
    "for tables with missing values or categories": ("categories", "missing", "missing_regions", "missing_search"),
    "for boosting": ("boosting", "boosting_search", "class_boosting", "code_walk"),
    "for 1:N search": ("nearest",),
}
OTHERS = "for splitters and representations"
SECONDS_BETWEEN_LINES = 5.0
# Full names of all kernels that are defined so far.
_KERNELS: set[str] = set()


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
    _KERNELS.add(_full_name(function))
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
    """Says on stderr which kernels are being compiled, and how many are still to come (a cached kernel raises no event).

    Scripts and services get one line for each group of kernels, so that the wait is explained and logs stay short.
    """

    def __init__(self) -> None:
        self.in_plain_lines = False
        self.announced: set[str] = set()
        self.depth = 0
        self._reset()

    def _reset(self) -> None:
        self.compiled: list[str] = []
        self.pending: set[str] = set()
        self.groups: list[str] = []
        self.seconds = self.shown = 0.0
        self.open: list[float] = []

    def _is_watched(self) -> bool:
        """Return whether a person waits: at the command, on a terminal, or in a notebook."""
        return self.in_plain_lines or sys.stderr.isatty() or "ipykernel" in sys.modules

    def on_start(self, event: Any) -> None:
        """Announce a kernel that is about to be compiled."""
        self.open.append(time.monotonic())  # a kernel that is called by another one is compiled while that one is
        name = _full_name(event.data["dispatcher"].py_func)
        if name not in _KERNELS:  # a function of Numba itself
            return
        self.pending.add(name)
        group = _group_of(name)
        if group not in self.groups:
            self.pending |= {other for other in _KERNELS if _group_of(other) == group} - _cached()
            self.groups.append(group)
            where = "once per machine" if CACHE_FOLDER else "in each process, as no folder to keep them in can be written"
            if self._is_watched() or group not in self.announced:  # a script is told once
                self._print(f"simtree: compiling kernels {group}, {where} ...", end="\n")
            self.announced.add(group)

    def on_end(self, event: Any) -> None:
        """Tell how far the compilation is."""
        if self.open:
            began = self.open.pop()
            self.seconds += 0.0 if self.open else time.monotonic() - began
        name = _full_name(event.data["dispatcher"].py_func)
        if name not in _KERNELS or name in self.compiled:
            return
        self.compiled.append(name)
        if not self._is_watched():
            return
        on_terminal = sys.stderr.isatty()
        if on_terminal or time.monotonic() - self.shown >= SECONDS_BETWEEN_LINES:
            self._print(f"simtree: {self._progress()}", end="\r" if on_terminal else "\n")

    def leave(self) -> None:
        """Tell what was compiled, when the work that needed it is done."""
        if self.groups and self._is_watched():
            n = len(self.compiled)
            said = f"simtree: compiled {n} kernel{'' if n == 1 else 's'} in {self.seconds:.0f} s"
            # On a terminal this is written over a longer line.
            self._print(said.ljust(len(self._progress()) + 9) if sys.stderr.isatty() else said, "\n")
        self._reset()

    def _progress(self) -> str:
        return f"{len(self.compiled)} of at most {len(self.pending)} kernels compiled"

    def _print(self, text: str, end: str) -> None:
        self.shown = time.monotonic()
        print(text, file=sys.stderr, end=end, flush=True)


def _full_name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _group_of(name: str) -> str:
    module = name.split(".")[-2]
    return next((group for group, modules in GROUPS.items() if module in modules), OTHERS)


def _cached() -> set[str]:
    """Return the kernels of which some machine code is in the cache folder."""
    if CACHE_FOLDER is None:
        return set()
    # Numba's index files are named after the module, the function and its line: cart.grow_cart-76.py311.nbi
    starts = {file.name.rsplit("-", 1)[0] for file in Path(CACHE_FOLDER).rglob("*.nbi")}
    return {name for name in _KERNELS if ".".join(name.split(".")[-2:]) in starts}


_ANNOUNCER = _Announcer()
_LOCK = threading.Lock()


def announce_in_plain_lines() -> None:
    """Tell how far compilations are also where stderr is not a terminal, as the command does."""
    _ANNOUNCER.in_plain_lines = True


@contextmanager
def announced_compilation() -> Iterator[None]:
    """Inside this context compilations are announced on stderr."""
    with _LOCK:  # models may be fitted in several threads
        _ANNOUNCER.depth += 1
        is_first = _ANNOUNCER.depth == 1
    try:
        if is_first:
            with event.install_listener("numba:compile", _ANNOUNCER):
                yield
        else:
            yield
    finally:
        with _LOCK:
            _ANNOUNCER.depth -= 1
            if _ANNOUNCER.depth == 0:
                _ANNOUNCER.leave()
