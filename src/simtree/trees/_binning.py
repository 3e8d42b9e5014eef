"""The training pairs of one tree and the bins of their coordinates.

The values of a coordinate are divided into bins by sorted edges. The code of a value is the number of edges strictly below
it, so ``code <= b`` is equivalent to ``value <= edges[b]``. Codes take one byte per pair and coordinate, and trees are grown
from them. Binning is exact, with one bin per distinct value, if there are no more distinct values than bins; otherwise the
bins hold about equally many values.

If samples lack values, the codes of all values are followed by two more, for features that one sample lacks or both do, so that
a code of one byte leaves room for 254 bins of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from simtree._kernels import binning as kernels
from simtree._kernels.missing import BOTH_MISSING, N_STATES, ONE_MISSING, fill_state_codes
from simtree._kernels.search import count_segment
from simtree._kernels.segments import partition_segment
from simtree._utils.edges import count_distinct, distinct_values, find_edges, in_order
from simtree._utils.matrices import MAX_FLOAT, has_missing
from simtree._utils.threads import in_threads
from simtree.pairs._coordinates import OBLIQUE, CoordinateSet, SamplePairs
from simtree.pairs._sources import IndexPairs

# Quantiles of this many values are accurate enough for 255 edges: an edge is off by less than one bin.
QUANTILE_SAMPLE = 20_000
# Number of codes that fit into one byte.
MAX_CODES = 256
# Number of pairs binned at a time: pairwise coordinates are held as floats only for these.
CHUNK = 1 << 16
# With fewer histogram updates than this, starting threads costs more than it saves.
MIN_PARALLEL_UPDATES = 1 << 22


class TrainingPairs:
    """Pairs of a tree being grown, reordered in place as cells are split: a cell is a segment of the arrays.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples; shared, never copied.
    pairs : IndexPairs
        Pairs of rows of X; copied.
    pair_map : CoordinateSet
        Coordinates that the tree may test.
    max_bins : int or None
        Maximum number of bins per coordinate; None makes one bin per distinct value.
    binned : bool
        Whether codes are computed; splitters that work on values do not need them.
    n_jobs : int or None
        Number of parallel jobs for binning and for counting large cells, for use when a single tree is grown. It does not
        affect the result.
    lacks_values : bool or None
        Whether samples lack values (NaN); None to look.
    """

    def __init__(
        self,
        X: NDArray[Any],
        pairs: IndexPairs,
        pair_map: CoordinateSet,
        max_bins: int | None = 255,
        *,
        binned: bool = True,
        n_jobs: int | None = 1,
        lacks_values: bool | None = None,
    ) -> None:
        self.X = X
        self._n_threads = effective_n_jobs(n_jobs)
        self.pair_map = pair_map
        self.first = pairs.first.copy()
        self.second = pairs.second.copy()
        self.same = pairs.same.copy()
        self._max_bins = max_bins
        self.lacks_values = has_missing(X) if lacks_values is None else lacks_values
        self._edges: list[NDArray[np.float64]] = []
        self.codes: NDArray[np.unsignedinteger[Any]] = np.empty((len(pairs), 0), dtype=np.uint8)
        if binned:
            self._fill_codes(max_bins)
        self._histograms = np.empty((0, 0, 0), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def wide(self) -> bool:
        """Whether codes take more than one byte, so that histograms cannot be kept."""
        return self.codes.dtype != np.uint8

    @property
    def n_bins(self) -> int:
        """Largest number of bins of any coordinate, with those of the states of missing values."""
        return n_values(self._edges) + (N_STATES if self.lacks_values else 0)

    @cached_property
    def one_code(self) -> int:
        """Code of a feature that one sample lacks, followed by that of one that both lack; 0 if no sample lacks values."""
        return n_values(self._edges) if self.lacks_values else 0

    def sample_pairs(self, start: int, stop: int) -> SamplePairs:
        """Return the pairs of a segment with their samples."""
        return SamplePairs(self.X, self.X, self.first[start:stop], self.second[start:stop], lacks_values=self.lacks_values)

    def partition(self, start: int, stop: int, inside: NDArray[np.bool_]) -> int:
        """Move the inside pairs of a segment to its front and return where the outside pairs begin; overwrites ``inside``."""
        return int(partition_segment(self.codes, self.first, self.second, self.same, start, stop, inside))

    def with_directions(self, segment: slice, coordinates: NDArray[np.int64], directions: NDArray[np.float64]) -> TrainingPairs:
        """Return the pairs of a segment with codes of some coordinates, followed by oblique ones along further directions.

        The result serves to search for cuts only: its ``pair_map`` does not describe all of its coordinates, so the caller
        must keep track of them.
        """
        rows = IndexPairs(self.first[segment], self.second[segment], self.same[segment])
        own = CoordinateSet((OBLIQUE,), self.pair_map.n_features, directions)
        used, numbers = np.unique(np.concatenate([rows.first, rows.second]), return_inverse=True)
        first, second = numbers.astype(np.int32).reshape(2, -1)
        samples = own.extend(self.X[used, : own.n_features])
        joined = TrainingPairs(
            samples, IndexPairs(first, second, rows.same), own, self._max_bins, lacks_values=self.lacks_values
        )
        edges = [self._edges[c] for c in coordinates] + joined._edges
        codes = np.concatenate([self.codes[segment][:, coordinates], joined.codes], axis=1)
        if self.lacks_values:  # codes of states follow those of the values of all coordinates
            one = np.repeat([self.one_code, joined.one_code], [len(coordinates), len(own)]).astype(codes.dtype)
            codes = np.where(codes < one, codes, codes - one + codes.dtype.type(n_values(edges)))
            joined.one_code = n_values(edges)
        joined.codes, joined._edges = codes, edges
        return joined

    def thresholds(self, coordinates: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        """Return, for each coordinate and its code b, the value t such that ``code <= b`` is equivalent to ``value <= t``."""
        first, n_edges, joined = self._joined_edges
        return np.asarray(joined[first[coordinates] + np.minimum(codes, n_edges[coordinates])], dtype=np.float64)

    @cached_property
    def _joined_edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The edges of all coordinates in one array, each followed by the largest number; where they begin, and how many."""
        n_edges = np.array([len(own) for own in self._edges], dtype=np.int64)
        joined = np.concatenate([np.append(own, MAX_FLOAT) for own in self._edges])
        return np.cumsum(n_edges + 1) - (n_edges + 1), n_edges, joined

    def histograms(self, n_slots: int) -> NDArray[np.int64]:
        """Return a buffer for histograms, allocated once and shared by all cells; it is empty for wide codes."""
        if self.wide:
            return self._histograms
        if len(self._histograms) < n_slots:
            self._histograms = np.empty((n_slots, self.n_bins, self.codes.shape[1]), dtype=np.int64)
        return self._histograms

    def count(self, start: int, stop: int, coordinates: NDArray[np.int64], histograms: NDArray[np.int64]) -> bool:
        """Fill the first histogram for the pairs of a segment in threads; return False if threads would not pay off."""
        n_threads = self._n_threads if (stop - start) * len(coordinates) >= MIN_PARALLEL_UPDATES else 1
        if n_threads < 2 or self.wide:
            return False
        ends = np.linspace(start, stop, n_threads + 1).astype(int)
        parts = np.empty((n_threads, self.n_bins, len(coordinates)), dtype=np.int64)

        def fill(part: int) -> None:
            count_segment(self.codes, self.same, ends[part], ends[part + 1], coordinates, parts[part])

        in_threads(fill, range(n_threads), self._n_threads)
        np.sum(parts, axis=0, out=histograms[0, :, : len(coordinates)])
        return True

    def _fill_codes(self, max_bins: int | None) -> None:
        n_pairs, n_coordinates = len(self), len(self.pair_map)
        n_states = N_STATES if self.lacks_values else 0
        max_codes = 2 * n_pairs + n_states if max_bins is None else max_bins
        dtype = np.uint8 if max_codes <= MAX_CODES else np.uint16 if max_codes <= 65536 else np.uint32
        self.codes = np.empty((n_pairs, n_coordinates), dtype=dtype)
        pairs = self.sample_pairs(0, n_pairs)
        self._edges = coordinate_edges(self.pair_map, pairs, max_bins)
        if self.wide:
            pairs = self.pair_map.complete(pairs)  # once for all coordinates
            for column, edges in enumerate(self._edges):
                values = self.pair_map.some_values(pairs, [column])[0]
                self.codes[:, column] = np.searchsorted(edges, values)
                if self.lacks_values:
                    self.codes[values == ONE_MISSING, column] = self.one_code
                    self.codes[values == BOTH_MISSING, column] = self.one_code + 1
        else:
            ByteBins(self.pair_map, self._edges).fill(pairs, self.codes, self._n_threads)


class ByteBins:
    """Bins of all coordinates, at most 256 of each, with the grid that makes finding codes fast.

    Parameters
    ----------
    pair_map : CoordinateSet
        The coordinates.
    edges : list of ndarrays
        Sorted edges of each coordinate.
    numbers : ndarray of int, optional
        Numbers of the coordinates, if not all are binned.
    """

    def __init__(
        self, pair_map: CoordinateSet, edges: list[NDArray[np.float64]], numbers: NDArray[np.integer[Any]] | None = None
    ) -> None:
        self.pair_map = pair_map
        chosen = slice(None) if numbers is None else numbers
        self._coordinates = (pair_map.kind_codes[chosen], pair_map.columns[chosen])
        self.edges = edges
        n_edges = np.array([len(own) for own in edges])
        padded = np.full((len(n_edges), kernels.MAX_EDGES + kernels.ROOM), np.inf)
        for row, own in zip(padded, edges, strict=True):
            row[: len(own)] = own
        low = np.where(n_edges > 0, padded[:, 0], 0.0)
        high = np.where(n_edges > 0, padded[np.arange(len(n_edges)), n_edges - 1], 0.0)
        with np.errstate(over="ignore", divide="ignore"):
            scale = (kernels.N_STEPS - 1) / (high - low)
        limits = np.finfo(np.float64)
        scale = np.clip(scale, limits.tiny, limits.max)  # avoids products of 0 and infinity
        before = np.empty((len(n_edges), kernels.N_STEPS), dtype=np.uint8)
        first_halving = np.empty(len(n_edges), dtype=np.int64)
        kernels.lay_grid(padded, n_edges, low, scale, before, first_halving)
        self._grid = (padded, low, scale, before, first_halving)

    @property
    def n_bins(self) -> int:
        """Largest number of bins of the values of any coordinate."""
        return n_values(self.edges)

    @cached_property
    def _grid_with_states(self) -> tuple[NDArray[Any], ...]:
        """The grid with a page for each state of missing values, which holds its code."""
        edges, low, scale, before, first_halving = self._grid
        pages = [np.full_like(before, self.n_bins + state) for state in range(N_STATES)]
        return edges, low, scale, np.hstack([before, *pages]), first_halving

    def fill(self, pairs: SamplePairs, codes: NDArray[np.uint8], n_jobs: int | None) -> None:
        """Fill ``codes[p, c]`` with the code of coordinate c of pair p; codes of states are ``n_bins`` and ``n_bins + 1``."""
        lacks_values = pairs.lacks_values

        def fill(start: int) -> None:
            part = self.pair_map.complete(pairs.take(slice(start, start + CHUNK)))
            own = codes[start : start + CHUNK]
            if lacks_values:
                fill_state_codes(*part, *self._coordinates, self.pair_map.kernel_directions, *self._grid_with_states, own)
            else:
                kernels.fill_byte_codes(*part, *self._coordinates, *self._grid, own)

        in_threads(fill, range(0, pairs.n_pairs, CHUNK), n_jobs)


def n_values(edges: Sequence[NDArray[np.float64]]) -> int:
    """Return the largest number of bins of any coordinate, given the edges of each.

    Examples
    --------
    >>> n_values([np.array([0.5, 1.5]), np.empty(0)])
    3
    """
    return 1 + max((len(own) for own in edges), default=0)


def thresholds(edges: Sequence[NDArray[np.float64]], coordinates: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the threshold of each coordinate for its code b: edge b, or the largest number if all values have such codes."""
    found = [edges[c][b] if b < len(edges[c]) else MAX_FLOAT for c, b in zip(coordinates, codes, strict=True)]
    return np.array(found, dtype=np.float64)


def coordinate_edges(pair_map: CoordinateSet, pairs: SamplePairs, max_bins: int | None) -> list[NDArray[np.float64]]:
    """Return the edges of each coordinate for these pairs; they do not depend on the order of the pairs' samples."""
    if max_bins is not None and pairs.lacks_values:
        max_bins = min(max_bins, MAX_CODES - N_STATES)
    # A random subsample, because given pairs may be ordered: by label, or by sample.
    sample = np.random.default_rng(0).permutation(pairs.n_pairs)[:QUANTILE_SAMPLE]
    sampled = pair_map.complete(pairs.take(sample))
    edges = [np.empty(0)] * len(pair_map)
    # The minimum and the maximum of a feature share their edges: square regions compare both with one threshold.
    twins: dict[int, int] = {}
    if {"min", "max"} <= set(pair_map.kinds):
        twins = dict(zip(pair_map.numbers("min").tolist(), pair_map.numbers("max").tolist(), strict=True))
    alone = set(range(len(edges))) - set(twins) - set(twins.values())
    distinct = _distinct_of_pairs(pair_map, pairs, sampled, max_bins)
    for group in [[column] for column in sorted(alone)] + [list(pair) for pair in twins.items()]:
        all_values = partial(pair_map.some_values, pairs, group)
        found = find_edges(pair_map.some_values(sampled, group), max_bins, all_values, distinct.get(group[0]))
        for column in group:
            edges[column] = found
    return edges


def _distinct_of_pairs(
    pair_map: CoordinateSet, pairs: SamplePairs, sampled: SamplePairs, max_bins: int | None
) -> dict[int, NDArray[np.float64]]:
    """Return the distinct values of those pairwise coordinates of which sampled pairs have no more than there are bins.

    The pairwise coordinates of a pair are computed together, so they are computed once, and for few pairs at a time.
    """
    columns = [
        column
        for column in np.flatnonzero(pair_map.is_pairwise).tolist()
        if max_bins is None or count_distinct(in_order(pair_map.some_values(sampled, [column]))) <= max_bins
    ]
    found = dict.fromkeys(columns, np.empty(0))
    for start in range(0, pairs.n_pairs if columns else 0, CHUNK):
        values = pair_map.some_values(pairs.take(slice(start, start + CHUNK)), columns)
        for column, own in zip(columns, values, strict=True):
            found[column] = distinct_values(in_order(np.concatenate([found[column], own])))
    return found
