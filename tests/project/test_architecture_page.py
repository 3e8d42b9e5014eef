"""docs/architecture.md shows the imports there are, and names modules and functions that exist."""

from __future__ import annotations

import importlib
import re

import pytest

import make_architecture

PAGE = make_architecture.PAGE.read_text(encoding="utf-8")
PACKAGES = [package for row in make_architecture.import_rows().values() for package in row]
NAMES = sorted(
    {
        name
        for name in re.findall(r"`([A-Za-z_][\w.]*\.\w+)(?:\([^`]*\))?`", PAGE)
        if name.removeprefix("simtree.").split(".")[0] in PACKAGES
    }
)


def find(name):
    """Return the module, class, function or method that a dotted name below simtree stands for."""
    parts = name.removeprefix("simtree.").split(".")
    found = importlib.import_module(f"simtree.{parts[0]}")
    for done, part in enumerate(parts[1:], start=1):
        if not hasattr(found, part):
            importlib.import_module(".".join(["simtree", *parts[: done + 1]]))
        found = getattr(found, part)
    return found


@pytest.mark.slow
def test_picture_and_table_show_the_imports():
    assert make_architecture.make_page() == PAGE, "run python docs/make_architecture.py"
    assert make_architecture.make_picture() == make_architecture.PICTURE.read_text(encoding="utf-8")


def test_page_names_many_functions():
    assert len(NAMES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_named_function_exists(name):
    assert find(name) is not None


def test_a_name_that_does_not_exist_is_found():
    with pytest.raises((AttributeError, ImportError)):
        find("pairs._sampling.PairSampler.sampled")


def test_arrows_that_follow_from_others_are_left_out():
    imports = {"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": {"a", "c"}}
    assert make_architecture.essential_edges(imports) == [("b", "a"), ("c", "b"), ("d", "c")]


@pytest.mark.slow
def test_every_import_is_in_the_picture_or_follows_from_arrows():
    imports = make_architecture.read_imports()
    drawn = {package: set() for package in imports}
    for package, other in make_architecture.essential_edges(imports):
        drawn[package].add(other)

    def reached(package):
        return drawn[package] | {name for other in drawn[package] for name in reached(other)}

    assert all(others <= reached(package) for package, others in imports.items())
