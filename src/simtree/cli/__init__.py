"""The command ``simtree``: one module per verb."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say which package it needs."""
    try:
        from simtree._kernels.compilation import announce_in_plain_lines
        from simtree.cli._app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pandas"):
            raise
        sys.exit(f'The simtree command needs {error.name}; install it with: pip install "simtree[cli]"')
    announce_in_plain_lines()
    app()
