"""What is learned of categories: how rare their values are, and which pairs of values are often confused.

The log-likelihood ratio of a pair of values is learned from labels, so it must not be looked up for a pair that it was learned
from. Training samples are divided into folds, and ratios are computed without each pair of folds. A sample carries the number
of its fold as a column; new samples have the number of none.

Folds are of what will be new. For an open set they are of identities, if there are many. For a closed set they are of samples:
ratios for training pairs would otherwise know nothing of the classes of these pairs, unlike those for new pairs, and few values
would be left that several classes of each fold have. Groups of samples that the user gives are not divided in either case.

What is left out must not tell a same pair from a different one. So two folds are left out for every pair, and ratios are
learned only of values that several units of each fold have: of a value that two identities have, a ratio without one of them
would be known for same pairs only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from simtree._kernels import categories as kernels
from simtree._utils.folds import assign_folds
from simtree.pairs._labels import linked_units
from simtree.pairs._sources import PairSource
from simtree.pairs._store import mapped_parts, with_rows

Floats = NDArray[np.float64]

# Folds that ratios are computed without, and the number that new samples have.
N_FOLDS = 5
NO_FOLD = N_FOLDS
# Sets of at most two folds: none of them first, for new pairs.
LEFT_OUT = [(), *((f,) for f in range(N_FOLDS)), *combinations(range(N_FOLDS), 2)]
# Pairs that ratios are learned from, and pairs of values kept per category, of which those that occur most.
N_PAIRS = 200_000
MAX_RATIOS = 1 << 12
# A pair of values is trusted as if this many pairs had been seen of which nothing is known but whether they are equal.
SHRINKAGE = 10.0
# Half a pair of each kind is added, so that no ratio is infinite.
SMOOTHING = 0.5
# With fewer labels than this, folds are of samples even if the set may be open: little would be left to learn from without two
# folds of identities. So they are if one identity has more than this share of the samples.
MIN_IDENTITIES_FOR_FOLDS, MAX_SHARE = 11, 0.3
# A ratio is learned of values that at least this many identities (or samples) of each fold have.
MIN_HOLDERS = 2
N_STATES = 4
# Columns of a sample that tell its fold.
N_FOLD_COLUMNS = 2
MAX_RATIO = 50.0
MAX_CATEGORIES = 1 << 16


def left_out_sets() -> NDArray[np.int64]:
    """Return which entry of `LEFT_OUT` belongs to a pair of samples of two folds, `NO_FOLD` being one of them.

    Examples
    --------
    >>> sets = left_out_sets()
    >>> int(sets[NO_FOLD, NO_FOLD]), LEFT_OUT[sets[1, NO_FOLD]], LEFT_OUT[sets[3, 1]]
    (0, (1,), (1, 3))
    """
    place = {folds: number for number, folds in enumerate(LEFT_OUT)}
    found = np.empty((N_FOLDS + 1, N_FOLDS + 1), dtype=np.int64)
    for f in range(N_FOLDS + 1):
        for g in range(N_FOLDS + 1):
            found[f, g] = place[tuple(sorted({f, g} - {NO_FOLD}))]
    return found


SETS = left_out_sets()


@dataclass(frozen=True, eq=False)
class Categories:
    """Categories of samples, and what was learned of their values.

    Parameters
    ----------
    n_values : ndarray of int of shape (n_categories,)
        Length of the vocabulary of each category.
    rarities : ndarray of shape (sum of n_values,)
        Minus log of the frequency of each value.
    unseen : ndarray of shape (n_categories,)
        The same of a value that is not in the vocabulary.
    keys : ndarray of int
        Pairs of values of which a ratio is known, sorted within each category; see `simtree._kernels.categories.key_of`.
    n_keys : ndarray of int of shape (n_categories,)
        Number of them.
    ratios : ndarray of shape (n_keys, n_sets)
        Log-likelihood ratio of same against different pairs with these values, without each of the sets `LEFT_OUT`.
    priors : ndarray of shape (n_categories, 4, n_sets)
        The same of other pairs of values: different, equal, one missing, both missing.
    lacking : ndarray of bool of shape (n_categories, 2)
        Whether training pairs had the category missing in one sample, and in both.
    folds : ndarray of uint8 of shape (n_samples, 2)
        Fold of each training sample, and a random number that tells which other fold is left out for pairs within the fold.
    """

    n_values: NDArray[np.int64]
    rarities: Floats
    unseen: Floats
    keys: NDArray[np.int64]
    n_keys: NDArray[np.int64]
    ratios: Floats
    priors: Floats
    lacking: NDArray[np.bool_]
    folds: NDArray[np.uint8] = field(default_factory=lambda: np.empty((0, N_FOLD_COLUMNS), dtype=np.uint8))

    def __len__(self) -> int:
        return len(self.n_values)

    @classmethod
    def fit(
        cls,
        codes: Any,
        n_values: NDArray[np.int64],
        source: PairSource,
        known: NDArray[np.bool_] | None = None,
        *,
        closed_set: bool = False,
        groups: NDArray[np.int64] | None = None,
    ) -> Self:
        """Learn from the codes of training samples and their pairs; nothing depends on chance.

        Parameters
        ----------
        codes : ndarray or SampleStore of shape (n_samples, n_categories)
            Codes of the values.
        n_values : ndarray of int of shape (n_categories,)
            Length of the vocabulary of each category.
        source : PairSource
            Pairs of the samples.
        known : ndarray of bool of shape (n_samples,), optional
            Samples that may be used, if others are held out: the source is then restricted to them.
        closed_set : bool, default=False
            Whether new pairs will be of the same identities, so that folds are of samples, however many identities there are.
        groups : ndarray of int of shape (n_samples,), optional
            Group of each sample; folds do not divide groups.

        Returns
        -------
        Categories
            What was learned.
        """
        rng = np.random.default_rng(0)
        used = np.ones(len(codes), dtype=np.bool_) if known is None else known
        given = source.given()
        if given is not None:  # samples without a pair would be identities of their own
            used = used & np.isin(np.arange(len(codes)), np.append(given.first, given.second))
        folds = np.full(len(codes), NO_FOLD)
        units = np.full(len(codes), -1)
        folds[used], units[used] = _folds_and_units(source, used, rng, groups, closed_set=closed_set)
        chance = rng.integers(0, N_FOLDS - 1, len(codes))
        drawn = source.sample(N_PAIRS, rng, positive_fraction=0.5, shuffle=False)
        of_pairs = folds[drawn.first], folds[drawn.second]
        rows, pairs, _ = with_rows(codes, drawn)
        by_row = (used, folds.astype(np.uint8), units.astype(np.int32))  # they may be sent along
        counted = mapped_parts(codes, "count-values", partial(_count_values, n_values), *by_row)
        counts = [reduce(ValueCounts.add, of_parts) for of_parts in zip(*counted, strict=True)]
        learned = [
            _learn_ratios(rows[pairs.first, k], rows[pairs.second, k], own.are_frequent(), drawn.same, of_pairs)
            for k, own in enumerate(counts)
        ]
        rarities = [own.rarities() for own in counts]
        return cls(
            n_values=n_values,
            rarities=np.concatenate([own for own, _ in rarities]),
            unseen=np.array([unseen for _, unseen in rarities]),
            keys=np.concatenate([own.keys for own in learned]),
            n_keys=np.array([len(own.keys) for own in learned], dtype=np.int64),
            ratios=np.concatenate([own.ratios for own in learned]),
            priors=np.stack([own.priors for own in learned]),
            lacking=np.stack([own.lacking for own in learned]),
            folds=np.column_stack([folds, chance]).astype(np.uint8),
        )

    def __getstate__(self) -> dict[str, Any]:
        # Folds are needed only while a model is fitted; there is an entry for each sample.
        return {**vars(self), "folds": np.empty((0, N_FOLD_COLUMNS), dtype=np.uint8)}

    def fill(self, pairs: Any, column: int, place: int, pairwise: Floats) -> None:
        """Fill the columns of ``pairwise`` from ``place`` on with the coordinates of pairs.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs of samples that have their codes and folds as columns.
        column : int
            The first of these columns.
        place : int
            The first column to be filled.
        pairwise : ndarray of shape (n_pairs, n_pairwise)
            Pairwise coordinates.
        """
        starts = [np.concatenate([[0], np.cumsum(lengths)]) for lengths in (self.n_values, self.n_keys)]
        known = (self.rarities, starts[0], self.unseen, self.keys, starts[1], self.ratios, self.priors, self.lacking, SETS)
        kernels.fill_categories(*pairs[:4], column, self.n_values, *known, place, pairwise)

    def _get_state(self) -> dict[str, Any]:
        """Return what a model file holds: what is needed for new pairs."""
        return {
            "n_values": self.n_values,
            "rarities": self.rarities,
            "unseen": self.unseen,
            "keys": self.keys,
            "n_keys": self.n_keys,
            "ratios": np.ascontiguousarray(self.ratios[:, 0]),
            "priors": np.ascontiguousarray(self.priors[:, :, 0]),
            "lacking": self.lacking.astype(np.uint8),
        }

    @classmethod
    def _from_state(cls, fields: Any) -> Self:
        """Return the categories of a model file."""
        n_values = fields.lengths("n_values", None)
        if not 0 < len(n_values) <= MAX_CATEGORIES:
            raise fields.fail("n_values", "must have one entry per category")
        keys = fields.array("keys", "int64", (None,), low=0)
        n_keys = fields.lengths("n_keys", len(n_values), len(keys))
        ends = np.cumsum(n_keys)[:-1]
        for own, n in zip(np.split(keys, ends), n_values.tolist(), strict=True):
            if (np.diff(own) <= 0).any() or (len(own) and own[-1] >= (n + 1) ** 2):
                raise fields.fail("keys", "must be increasing pairs of values")
        ratios = fields.array("ratios", "float64", keys.shape, low=-MAX_RATIO, high=MAX_RATIO)
        priors = fields.array("priors", "float64", (len(n_values), N_STATES), low=-MAX_RATIO, high=MAX_RATIO)
        rarities = fields.array("rarities", "float64", (int(n_values.sum()),), low=0.0, high=MAX_RATIO)
        unseen = fields.array("unseen", "float64", n_values.shape, low=0.0, high=MAX_RATIO)
        lacking = fields.array("lacking", "uint8", (len(n_values), 2), high=1).astype(np.bool_)
        return cls(n_values, rarities, unseen, keys, n_keys, ratios[:, None], priors[:, :, None], lacking)


def _folds_and_units(
    source: PairSource,
    known: NDArray[np.bool_],
    rng: np.random.Generator,
    groups: NDArray[np.int64] | None,
    *,
    closed_set: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the fold and the unit of each known sample.

    The unit is its identity, with all that groups link with it, if the set may be open, there are many and none is large;
    otherwise its group, or the sample itself.
    """
    identities = same_identities(source, len(known))
    if source.labels is None:
        identities = np.unique(identities[known], return_inverse=True)[1]
    if groups is not None:
        groups = np.unique(groups[known], return_inverse=True)[1]
    units = identities if groups is None else linked_units(identities, groups)
    n_units = int(units.max()) + 1
    largest = np.bincount(units).max() / len(units)
    if not closed_set and n_units >= MIN_IDENTITIES_FOR_FOLDS and largest <= MAX_SHARE:
        return assign_folds(n_units, N_FOLDS, rng)[units], units
    if groups is not None:
        return assign_folds(int(groups.max()) + 1, N_FOLDS, rng)[groups], groups
    return assign_folds(len(identities), N_FOLDS, rng, identities), np.arange(len(identities))


@dataclass(frozen=True)
class ValueCounts:
    """How often each value of a category occurs in some samples, and who has it.

    Parameters
    ----------
    counts : ndarray of int of shape (n_values,)
        Number of samples with each value.
    others : ndarray
        Distinct codes of values that are not in the vocabulary.
    n_others : int
        Number of samples with such a value.
    holders : ndarray of int of shape (n_holders, 3)
        Value (missing being the last), fold and unit of samples: of each value and fold, as many units as are needed.
    """

    counts: NDArray[np.int64]
    others: Floats
    n_others: int
    holders: NDArray[np.int64]

    @classmethod
    def of(cls, codes: Floats, n_values: int, folds: NDArray[np.uint8], units: NDArray[np.int32]) -> Self:
        """Return the counts of the codes of some samples, which have these folds and units."""
        values = np.where(codes < 0, n_values, codes)
        inside = values <= n_values
        known = codes[(codes >= 0) & (codes < n_values)].astype(np.int64)
        others = codes[codes >= n_values]
        holders = np.column_stack([values[inside].astype(np.int64), folds[inside], units[inside]])
        return cls(np.bincount(known, minlength=n_values), np.unique(others), len(others), _first_holders(holders))

    def add(self, other: ValueCounts) -> ValueCounts:
        """Return the counts of the samples of both."""
        return ValueCounts(
            self.counts + other.counts,
            np.unique(np.concatenate([self.others, other.others])),
            self.n_others + other.n_others,
            _first_holders(np.concatenate([self.holders, other.holders])),
        )

    def are_frequent(self) -> NDArray[np.bool_]:
        """Return whether each value, and last a missing one, is one that enough units of each fold have."""
        n_holders = np.zeros((len(self.counts) + 1, N_FOLDS), dtype=np.int64)
        np.add.at(n_holders, (self.holders[:, 0], self.holders[:, 1]), 1)
        return np.asarray(n_holders.min(axis=1) >= MIN_HOLDERS)

    def rarities(self) -> tuple[Floats, float]:
        """Return minus log of the frequency of each value, and of a typical value that is not in the vocabulary."""
        n = max(int(self.counts.sum()) + self.n_others, 1)
        typical = self.n_others / len(self.others) if len(self.others) else 1.0
        return np.log(n / np.maximum(self.counts, 1)), float(np.log(n / typical)) if typical < n else 0.0


def _count_values(
    n_values: NDArray[np.int64],
    codes: Floats,
    used: NDArray[np.bool_],
    folds: NDArray[np.uint8],
    units: NDArray[np.int32],
) -> list[ValueCounts]:
    """Return the counts of each category in the samples that are used."""
    return [ValueCounts.of(codes[used, k], int(n), folds[used], units[used]) for k, n in enumerate(n_values)]


def _first_holders(holders: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return distinct holders, of each value and fold the first `MIN_HOLDERS` units."""
    found = np.unique(holders, axis=0)
    if len(found) <= MIN_HOLDERS:
        return found
    is_further = (found[MIN_HOLDERS:, :2] == found[:-MIN_HOLDERS, :2]).all(axis=1)
    return np.asarray(found[np.concatenate([np.ones(MIN_HOLDERS, dtype=np.bool_), ~is_further])])


def same_identities(source: PairSource, n_samples: int) -> NDArray[np.int64]:
    """Return the identity of each sample: its label, or which samples the given same pairs link with it.

    Parameters
    ----------
    source : PairSource
        Pairs of the samples.
    n_samples : int
        Number of samples.

    Returns
    -------
    ndarray of int of shape (n_samples,)
        Identities.
    """
    if source.labels is not None:
        return np.asarray(source.labels)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    given = source.given()
    assert given is not None
    same = given.take(given.same)
    links = coo_array((np.ones(len(same), dtype=np.int8), (same.first, same.second)), shape=(n_samples, n_samples))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


class _Learned(NamedTuple):
    """What was learned of the values of one category, see `Categories`."""

    keys: NDArray[np.int64]
    ratios: Floats
    priors: Floats
    lacking: NDArray[np.bool_]


def _learn_ratios(
    u: Floats,
    v: Floats,
    frequent: NDArray[np.bool_],
    same: NDArray[np.bool_],
    folds: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> _Learned:
    """Return the keys of the most frequent pairs of values, their ratios and the ratios of the states, without each set.

    ``frequent`` tells of which values, missing being the last, ratios are learned.
    """
    n_values = len(frequent) - 1
    i, j = (np.where(own < 0, n_values, np.minimum(own, n_values + 1)).astype(np.int64) for own in (u, v))
    keys = np.minimum(i, j) * (n_values + 1) + np.maximum(i, j)
    frequent = np.append(frequent, False)  # what is not in the vocabulary
    keys[~(frequent[i] & frequent[j])] = -1
    states = np.where((u < 0) & (v < 0), 3, np.where((u < 0) | (v < 0), 2, np.where(u == v, 1, 0)))
    # Counts of same and different pairs by key (or state) and by the two folds, from which those of a set are subtracted.
    known, of_key, totals = np.unique(keys[keys >= 0], return_inverse=True, return_counts=True)
    of_folds = folds[0] * N_FOLDS + folds[1]
    by_key = _counts(of_key, same[keys >= 0], of_folds[keys >= 0], len(known))
    by_state = _counts(states, same, of_folds, N_STATES)
    n_all = by_state.sum(axis=1)  # (n_sets, 2)
    weight = n_all[:, 1] / np.maximum(n_all[:, 0], 1.0)  # of a different pair, so that both kinds weigh equally
    shares = (by_state[:, :, 1] + SMOOTHING, by_state[:, :, 0] * weight[:, None] + SMOOTHING)
    priors = np.log(shares[0] / shares[1])  # (n_sets, n_states)
    kept = np.sort(np.argsort(-totals, kind="stable")[:MAX_RATIOS])
    state_of_key = np.zeros(len(known), dtype=np.int64)
    state_of_key[of_key] = states[keys >= 0]
    expected = 1.0 / (1.0 + np.exp(-priors[:, state_of_key[kept]]))  # share of same pairs of the state
    n_same, n_different = by_key[:, kept, 1], by_key[:, kept, 0] * weight[:, None]
    ratios = np.log((n_same + SHRINKAGE * expected) / (n_different + SHRINKAGE * (1.0 - expected)))
    clipped = np.clip(ratios, -MAX_RATIO, MAX_RATIO)
    of_states = np.ascontiguousarray(np.clip(priors, -MAX_RATIO, MAX_RATIO).T)
    return _Learned(known[kept], np.ascontiguousarray(clipped.T), of_states, by_state[0, 2:].sum(axis=1) > 0)


def _counts(codes: NDArray[np.int64], same: NDArray[np.bool_], folds: NDArray[np.int64], n: int) -> Floats:
    """Return the number of pairs by set of folds that are left out, code, and kind (different, same)."""
    cell = (codes * 2 + same) * N_FOLDS**2 + folds
    counts = np.bincount(cell, minlength=n * 2 * N_FOLDS**2).reshape(n, 2, N_FOLDS, N_FOLDS)
    found = np.empty((len(LEFT_OUT), n, 2))
    for number, left_out in enumerate(LEFT_OUT):
        kept = np.delete(np.arange(N_FOLDS), left_out)
        found[number] = counts[:, :, kept][:, :, :, kept].sum(axis=(2, 3))
    return found
