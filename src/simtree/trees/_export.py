"""Export of a grown tree as readable rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from simtree._kernels.missing import BOTH_ABOVE, BOTH_SEEN, ONE_ABOVE, ONE_SEEN
from simtree._utils.matrices import MAX_FLOAT
from simtree.pairs._category_names import CategoryName
from simtree.trees._linear_region import LinearRegion
from simtree.trees._quadratic_region import NONE_INSIDE, QuadraticRegion
from simtree.trees._rank_tree import RankTree
from simtree.trees._regions import INSIDE, AxisRegion, ObliqueRegion, Region

# Maximum number of printed terms of a linear rule and alternatives of an axis rule; the rest is counted.
MAX_TERMS = 6
MAX_ALTERNATIVES = 8


def export_text(
    tree: RankTree, *, feature_names: Sequence[str] | None = None, max_depth: int | None = None, digits: int = 3
) -> str:
    """Return the cells of a tree as text, each with its counts, its segment of the ROC curve and the rule that splits it.

    Cell ``d.k`` has rank k among the cells of depth d, where rank 0 is the most similar.
    """
    names, subjects = tree.pair_map.names(feature_names), tree.pair_map.subjects(feature_names)
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
        for k, alternative in enumerate(describe_region(tree.region(cell), names, digits, subjects)):
            lines.append(f"{deeper}|  {'inside if' if k == 0 else '       or'} {alternative}")
        for child in (int(cells.inside[cell]), int(cells.outside[cell])):
            describe(child, f"{deeper}|--- ")

    describe(0, "")
    return "\n".join(lines)


def to_dict(tree: RankTree, feature_names: Sequence[str] | None = None, *, digits: int = 6) -> dict[str, Any]:
    """Return the cells of a tree as nested dicts for JSON; a split cell has ``inside_if``, ``inside`` and ``outside``."""
    names, subjects = tree.pair_map.names(feature_names), tree.pair_map.subjects(feature_names)
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
            "inside_if": describe_region(tree.region(cell), names, digits, subjects),
            "inside": cell_dict(int(cells.inside[cell])),
            "outside": cell_dict(int(cells.outside[cell])),
        }

    return cell_dict(0)


def describe_region(
    region: Region, names: Sequence[str], digits: int = 3, subjects: Sequence[str | None] | None = None
) -> list[str]:
    """Return the alternative rules for being inside a region, each a conjunction of conditions.

    ``subjects`` are the features of coordinates that may be missing, see `CoordinateSet.subjects`; by default the coordinates.
    """
    subjects = list(names) if subjects is None else list(subjects)
    if isinstance(region, AxisRegion):
        rules = [" and ".join(_conditions(path, names, subjects, digits)) for path in inside_paths(region)]
        if len(rules) > MAX_ALTERNATIVES:
            rules = [*rules[:MAX_ALTERNATIVES], f"one of {len(rules) - MAX_ALTERNATIVES} more rules"]
        return rules
    if isinstance(region, LinearRegion):
        order = np.argsort(-region.shares, kind="stable")
        used = order[region.weights[order] != 0.0]
        terms = [f"{_number(region.weights[c], digits)} ({names[c]})" for c in used[:MAX_TERMS]]
        if len(used) > MAX_TERMS:
            terms.append(f"{len(used) - MAX_TERMS} smaller terms")
        terms += _state_terms(region, subjects, digits)
        return [" + ".join(terms) + f" >= {_number(-region.intercept, digits)}"]
    if isinstance(region, ObliqueRegion):
        own = [*(f"|v{k}·(x - x')|" for k in range(len(region.directions)))]
        own += [f"v{k}·(x + x')" for k in range(len(region.directions))]
        return describe_region(region.tests, [*names, *own], digits, [*subjects, *([None] * len(own))])
    if isinstance(region, QuadraticRegion):
        ratio = f"the Gaussian log-likelihood ratio of its difference and sum is >= {_number(region.threshold, digits)}"
        none = "no feature present in both"
        if region.none_present != NONE_INSIDE:
            return [ratio]
        return [none] if region.threshold >= MAX_FLOAT else [ratio, none]
    return ["the fitted classifier predicts same"]


def _state_terms(region: LinearRegion, subjects: Sequence[str | None], digits: int) -> list[str]:
    """Return what missing features add to a weighted sum in place of their coordinates, the largest first."""
    if region.states is None or region.seen is None:
        return []
    added: dict[str, float] = {}
    for state, (bit, words) in enumerate(((ONE_SEEN, "one of the two"), (BOTH_SEEN, "both"))):
        for coordinate in np.flatnonzero(region.seen & bit).tolist():
            subject = subjects[coordinate]
            what = "no feature present in both" if subject is None else f"{subject} missing in {words}"
            added[what] = added.get(what, 0.0) + float(region.states[coordinate, state])
    ordered = sorted(added, key=lambda what: -abs(added[what]))
    terms = [f"{_number(added[what], digits)} ({what})" for what in ordered[:MAX_TERMS]]
    return [*terms, f"{len(ordered) - MAX_TERMS} further terms"] if len(ordered) > MAX_TERMS else terms


class Step(NamedTuple):
    """One test on a path through a region."""

    coordinate: int
    threshold: float
    at_most: bool
    """Whether the path continues with values up to the threshold, or with those above it."""
    states: int = 0
    """The states of missing values seen in training that take the path as well: 1 for one, 2 for both, 3 for either."""


class Condition(NamedTuple):
    """All tests of one coordinate on a path."""

    coordinate: int
    low: float | None
    high: float | None
    """Values that take the path are more than ``low`` and at most ``high``, None if unbounded."""
    states: int = 0
    """States of missing values that take the path, as in `Step`."""
    takes_values: bool = True
    """Whether values take the path, and not only missing ones."""


def inside_paths(region: AxisRegion) -> Iterator[list[Step]]:
    """Yield each path through the tests of a region that ends inside."""
    stack: list[tuple[int, list[Step]]] = [(0, [])]
    while stack:
        at, path = stack.pop()
        if at == INSIDE:
            yield path
        elif at >= 0:
            test = int(region.coordinate[at]), float(region.threshold[at])
            states = 0 if region.states is None else int(region.states[at])
            seen = (1 if states & ONE_SEEN else 0) | (2 if states & BOTH_SEEN else 0)
            above = (1 if states & ONE_ABOVE else 0) | (2 if states & BOTH_ABOVE else 0)
            stack.append((int(region.if_gt[at]), [*path, Step(*test, at_most=False, states=seen & above)]))
            stack.append((int(region.if_le[at]), [*path, Step(*test, at_most=True, states=seen & ~above)]))


def merged_tests(path: list[Step]) -> list[Condition]:
    """Return the tests of a path with those of each coordinate merged."""
    merged: dict[int, Condition] = {}
    for coordinate, threshold, at_most, states in path:
        _, low, high, so_far, takes_values = merged.get(coordinate, Condition(coordinate, None, None, 3))
        if threshold >= MAX_FLOAT:  # the test separates missing values only
            takes_values &= at_most
        elif at_most:
            high = threshold if high is None else min(threshold, high)
        else:
            low = threshold if low is None else max(threshold, low)
        merged[coordinate] = Condition(coordinate, low, high, so_far & states, takes_values)
    return list(merged.values())


def with_missing(condition: Condition, values: str, subject: str | None) -> str:
    """Return a condition on values in words, or on missing values, or on both.

    Parameters
    ----------
    condition : Condition
        The condition.
    values : str
        What it says about values.
    subject : str or None
        The feature that may be missing; None for a coordinate of many features, which lacks a value if no feature is in both
        samples.

    Examples
    --------
    >>> with_missing(Condition(0, None, 3.0, states=1), "|age - age'| <= 3", "age")
    "(|age - age'| <= 3 or age missing in one of the two)"
    >>> with_missing(Condition(0, None, None), "", "age")
    'age present in both'
    """
    states, none = condition.states, "no feature present in both"
    missing = none if subject is None else f"{subject} missing in {['', 'one of the two', 'both', 'one or both'][states]}"
    if not condition.takes_values:
        return missing
    if condition.low is None and condition.high is None:
        rest = ["present in both", "not missing in both", "not missing in just one of the two", "present or missing"]
        return "a feature present in both" if subject is None else f"{subject} {rest[states]}"
    return f"({values} or {missing})" if states else values


def _conditions(path: list[Step], names: Sequence[str], subjects: Sequence[str | None], digits: int) -> list[str]:
    """Return the conditions of a path, with the tests of each coordinate merged into one interval."""
    conditions = []
    for condition in merged_tests(path):
        coordinate, low, high, *_ = condition
        name, values = names[coordinate], ""
        if isinstance(name, CategoryName):
            values = "" if low is None and high is None else name.condition(low, high, digits)
        elif low is not None and high is not None:
            values = f"{_number(low, digits)} < {name} <= {_number(high, digits)}"
        elif high is not None:
            values = f"{name} <= {_number(high, digits)}"
        elif low is not None:
            values = f"{name} > {_number(low, digits)}"
        conditions.append(with_missing(condition, values, subjects[coordinate]))
    return conditions


def _number(value: float, digits: int) -> str:
    """Return a number formatted with ``digits`` significant digits."""
    return f"{float(value):.{digits}g}"
