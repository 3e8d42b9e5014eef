"""The demo runs, and the README shows what it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_readme_shows_what_the_demo_prints(tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--out", str(tmp_path / "demo")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    table, pictures = printed.split("\n\nPictures: ")
    assert f"```text\n{table}\n```" in (ROOT / "README.md").read_text()
    for picture in pictures.strip().split(", "):
        assert Path(picture).read_bytes().startswith(b"\x89PNG")
