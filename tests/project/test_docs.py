"""Pages that show source code show the real one, links lead somewhere, and no page names a command that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_included_source_is_the_real_one(page):
    included = re.findall(r"<!-- begin (\S+) -->\n```python\n(.*?)```\n<!-- end -->", page.read_text(), re.DOTALL)
    for source, shown in included:
        assert shown == (ROOT / source).read_text(), f"{page.name}: copy {source} again"
    if page.name == "add_a_splitter.md":
        assert included


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z-]+)`", page.read_text())) <= targets


def test_output_of_commands_in_the_readme_is_that_of_the_page_on_the_command_line():
    cli = (ROOT / "docs" / "cli.md").read_text()
    (shown,) = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    *_, command = (line for line in shown.splitlines() if line.startswith("$ "))
    assert shown[shown.index(command) :] in cli, f"copy the output of {command} from docs/cli.md"
