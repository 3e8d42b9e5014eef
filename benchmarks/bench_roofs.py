"""How far each kernel is from what the machine can do: bytes moved or updates a second beside a bare loop, on one thread.

The roofs are measured here and now: a copy of as many bytes, a histogram of one column and nothing else, and a loop that
answers tests without sending pairs anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

from measure import SEED, Line, Section, Table, seconds
from models import Spec
from problems import Points, draw
from simtree import CutSplitter
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.splitters._base import Cell
from simtree.trees._binning import TrainingPairs
from simtree.trees._rank_tree import RankTree

TITLE = "Roofs: how far each kernel is from its limit"
OURS, ROOF, SHARE = "a second", "roof a second", "share of the roof"
# Pairs that a forest scores at one time: their rows stay in cache.
FEW = 4096


@dataclass(frozen=True)
class Size:
    n_pairs: int
    depth: int = 15


SIZES = {"full": Size(400_000), "quick": Size(50_000), "tiny": Size(1_000, depth=3)}

WHY = {
    "binning": (
        "Binning. A code takes a product, a look into a grid and mostly one comparison with an edge, so binning waits for "
        "arithmetic and not for memory: its roof, a copy of the same bytes, is far. Finding the edges is counted too."
    ),
    "histogram": (
        "Histogram. The bare loop counts one column in bins that stay in the first cache, and an update waits for the one "
        "before where neighbours fall into one bin. The kernel updates all columns of a pair side by side, which do not "
        "wait for one another, but its bins of all columns do not fit the first cache. The scan of the bins is counted too."
    ),
    "sweep": (
        "Sweep. The bare loop answers tests of pairs in their order. The sweep answers as many and sends each pair on to one "
        "of two lists, so it reads the list and two row numbers out of order, and writes one entry of the list, at each test."
    ),
}


@numba.njit(nogil=True, error_model="numpy")
def bare_histogram(codes: Any, counts: Any) -> None:
    for r in range(codes.shape[0]):
        counts[codes[r]] += 1


@numba.njit(nogil=True, error_model="numpy")
def bare_tests(X: Any, first: Any, second: Any, features: Any, threshold: Any) -> Any:
    below = 0
    for f in features:
        for p in range(first.shape[0]):
            below += abs(X[first[p], f] - X[second[p], f]) <= threshold
    return below


def rate(amount: float, work: Callable[[], Any], repeats: int) -> list[float]:
    """Amount a second in each run, after one that is not counted."""
    work()
    return [amount / seconds(work) for _ in range(repeats)]


def against(name: str, unit: str, ours: list[float], roof: list[float]) -> Line:
    share = float(np.median(ours) / np.median(roof))
    return Line(name, {OURS: ours, ROOF: roof, SHARE: [share]}, unit)


def binning_line(points: Points, size: Size, repeats: int) -> tuple[Line, TrainingPairs]:
    """Of each pair and feature two values are read and two codes written."""
    X, pairs = points.X, draw(points.y, size.n_pairs)
    pair_map = CoordinateSet(CutSplitter.default_coordinates, X.shape[1])
    n_bytes = len(pairs) * X.shape[1] * (2 * X.itemsize + len(pair_map.kinds))
    here, there = np.zeros(n_bytes // 2, np.uint8), np.zeros(n_bytes // 2, np.uint8)
    ours = rate(n_bytes / 1e9, lambda: TrainingPairs(X, pairs, pair_map), repeats)
    roof = rate(n_bytes / 1e9, lambda: np.copyto(there, here), repeats)
    return against("binning of coordinates", "gigabytes read and written", ours, roof), TrainingPairs(X, pairs, pair_map)


def histogram_line(binned: TrainingPairs, repeats: int) -> Line:
    n_pairs, n_columns = binned.codes.shape
    n_same = int(np.count_nonzero(binned.same))
    cell = Cell(binned, 0, n_pairs, n_same, n_pairs - n_same, np.arange(n_columns), 1, np.random.default_rng(SEED))
    column, counts = np.ascontiguousarray(binned.codes[:, 0]), np.zeros(256, np.int64)
    ours = rate(n_pairs * n_columns / 1e6, lambda: CutSplitter().split(cell), repeats)
    roof = rate(n_pairs / 1e6, lambda: bare_histogram(column, counts), repeats)
    return against("histogram and search of one cut", "million updates", ours, roof)


def sweep_line(points: Points, size: Size, repeats: int) -> Line:
    X, y = points.X, points.y
    tree: RankTree = Spec("simtree", size.n_pairs // 4, {"n_estimators": 1, "max_depth": size.depth}).fit(X, y).tree_
    pairs = draw(y, FEW, seed=SEED + 1)
    block = SamplePairs(X, X, pairs.first, pairs.second)
    n_tests = tests_answered(tree, block)
    total = np.zeros(FEW)
    values = tree.llr
    some = np.arange(0, X.shape[1], 3)
    ours = rate(n_tests / 1e6, lambda: tree.add_values(block, values, total), 20 * repeats)
    roof = rate(len(some) * FEW / 1e6, lambda: bare_tests(X, pairs.first, pairs.second, some, 0.5), 20 * repeats)
    return against("routing sweep", "million tests answered", ours, roof)


def tests_answered(tree: RankTree, pairs: SamplePairs) -> int:
    """How many tests of a tree the pairs meet on their way, by following all of them at once."""
    nodes = tree.nodes
    at = np.zeros(pairs.n_pairs, dtype=np.int64)
    answered = 0
    values = tree.pair_map.plain_values(pairs)
    going = np.arange(pairs.n_pairs)
    while len(going):
        answered += len(going)
        node = at[going]
        below = values[tree.coordinate[node], going] <= nodes.threshold[node]
        at[going] = np.where(below, nodes.if_le[node], nodes.if_gt[node])
        going = going[at[going] >= 0]
    return answered


def section(folder: Path, scale: str, repeats: int) -> Section:
    size, points = SIZES[scale], Points.load(folder / "mnist.npz")
    binning, binned = binning_line(points, size, repeats)
    lines = [binning, histogram_line(binned, repeats), sweep_line(points, size, repeats)]
    title = f"MNIST, {size.n_pairs:,} pairs, one thread:"
    return Section(TITLE, [Table(title, lines)], facts={"why": WHY})
