"""What trees, forests and boosted trees share: coordinates of pairs, explanations, importances, their part of a model file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from simtree._utils.matrices import MAX_SQUARED, extremes, has_missing
from simtree._utils.validation import check_choice, check_integer, check_n_jobs, count
from simtree.io._fields import Fields
from simtree.models._base import Similarity
from simtree.models._empty_columns import empty_columns
from simtree.models._represented import RepresentedMixin
from simtree.pairs._categories import N_FOLD_COLUMNS, Categories
from simtree.pairs._coordinates import OBLIQUE, CoordinateSet, SamplePairs
from simtree.pairs._directions import (
    FISHER,
    MAX_DISCRIMINANT,
    MAX_FISHER,
    MAX_FISHER_CLASSES,
    MAX_FISHER_SAMPLES,
    RANDOM,
    WAYS,
    discriminant_directions,
    fisher_directions,
    random_directions,
)
from simtree.pairs._inputs import check_pairs, check_two
from simtree.pairs._limits import check_training_values, max_value
from simtree.pairs._sampling import check_drawing
from simtree.pairs._sources import PairSource
from simtree.pairs._store import selected, with_rows
from simtree.representation._applied import represented_names
from simtree.representation._columns import passes_missing
from simtree.trees._explanation import Explanation, explain, with_words
from simtree.trees._rank_tree import RankTree

# Maximum number of pairs that discriminant directions are computed from.
DIRECTION_PAIRS = 100_000


class TreeModel(RepresentedMixin, Similarity):
    """Base class of similarities that consist of trees over the coordinates of pairs."""

    representation: Any
    categorical_features: ArrayLike | str | None
    coordinates: Sequence[str] | None
    directions: str | Sequence[str]
    n_directions: int | None
    n_pairs: int | None
    positive_fraction: float | None
    same_weighting: str
    open_set: bool | str

    def _coordinate_set(
        self,
        samples: NDArray[Any],
        source: PairSource,
        rng: np.random.Generator,
        kinds: Sequence[str],
        directions: NDArray[np.float64] | None,
        *,
        squares: bool = False,
        known: NDArray[np.bool_] | None = None,
        groups: NDArray[np.int64] | None = None,
    ) -> CoordinateSet:
        """Return the coordinates of represented samples after checking these; ``rng`` is used if directions are not given.

        ``squares`` tells that something else sums squares of features; ``known`` which samples are not held out; ``groups``
        which of them folds keep together.
        """
        n_features = samples.shape[1] - self._n_codes()
        numbers = selected(samples, slice(0, n_features)) if self._n_codes() else samples
        squared = squares or (directions is None and OBLIQUE in kinds and self._directions_are_fitted())
        self._check_magnitude(numbers, *_limit(kinds, n_features, squared))
        check_training_values(numbers, kinds)
        if directions is None:
            if OBLIQUE in kinds and not n_features:
                raise ValueError(
                    "coordinates has 'oblique', which are sums of numbers, but X has categories only; leave it out."
                )
            directions = self._find_directions(numbers, source, rng) if OBLIQUE in kinds else np.empty((0, n_features))
        categories = None
        if self._n_codes():
            assert self.columns_ is not None
            codes = selected(samples, slice(n_features, None))
            closed_set = self._is_closed_set()
            categories = Categories.fit(codes, self.columns_.n_values, source, known, closed_set=closed_set, groups=groups)
        return CoordinateSet(tuple(kinds), n_features, directions, categories)

    def _is_closed_set(self) -> bool:
        """Return whether the model is told that it will meet the identities of the training data only."""
        return self.open_set != "auto" and not self.open_set

    def _takes_missing(self) -> bool:
        if self.representation is None or passes_missing(self.representation):
            return self._trees_take_missing()
        return super()._takes_missing()

    def _takes_represented_missing(self) -> bool:
        return self._trees_take_missing()

    def _trees_take_missing(self) -> bool:
        """Return whether the trees can be grown on samples that lack values."""
        return True

    def _columns_with_values(self, samples: NDArray[Any], pair_map: CoordinateSet) -> NDArray[np.int64]:
        """Return the columns of extended samples that trees may use, with a warning if a feature has no value at all."""
        empty = empty_columns(samples, self._names(None) if has_missing(samples) else None)
        return np.delete(np.arange(pair_map.n_columns), empty)

    def _find_directions(self, samples: NDArray[Any], source: PairSource, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the directions of oblique coordinates, which are zero for features that no sample has."""
        n_features = samples.shape[1]
        used = np.arange(n_features)
        if has_missing(samples):
            used = np.flatnonzero(~np.isnan(extremes(samples, axis=0)[0]))
        found = []
        for way in self._ways():
            if way == RANDOM:
                n = max(1, n_features - 1) if self.n_directions is None else int(self.n_directions)
                found.append(random_directions(n, len(used), rng))
            elif way == FISHER:
                n = MAX_FISHER if self.n_directions is None else int(self.n_directions)
                found.append(_fisher(samples, source, n, used, rng))
            else:
                n = MAX_DISCRIMINANT if self.n_directions is None else int(self.n_directions)
                drawn = source.sample(DIRECTION_PAIRS, rng, positive_fraction=0.5, shuffle=False)
                rows, drawn, _ = with_rows(samples, drawn)
                pairs = SamplePairs(rows, rows, drawn.first, drawn.second, lacks_values=has_missing(samples))
                found.append(discriminant_directions(pairs, drawn.same, n, used))
        directions = np.zeros((sum(map(len, found)), n_features))
        directions[:, used] = np.concatenate(found)
        return directions

    def _ways(self) -> list[str]:
        """Return how directions are found, as a list."""
        return [self.directions] if isinstance(self.directions, str) else list(self.directions)

    def _directions_are_fitted(self) -> bool:
        """Return whether directions are fitted to what is the same and what is different."""
        return any(way != RANDOM for way in self._ways())

    def _check_parameters(self) -> None:
        kinds = self.coordinates
        if kinds is not None and not (isinstance(kinds, list | tuple) and all(isinstance(kind, str) for kind in kinds)):
            raise TypeError(f"coordinates={kinds!r} is not a list of strings; give one, such as ['abs_diff', 'sum'].")
        ways = [self.directions] if isinstance(self.directions, str) else self.directions
        if not isinstance(ways, list | tuple) or not ways or any(way not in WAYS for way in ways):
            raise ValueError(f"directions={self.directions!r} is unknown; give one or a list of {', '.join(map(repr, WAYS))}.")
        if self.n_directions is not None:
            check_integer("n_directions", self.n_directions, 1)
        check_choice("open_set", self.open_set, (True, False, "auto"))
        check_n_jobs(self.n_jobs)
        check_drawing(self.n_pairs, self.positive_fraction, self.same_weighting)

    def apply(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.int32]:
        """Return the terminal cell of each pair in each tree.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or (n_pairs, 2) with X
            Pairs of samples, or of row indices of X (or of identifiers for the preprocessor).
        X : array-like of shape (n_samples, n_features), optional
            Samples that row indices refer to.

        Returns
        -------
        ndarray of shape (n_pairs, n_trees)
            Indices into the arrays of ``cells`` of each tree.
        """
        check_is_fitted(self)
        samples, first, second = check_pairs(self, pairs, X)
        prepared = self._prepare(samples)
        return np.column_stack([tree.apply(SamplePairs(prepared, prepared, first, second)) for tree in self._trees()])

    def explain_pair(self, x: ArrayLike, x2: ArrayLike, *, feature_names: Sequence[str] | None = None) -> Explanation:
        """Explain the score of the pair (x, x2) by the contribution of each feature.

        Print the explanation, or plot it with `simtree.plots.ExplanationDisplay`.

        Parameters
        ----------
        x, x2 : array-like of shape (n_features,)
            The two samples.
        feature_names : sequence of str, optional
            Names of the features; by default those seen in `fit`, or x0, x1, ...

        Returns
        -------
        Explanation
            Contribution of each feature; with a representation, of each of its output features. One that changes each feature
            by itself, such as `MarginalQuantiles`, leaves the values that are shown as they were given.
        """
        check_is_fitted(self)
        return self._explain_rows(check_two(self, x, x2), feature_names=feature_names)

    def _explain_rows(self, samples: NDArray[Any], *, feature_names: Sequence[str] | None = None) -> Explanation:
        """Explain the score of two rows that are checked, and read from a table, already."""
        prepared = self._prepare(samples)
        leaf_values = self._leaf_values()
        if leaf_values is None:
            raise ValueError("aggregation='median_rank': a median is not a sum over trees; explain with another aggregation.")
        first, second = np.array([[0], [1]], dtype=np.int32)
        found = explain(*leaf_values, SamplePairs(prepared, prepared, first, second), self._names(feature_names))
        if self.representation_ is not None and passes_missing(self.representation_):
            x, x2 = self._given_and_kept(samples)[0]
            found = replace(found, x=x, x2=x2)
        return with_words(found, self.columns_, samples) if self.columns_ is not None and self._n_codes() else found

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the AUC gain of all splits; sums to one (all zero if there are no splits)."""
        check_is_fitted(self)
        gains = np.sum([tree.feature_gains() for tree in self._trees()], axis=0)
        total = gains.sum()
        return np.asarray(gains / total if total > 0.0 else gains, dtype=np.float64)

    @abstractmethod
    def _trees(self) -> list[RankTree]:
        """Return the grown trees."""

    def _get_trees_state(self) -> dict[str, Any]:
        """Return the state of the representation and the trees for a model file."""
        return {"representation": self._get_representation_state(), "trees": RankTree._get_state(self._trees())}

    def _set_trees_state(self, fields: Fields) -> list[RankTree]:
        """Restore the representation from a model file; return the trees."""
        n_features = self._set_representation_state(fields)
        trees = RankTree._from_state(fields.part("trees"))
        if trees[0].pair_map.n_features != n_features or trees[0].pair_map.n_categories != self._n_codes():
            raise fields.fail("trees", f"must be for samples with {count(n_features, 'feature')}")
        return trees

    def _units(
        self,
        samples: NDArray[Any],
        source: PairSource,
        groups: NDArray[np.int64] | None,
        pairs: ArrayLike | None,
        *,
        by_class: bool,
        reason: str,
    ) -> NDArray[np.int64]:
        """Return the unit of bags and folds of each sample, as an integer; ``reason`` is the parameter that needs it."""
        if groups is not None:
            return groups
        if source.labels is not None:
            return source.labels if by_class else np.arange(len(samples))
        if pairs is None or by_class:
            rest = "." if by_class else ", or give pairs as row indices of X."
            raise ValueError(f"{reason} requires the identity of each sample of a pair; give groups{rest}")
        return np.arange(len(samples))

    def _names(self, feature_names: Sequence[str] | None) -> Sequence[str] | None:
        """Return the given feature names, or those seen in fit, after checking their number."""
        columns = getattr(self, "columns_", None)
        own = getattr(self, "feature_names_in_", None) if columns is None else columns.names
        names = own if feature_names is None else feature_names
        if names is not None and len(names) != self._n_read():
            raise ValueError(f"feature_names has {count(len(names), 'name')}; X had {count(self._n_read(), 'feature')}.")
        if self.representation_ is None or names is None:
            return names if self.representation_ is None else represented_names(self.representation_, None)
        n_numbers = len(names) - self._n_codes()
        represented = represented_names(self.representation_, names[:n_numbers])
        if represented is not None and columns is not None and not self._n_codes():
            represented = columns.with_values(represented)
        if represented is None and self._n_codes():
            represented = [f"x{j}" for j in range(self._trees()[0].pair_map.n_features)]
        return None if represented is None else [*represented, *names[n_numbers:]]

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        pair_map = self._trees()[0].pair_map
        if not len(samples):
            return np.empty((0, pair_map.n_columns + (pair_map.n_categories + N_FOLD_COLUMNS if pair_map.n_categories else 0)))
        represented = self._represent(samples)
        numbers = represented[:, : pair_map.n_features] if pair_map.n_categories else represented
        # The regions of a model that are not axis regions are all of one kind.
        region = next((region for tree in self._trees() for region in tree.regions.values()), None)
        squared = region is not None and region.kind != "linear"
        self._check_magnitude(numbers, *_limit(pair_map.kinds, pair_map.n_features, squared))
        return pair_map.extend(represented)


def _limit(kinds: Sequence[str], n_features: int, squared: bool) -> tuple[float, str]:
    """Return the largest absolute value of a feature, and what requires it; ``squared`` if the splitter sums squares."""
    limit, needed_by = max_value(kinds, n_features)
    return (MAX_SQUARED, "the splitter's sums of squares") if squared and limit > MAX_SQUARED else (limit, needed_by)


def _fisher(
    samples: NDArray[Any], source: PairSource, n_directions: int, used: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return Fisher directions of some features; of many samples or classes, those of a subsample."""
    members = source.members()
    if members is None:
        raise ValueError(
            "directions='fisher' tells classes apart, but pairs were given; give labelled samples, or use 'discriminant'."
        )
    rows, starts = members
    classes = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    if len(starts) - 1 > MAX_FISHER_CLASSES:
        known = np.isin(classes, rng.choice(len(starts) - 1, MAX_FISHER_CLASSES, replace=False))
        rows, classes = rows[known], classes[known]
    if len(rows) > MAX_FISHER_SAMPLES:
        drawn = rng.choice(len(rows), MAX_FISHER_SAMPLES, replace=False)
        rows, classes = rows[drawn], classes[drawn]
    order = np.argsort(rows)
    numbers = np.unique(classes[order], return_inverse=True)[1]
    found = fisher_directions(samples[rows[order]][:, used], numbers, n_directions)
    if not len(found):
        raise ValueError("directions='fisher': all classes have the same mean; use directions='discriminant' or 'random'.")
    return found
