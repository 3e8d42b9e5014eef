"""Programs of the repository, called in this process where imports would take longer than all they do, and on a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from typing import NamedTuple

import pytest


class Finished(NamedTuple):
    """What a program left behind."""

    returncode: int
    stdout: str
    stderr: str


def call(main, *arguments, folder=".", **variables):
    """Call the main function of a program in a folder, without SIMTREE_DATA unless it is given."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", [main.__module__, *arguments])
        patch.delenv("SIMTREE_DATA", raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return Finished(code, out.getvalue(), err.getvalue())


def said_on_a_terminal(command, **options):
    """Return what a program writes to standard error on a pseudo-terminal, which holds only some kilobytes at a time."""
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    terminal, other_end = pty.openpty()
    said = b""
    with subprocess.Popen(command, stderr=other_end, **options) as program:
        os.close(other_end)
        with contextlib.suppress(OSError):  # the program has ended
            while part := os.read(terminal, 4096):
                said += part
    os.close(terminal)
    assert program.returncode == 0
    return said.decode()
