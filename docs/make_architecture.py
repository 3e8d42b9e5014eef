"""Draw docs/images/architecture.svg and write the table of docs/architecture.md, from the imports in src/simtree.

Run ``python docs/make_architecture.py``. A test runs it too, and compares.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "simtree"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
BEGIN, END = "<!-- begin: written by docs/make_architecture.py -->", "<!-- end -->"

# What a package is for, in the few words that fit into its box.
PURPOSES = {
    "_kernels": "compiled loops (numba)",
    "_utils": "checks, files, threads",
    "metrics": "ROC curves, error rates",
    "pairs": "which pairs, coordinates",
    "io": "model files, registry",
    "datasets": "real and synthetic data",
    "trees": "the frozen tree, its rules",
    "representation": "transformers of samples",
    "splitters": "how one cell is split",
    "growing": "TreeRank, bags, folds",
    "evaluation": "metrics, thresholds",
    "models": "the estimators",
    "gallery": "1:N with a database",
    "dask": "models on a cluster",
    "plots": "displays (matplotlib)",
    "report": "one HTML file",
    "experiments": "the paper's experiments",
    "service": "HTTP",
    "cli": "the command simtree",
}

Edge = tuple[str, str]

BOX_WIDTH, BOX_HEIGHT, LANE_WIDTH = 176, 46, 26
GAP, ROW_HEIGHT, LEFT, TOP = 34, 92, 64, 24
STYLE = """\
text { font-family: "DejaVu Sans", Verdana, Arial, sans-serif; text-anchor: middle; }
.name { font-size: 15px; font-weight: bold; fill: #14375a; }
.purpose { font-size: 11px; fill: #4a5a6a; }
.row { font-size: 12px; fill: #8594a3; }
.band { fill: #f3f6f9; }
.box { fill: #ffffff; stroke: #2f6ea8; stroke-width: 1.5; }
.arrow { fill: none; stroke: #7d93a8; stroke-width: 1.6; marker-end: url(#head); }"""


def import_rows() -> dict[int, list[str]]:
    """Return the packages that exist by the number of their row; tests/project/test_architecture.py has and checks the rows."""
    tree = ast.parse((ROOT / "tests" / "project" / "test_architecture.py").read_text(encoding="utf-8"))
    (rows,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ROWS"
    )
    present = {path.stem for path in SOURCES.iterdir() if path.is_dir() or path.suffix == ".py"} - {"__main__"}
    return {number: found for number, row in enumerate(rows, start=1) if (found := sorted(row & present))}


def read_imports() -> dict[str, set[str]]:
    """Return the other packages of simtree that each package imports, anywhere in its modules."""
    packages = [package for row in import_rows().values() for package in row]
    found: dict[str, set[str]] = {}
    for package in packages:
        folder = SOURCES / package
        files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
        names = {name for file in files for name in _imported_packages(file)}
        found[package] = (names & set(packages)) - {package}
    return found


def essential_edges(imports: dict[str, set[str]]) -> list[Edge]:
    """Return imports that do not follow from others: without a -> c if there is a way a -> b -> ... -> c."""

    def reached(package: str) -> set[str]:
        return imports[package] | {name for other in imports[package] for name in reached(other)}

    return sorted(
        (package, other)
        for package, others in imports.items()
        for other in others
        if not any(other in reached(between) for between in others - {other})
    )


def make_table() -> str:
    """Return the part of the page that lists all imports."""
    imports, rows = read_imports(), import_rows()
    lines = ["| row | package | what it is for | imports |", "|---|---|---|---|"]
    for number, row in rows.items():
        for package in row:
            others = [f"`{other}`" for above in rows.values() for other in above if other in imports[package]]
            lines.append(f"| {number} | `{package}` | {PURPOSES[package]} | {', '.join(others) or 'none'} |")
    return "\n".join([BEGIN, *lines, END])


def make_page() -> str:
    """Return the page with a fresh table."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END, maxsplit=1)
    return f"{before}{make_table()}{after}"


def make_picture() -> str:
    """Return the picture: a box per package, row by row, and an arrow to each package that it imports directly."""
    numbers, rows = list(import_rows()), list(import_rows().values())
    slots, paths = _add_lanes(rows, essential_edges(read_imports()))
    width = 2 * LEFT + max(_row_width(row) for row in slots)
    centres = {name: width / 2 + x for name, x in _place(_least_crossings(slots, paths)).items()}
    height = 2 * TOP + ROW_HEIGHT * len(slots) - (ROW_HEIGHT - BOX_HEIGHT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "<title>The packages of simtree and what they import</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#7d93a8"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for place, number in enumerate(numbers):
        top = TOP + place * ROW_HEIGHT
        parts.append(
            f'<rect class="band" x="12" y="{top - 10}" width="{width - 24}" height="{BOX_HEIGHT + 20}" rx="8"/>'
            f'<text class="row" x="34" y="{top + BOX_HEIGHT / 2 + 4:g}">{number}</text>'
        )
    tops = {name: TOP + place * ROW_HEIGHT for place, row in enumerate(slots) for name in row}
    parts += [_arrow(path, centres, tops) for path in paths]
    for row in rows:
        for package in row:
            x, y = centres[package], tops[package]
            parts.append(
                f'<rect class="box" x="{x - BOX_WIDTH / 2:g}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
                f'<text class="name" x="{x:g}" y="{y + 20}">{escape(package)}</text>'
                f'<text class="purpose" x="{x:g}" y="{y + 36}">{escape(PURPOSES[package])}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _imported_packages(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "simtree":
            yield from (alias.name for alias in node.names)
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            yield from (name.split(".")[1] for name in names if name.startswith("simtree."))


def _add_lanes(rows: list[list[str]], edges: Sequence[Edge]) -> tuple[list[list[str]], list[list[str]]]:
    """Return the rows with a lane in each row that an arrow passes, and for each arrow its way from box to box.

    Arrows to one package share their lanes.
    """
    level = {package: number for number, row in enumerate(rows) for package in row}
    slots = [list(row) for row in rows]
    paths = []
    for package, other in edges:
        path = [package]
        for number in range(level[package] - 1, level[other], -1):
            lane = f"{other}@{number}"
            if lane not in slots[number]:
                slots[number].append(lane)
            path.append(lane)
        paths.append([*path, other])
    return slots, paths


def _least_crossings(slots: list[list[str]], paths: list[list[str]]) -> list[list[str]]:
    """Return the rows, each in the order that crosses the fewest arrows and keeps them short; row by row until none gains."""
    steps = sorted({step for path in paths for step in itertools.pairwise(path)})
    best, before = [list(row) for row in slots], None
    while best != before:
        before = best
        for number, row in enumerate(best):
            near = [step for step in steps if step[0] in row or step[1] in row]
            orders = ([*best[:number], list(order), *best[number + 1 :]] for order in itertools.permutations(row))
            best = min([best, *orders], key=lambda rows: _cost(rows, near))
    return best


def _cost(rows: list[list[str]], steps: list[Edge]) -> tuple[int, float]:
    """Return how many steps of arrows cross, and how far they go to the side."""
    centres = _place(rows)
    level = {name: number for number, row in enumerate(rows) for name in row}
    crossings = sum(
        (centres[a] - centres[c]) * (centres[b] - centres[d]) < 0
        for (a, b), (c, d) in itertools.combinations(steps, 2)
        if level[a] == level[c]
    )
    return crossings, sum((centres[a] - centres[b]) ** 2 for a, b in steps)


def _row_width(row: Sequence[str]) -> int:
    return sum(_slot_width(name) for name in row) + GAP * (len(row) - 1)


def _slot_width(name: str) -> int:
    return LANE_WIDTH if "@" in name else BOX_WIDTH


def _place(rows: list[list[str]]) -> dict[str, float]:
    """Return how far right of the middle of the picture the centre of each slot is."""
    centres = {}
    for row in rows:
        x = -_row_width(row) / 2
        for name in row:
            centres[name] = x + _slot_width(name) / 2
            x += _slot_width(name) + GAP
    return centres


def _arrow(path: list[str], centres: dict[str, float], tops: dict[str, int]) -> str:
    """Return an arrow that rises from a box through its lanes to another box."""
    # Where arrows meet a box they keep a little apart, in the order in which they come.
    x = centres[path[0]] + _offset(centres[path[1]] - centres[path[0]])
    y = tops[path[0]]
    drawn = [f"M{x:g},{y}"]
    for name in path[1:]:
        target, bottom = centres[name], tops[name] + BOX_HEIGHT
        is_box = name == path[-1]
        if is_box:
            target += _offset(x - target)
        end = bottom + 1 if is_box else bottom + 10
        middle = (y + end) / 2
        drawn.append(f"C{x:g},{middle:g} {target:g},{middle:g} {target:g},{end}")
        if not is_box:
            y = tops[name] - 10
            drawn.append(f"L{target:g},{y}")
        x = target
    return f'<path class="arrow" d="{" ".join(drawn)}"/>'


def _offset(distance: float) -> float:
    return max(-0.3 * BOX_WIDTH, min(0.3 * BOX_WIDTH, 0.14 * distance))


if __name__ == "__main__":
    PICTURE.write_text(make_picture(), encoding="utf-8")
    PAGE.write_text(make_page(), encoding="utf-8")
    print(f"Written: {PICTURE}\nWritten: {PAGE}")
