"""Throughput of each kernel relative to the limit of the machine: bytes or updates per second of a bare loop, on one thread.

The limits are measured as well: a copy of the same number of bytes, a histogram of one column, and a loop that evaluates tests
without routing pairs.
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
from problems import Samples, draw
from simtree import CutSplitter
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.splitters._base import Cell
from simtree.trees._binning import TrainingPairs
from simtree.trees._rank_tree import RankTree

TITLE = "Kernels: throughput relative to the limit of the machine"
OURS, ROOF, SHARE = "per second", "limit per second", "share of the limit"
# Number of pairs that a forest scores per block, whose rows stay in cache.
BLOCK_SIZE = 4096


@dataclass(frozen=True)
class Size:
    n_pairs: int
    depth: int = 15


SIZES = {"full": Size(400_000), "quick": Size(50_000), "tiny": Size(1_000, depth=3)}

WHY = {
    "binning": (
        "Binning. A code takes a product, a lookup in a grid and mostly one comparison with an edge, so binning is bound by "
        "arithmetic and not by memory, and is far from its limit, a copy of the same bytes. Finding the edges is included."
    ),
    "histogram": (
        "Histogram. The bare loop counts one column in bins that fit in the L1 cache, and an update waits for the previous one "
        "if both are in the same bin. The kernel updates all columns of a pair, which are independent of each other, but the "
        "bins of all columns do not fit in the L1 cache. The scan of the bins is included."
    ),
    "routing": (
        "Routing. The bare loop evaluates tests of pairs in their order. The kernel evaluates the same number of tests and "
        "routes each pair to one of two lists, so at each test it reads the list and two row numbers out of order, and writes "
        "one entry."
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
    """Return the amount per second in each run, after a warm-up."""
    work()
    return [amount / seconds(work) for _ in range(repeats)]


def against(name: str, unit: str, ours: list[float], roof: list[float]) -> Line:
    share = float(np.median(ours) / np.median(roof))
    return Line(name, {OURS: ours, ROOF: roof, SHARE: [share]}, unit)


def binning_line(samples: Samples, size: Size, repeats: int) -> tuple[Line, TrainingPairs]:
    """Measure the binning: per pair and feature, two values are read and two codes are written."""
    X, pairs = samples.X, draw(samples.y, size.n_pairs)
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
    return against("histogram and search for one split", "million updates", ours, roof)


def routing_line(samples: Samples, size: Size, repeats: int) -> Line:
    X, y = samples.X, samples.y
    tree: RankTree = Spec("simtree", size.n_pairs // 4, {"n_estimators": 1, "max_depth": size.depth}).fit(X, y).tree_
    pairs = draw(y, BLOCK_SIZE, seed=SEED + 1)
    block = SamplePairs(X, X, pairs.first, pairs.second)
    n_tests = count_tests(tree, block)
    total = np.zeros(BLOCK_SIZE)
    values = tree.llr
    some = np.arange(0, X.shape[1], 3)
    ours = rate(n_tests / 1e6, lambda: tree.add_values(block, values, total), 20 * repeats)
    roof = rate(len(some) * BLOCK_SIZE / 1e6, lambda: bare_tests(X, pairs.first, pairs.second, some, 0.5), 20 * repeats)
    return against("routing of pairs", "million tests", ours, roof)


def count_tests(tree: RankTree, pairs: SamplePairs) -> int:
    """Count the tests of a tree that the pairs pass, by following all pairs at once."""
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
    size, samples = SIZES[scale], Samples.load(folder / "mnist.npz")
    binning, binned = binning_line(samples, size, repeats)
    lines = [binning, histogram_line(binned, repeats), routing_line(samples, size, repeats)]
    title = f"MNIST, {size.n_pairs:,} pairs, one thread:"
    return Section(TITLE, [Table(title, lines)], facts={"why": WHY})
