"""The API reference lists every public name of every public package, and nothing else."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import re
from pathlib import Path

import pytest

import simtree

PAGES = sorted((Path(__file__).parents[2] / "docs" / "api").glob("*.rst"))
MODULES = [
    "simtree",
    *(f"simtree.{path.stem}" for path in sorted(Path(simtree.__file__).parent.iterdir()) if (path / "__init__.py").is_file()),
    "simtree.datasets",
]
# What users import nothing from: commands, the paper's experiments, and the inside of `fit`.
NO_API = {"simtree.cli", "simtree.experiments", "simtree.growing"}


def public_names(module):
    """Names that a module exports: its ``__all__``, or the classes and functions that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    defined = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
    return [name for name in defined if not name.startswith("_")]


def listed_names():
    """Full names of all entries of the pages: of tables (autosummary) and of constants (py:data)."""
    names = []
    for page in PAGES:
        module, in_table = "", False
        for line in page.read_text().splitlines():
            if found := re.match(r"\.\. (?:module|currentmodule):: (\S+)", line):
                module = found[1]
            elif found := re.match(r"\.\. py:data:: (\S+)", line):
                names.append(found[1])
            elif line.strip() and not line.startswith("   "):
                in_table = line.startswith(".. autosummary::")
            elif in_table and (found := re.fullmatch(r"   (\w+)", line)):
                names.append(f"{module}.{found[1]}")
    return names


LISTED = listed_names()


def resolve(name):
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


@pytest.mark.parametrize("name", [name for name in MODULES if not name.split(".")[-1].startswith("_") and name not in NO_API])
def test_every_public_name_is_listed(name):
    """Under its own path, or as the same class or function under a shorter one."""
    module = importlib.import_module(name)
    objects = [resolve(entry) for entry in LISTED]
    for public in public_names(module):
        value = getattr(module, public)
        known = f"{name}.{public}" in LISTED or (callable(value) and any(value is other for other in objects))
        assert known, f"{name}.{public} is public: list it on a page of docs/api"


def test_every_listed_name_is_public_and_listed_once():
    assert len(LISTED) == len(set(LISTED)) > 50
    for entry in LISTED:
        module, _, last = entry.rpartition(".")
        assert last in public_names(importlib.import_module(module)), f"{entry} is listed but not public"
    functions = [id(value) for value in map(resolve, LISTED) if callable(value)]
    assert len(functions) == len(set(functions)), "a class or function is listed under two paths"


def test_every_page_is_in_the_index():
    index = (PAGES[0].parent / "index.rst").read_text()
    for page in PAGES:
        assert page.stem == "index" or re.search(rf"^   {page.stem}$", index, re.MULTILINE), page.name


def undefined_names(code):
    """Names that code uses but neither assigns nor imports."""
    nodes = list(ast.walk(ast.parse(code)))
    known = set(dir(builtins))
    known |= {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    known |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    known |= {name.asname or name.name.split(".")[0] for node in imports for name in node.names}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - known


@pytest.mark.parametrize("name", LISTED)
def test_an_example_can_be_pasted(name):
    """It imports what it uses: doctest would find the names of the module, but a reader does not."""
    examples = doctest.DocTestParser().get_examples(resolve(name).__doc__ or "")
    assert undefined_names("".join(example.source for example in examples)) == set()
