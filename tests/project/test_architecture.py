"""Which module may import which, where numba and matplotlib may appear, and how long a module may be."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import simtree

ROOT = Path(simtree.__file__).parent
# A package imports only from rows above its own. Names of packages that are planned have their place already.
ROWS = [
    {"_kernels", "_utils"},
    {"metrics", "pairs", "io"},
    {"datasets", "trees", "representation"},
    {"splitters"},
    {"growing", "evaluation"},
    {"models"},
    {"gallery", "plots"},
    {"dask", "report"},
    {"experiments", "service"},
    {"cli"},
]
# Packages whose modules are plug-ins: they know these shared modules of their package, and none of each other.
PLUG_INS = {
    "splitters": {"_base", "_cart"},
    "representation": {
        *(
            "_applied",
            "_base",
            "_class_trees",
            "_clusters",
            "_columns",
            "_folded",
            "_kernel_choice",
            "_landmarks",
            "_perceptron",
        ),
    },
}
LEVEL = {name: level for level, row in enumerate(ROWS) for name in row}
MAX_ROWS = 10
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@cache
def parsed(path):
    return ast.parse(path.read_text())


def imports(path):
    """Dotted names that a file imports, anywhere in it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            if node.module == "simtree":
                yield from (f"simtree.{alias.name}" for alias in node.names)
            else:
                yield node.module


def test_there_are_few_rows():
    assert len(ROWS) <= MAX_ROWS
    assert set(LEVEL) == {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES} - {"__main__"}


def check_imports(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts == ("__main__",):
        parts = ("cli", "__main__")  # ``python -m simtree`` is the command
    for name in imports(path):
        package, _, rest = name.partition(".")
        if package in ("numba", "llvmlite"):
            assert parts[0] == "_kernels", f"{path}: {name}"
        if package != "simtree":
            continue
        other = rest.split(".")
        if other[0] != parts[0]:
            assert LEVEL[other[0]] < LEVEL[parts[0]], f"{path}: {name} is not in a row above"
        elif other[0] in PLUG_INS and parts[1] != "__init__":
            assert set(other[1:]) <= PLUG_INS[other[0]], f"{path}: a plug-in knows shared modules only, not {name}"


def test_imports_come_from_above():
    for path in MODULES:
        check_imports(path)


def test_a_module_is_private_unless_it_is_documented():
    """Public is what a package exports; `simtree.datasets` is the one public module that is not a package."""
    for path in MODULES:
        package, *inner = path.relative_to(ROOT).with_suffix("").parts
        assert package.startswith("_") or not inner or inner[-1].startswith("_"), f"{path} looks public"
        assert inner or package in ("datasets", "__main__"), f"{path} belongs into a package"


def test_tuples_that_kernels_take_are_defined_beside_them():
    """Compiled code is cached with the names of its argument types: the cache must notice when one changes."""
    from simtree._kernels import boosting, boosting_search, cart, missing, missing_search, nearest, posterior, route, search

    of_search = (nearest.FirstTests, nearest.Grid, nearest.Levels, nearest.Rows, nearest.Trees)
    of_boosting = (boosting_search.Rule, boosting.Growing, boosting.Found)
    of_trees = (cart.RegionRows, search.Rule, search.Best, route.Nodes, missing.StateNodes, missing_search.Sides)
    for tuples in (posterior.ClassTrees, *of_trees, *of_search, *of_boosting):
        assert tuples.__module__.startswith("simtree._kernels.")


def test_matplotlib_is_imported_inside_functions_only():
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not any(name.split(".")[0] == "matplotlib" for name in names), path


def test_a_module_has_at_most_600_lines_and_says_what_it_is():
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 600, f"{path} is too long"
        assert ast.get_docstring(parsed(path)), f"{path} has no docstring"


def test_public_functions_have_docstrings():
    for path in MODULES:
        tops = parsed(path).body
        members = [node for top in tops if isinstance(top, ast.ClassDef) for node in top.body]
        for node in [*tops, *members]:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if any(getattr(name, "id", "") == "overload" for name in node.decorator_list):
                continue
            assert ast.get_docstring(node), f"{path.name}: {node.name}"
