"""Ctrl-C in the first seconds of the command ``simtree``, while libraries are imported: one line, not a traceback.

`simtree/__init__.py` imports this module before all others. In any other process than that of the command it does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130  # the exit code of a command that was stopped by Ctrl-C
NAMES = ("simtree", "simtree.exe", "simtree-script.py")


def is_command() -> bool:
    """Return whether this process is the command: ``simtree`` or ``python -m simtree``."""
    starts_module = any(pair == ("-m", "simtree") for pair in zip(sys.orig_argv, sys.orig_argv[1:], strict=False))
    return starts_module or (bool(sys.argv) and os.path.basename(sys.argv[0]) in NAMES)


def take_over() -> None:
    """Raise KeyboardInterrupt at Ctrl-C from now on: whoever calls this catches it."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    # An exception could end up in any of the modules that are being imported, some of which catch all of them.
    os.write(2, b"Interrupted. Nothing was written.\n")
    os._exit(INTERRUPTED)


# Whoever ignores the signal, as nohup does, goes on ignoring it.
if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)
