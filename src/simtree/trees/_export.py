"""Export of a grown tree as readable rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from simtree.pairs._category_names import CategoryName
from simtree.trees._rank_tree import RankTree
from simtree.trees._regions import INSIDE, AxisRegion, LinearRegion, ObliqueRegion, QuadraticRegion, Region

# Maximum number of printed terms of a linear rule and alternatives of an axis rule; the rest is counted.
MAX_TERMS = 6
MAX_ALTERNATIVES = 8


def export_text(
    tree: RankTree, *, feature_names: Sequence[str] | None = None, max_depth: int | None = None, digits: int = 3
) -> str:
    """Return the cells of a tree as text, each with its counts, its segment of the ROC curve and the rule that splits it.

    Cell ``d.k`` has rank k among the cells of depth d, where rank 0 is the most similar.
    """
    names = tree.pair_map.names(feature_names)
    fpr, tpr = tree.cell_bounds()
    cells = tree.cells
    lines: list[str] = []

    def describe(cell: int, indent: str) -> None:
        counts = f"{cells.n_same[cell]} same, {cells.n_different[cell]} different"
        deeper = indent[:-5] + "|  " if indent else ""
        if cell == 0:
            lines.append(f"all pairs: {counts}")
        else:
            segment = (
                f"FPR {_number(fpr[cell], digits)} to {_number(fpr[cell] + tree.fpr_mass[cell], digits)}, "
                f"TPR {_number(tpr[cell], digits)} to {_number(tpr[cell] + tree.tpr_mass[cell], digits)}"
            )
            score = f", score {tree.scores[cell]:.15g}" if cells.inside[cell] < 0 else ""
            lines.append(f"{indent}cell {cells.depth[cell]}.{cells.rank[cell]}: {counts}, {segment}{score}")
        if cells.inside[cell] < 0:
            return
        if max_depth is not None and cells.depth[cell] >= max_depth:
            lines.append(f"{deeper}|  ... (split further)")
            return
        for k, alternative in enumerate(describe_region(tree.region(cell), names, digits)):
            lines.append(f"{deeper}|  {'inside if' if k == 0 else '       or'} {alternative}")
        for child in (int(cells.inside[cell]), int(cells.outside[cell])):
            describe(child, f"{deeper}|--- ")

    describe(0, "")
    return "\n".join(lines)


def to_dict(tree: RankTree, feature_names: Sequence[str] | None = None, *, digits: int = 6) -> dict[str, Any]:
    """Return the cells of a tree as nested dicts for JSON; a split cell has ``inside_if``, ``inside`` and ``outside``."""
    names = tree.pair_map.names(feature_names)
    fpr, tpr = tree.cell_bounds()
    cells = tree.cells

    def cell_dict(cell: int) -> dict[str, Any]:
        found: dict[str, Any] = {
            "depth": int(cells.depth[cell]),
            "rank": int(cells.rank[cell]),
            "n_same": int(cells.n_same[cell]),
            "n_different": int(cells.n_different[cell]),
            "fpr": [float(fpr[cell]), float(fpr[cell] + tree.fpr_mass[cell])],
            "tpr": [float(tpr[cell]), float(tpr[cell] + tree.tpr_mass[cell])],
            "llr": float(tree.llr[cell]),
        }
        if cells.inside[cell] < 0:
            return {**found, "score": float(tree.scores[cell])}
        return {
            **found,
            "gain": float(cells.gain[cell]),
            "inside_if": describe_region(tree.region(cell), names, digits),
            "inside": cell_dict(int(cells.inside[cell])),
            "outside": cell_dict(int(cells.outside[cell])),
        }

    return cell_dict(0)


def describe_region(region: Region, names: Sequence[str], digits: int = 3) -> list[str]:
    """Return the alternative rules for being inside a region, each a conjunction of conditions."""
    if isinstance(region, AxisRegion):
        rules = [" and ".join(_conditions(path, names, digits)) for path in inside_paths(region)]
        if len(rules) > MAX_ALTERNATIVES:
            rules = [*rules[:MAX_ALTERNATIVES], f"one of {len(rules) - MAX_ALTERNATIVES} more rules"]
        return rules
    if isinstance(region, LinearRegion):
        order = np.argsort(-region.shares, kind="stable")
        used = order[region.weights[order] != 0.0]
        terms = [f"{_number(region.weights[c], digits)} ({names[c]})" for c in used[:MAX_TERMS]]
        if len(used) > MAX_TERMS:
            terms.append(f"{len(used) - MAX_TERMS} smaller terms")
        return [" + ".join(terms) + f" >= {_number(-region.intercept, digits)}"]
    if isinstance(region, ObliqueRegion):
        own = [*(f"|v{k}·(x - x')|" for k in range(len(region.directions)))]
        own += [f"v{k}·(x + x')" for k in range(len(region.directions))]
        return describe_region(region.tests, [*names, *own], digits)
    if isinstance(region, QuadraticRegion):
        return [f"the Gaussian log-likelihood ratio of its difference and sum is >= {_number(region.threshold, digits)}"]
    return ["the fitted classifier predicts same"]


def inside_paths(region: AxisRegion) -> Iterator[list[tuple[int, float, bool]]]:
    """Yield each path through the tests of a region that ends inside, as (coordinate, threshold, whether at most it)."""
    stack: list[tuple[int, list[tuple[int, float, bool]]]] = [(0, [])]
    while stack:
        at, path = stack.pop()
        if at == INSIDE:
            yield path
        elif at >= 0:
            test = int(region.coordinate[at]), float(region.threshold[at])
            stack.append((int(region.if_gt[at]), [*path, (*test, False)]))
            stack.append((int(region.if_le[at]), [*path, (*test, True)]))


def merged_tests(path: list[tuple[int, float, bool]]) -> list[tuple[int, float | None, float | None]]:
    """Return the tests of a path with those of each coordinate merged: (coordinate, more than, at most), None if unbounded."""
    low: dict[int, float] = {}
    high: dict[int, float] = {}
    for coordinate, threshold, at_most in path:
        if at_most:
            high[coordinate] = min(threshold, high.get(coordinate, np.inf))
        else:
            low[coordinate] = max(threshold, low.get(coordinate, -np.inf))
    return [(coordinate, low.get(coordinate), high.get(coordinate)) for coordinate in dict.fromkeys(c for c, _, _ in path)]


def _conditions(path: list[tuple[int, float, bool]], names: Sequence[str], digits: int) -> list[str]:
    """Return the conditions of a path, with the tests of each coordinate merged into one interval."""
    conditions = []
    for coordinate, low, high in merged_tests(path):
        name = names[coordinate]
        if isinstance(name, CategoryName):
            conditions.append(name.condition(low, high, digits))
            continue
        if low is not None and high is not None:
            conditions.append(f"{_number(low, digits)} < {name} <= {_number(high, digits)}")
        elif high is not None:
            conditions.append(f"{name} <= {_number(high, digits)}")
        elif low is not None:
            conditions.append(f"{name} > {_number(low, digits)}")
    return conditions


def _number(value: float, digits: int) -> str:
    """Return a number formatted with ``digits`` significant digits."""
    return f"{float(value):.{digits}g}"
