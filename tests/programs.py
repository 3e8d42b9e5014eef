"""Programs of the repository, called in this process: imports alone take longer than all they do at a tiny size."""

from __future__ import annotations

import contextlib
import io
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
