"""SimilarityBoosting: a similarity learned as gradient-boosted trees."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree._utils.progress import CallbackSupportMixin, reported, with_callbacks
from simtree._utils.validation import check_choice, check_integer, check_real, count, n_to_draw
from simtree.growing._boosting import BoostedTree, Booster, BoostingParams
from simtree.io._fields import Fields
from simtree.io._registry import MODEL, register
from simtree.metrics import Roc, youden_threshold
from simtree.models import _warm_start as warm_start
from simtree.models._base import LeafValues
from simtree.models._early_stopping import (
    CURVE,
    MIN_HELD_OUT,
    ROUNDS_PER_EVALUATION,
    HeldOut,
    ValidationCurve,
    curve_from_state,
    hold_out,
    subsample,
)
from simtree.models._forest import MAX_SEEDS, TRAINING_SAMPLE
from simtree.models._open_set import is_open_set
from simtree.models._tree_model import TreeModel
from simtree.models._tree_values import mean_values
from simtree.pairs._coordinates import KINDS, CoordinateSet, SamplePairs
from simtree.pairs._directions import RANDOM
from simtree.pairs._inputs import check_training, check_weights
from simtree.pairs._labels import encode_groups
from simtree.pairs._sources import PairSource
from simtree.pairs._table import FROM_DTYPE, TableColumns
from simtree.trees import _export as rules
from simtree.trees._code_walk import CodedTrees, can_code
from simtree.trees._rank_tree import MAX_DEPTH, MAX_TREES, RankTree

# Larger parameters, or leaf values in a model file, are treated as mistakes.
MAX_LEAVES, MAX_L2, MAX_VALUE = 1 << 12, 1e9, 1e3
# Time that a test of a code takes, relative to a test of a coordinate in a forest.
COST_OF_CODED_TEST = 0.3


@register(MODEL)
class SimilarityBoosting(CallbackSupportMixin, TreeModel):
    """A similarity learned as gradient-boosted trees over the symmetric coordinates of pairs.

    Each tree is grown on the gradients of the logistic loss of the trees before it, and the score of a pair is the sum of the
    values of its leaves. From labelled samples, new pairs are drawn every few rounds. The number of rounds is found on held-out
    identities, samples or pairs, and the model is then refitted on all of them.

    Parameters
    ----------
    n_estimators : int, default=1000
        Number of trees (boosting rounds); with early stopping, the maximum.
    learning_rate : float, default=0.1
        Factor of the values of each tree.
    max_leaf_nodes : int, default=63
        Maximum number of leaves of a tree. The leaf whose split decreases the loss most is split next.
    max_depth : int or None, default=None
        Maximum depth of a tree, from 1 to 52; None for 52.
    min_samples_leaf : int, default=20
        Minimum number of pairs in a leaf.
    l2 : float or "auto", default="auto"
        L2 penalty of leaf values. ``"auto"`` is 1 for labelled samples with ``refresh``, and 0.01 where pairs stay the same. A
        large one hardly tells the most similar pairs apart; with a small one, single new pairs among them count too much.
    max_features : int, float or None, default=None
        Number of features (share of them if a float) drawn for each tree; None uses all. Pairwise coordinates are always
        used.
    subsample : float, default=1.0
        Share of the pairs drawn for each tree, without replacement.
    monotonic_cst : dict, sequence of int, or None, default=None
        Direction in which the score may change with a coordinate: 1 if it must not decrease, -1 if it must not increase, 0 for
        any. A dict from kinds of coordinates to directions, such as ``{"abs_diff": -1}`` (more different is never more
        similar), or one entry per coordinate. For ``oblique`` coordinates it applies to ``|w·(x - x')|``.
    representation, categorical_features, coordinates, directions, n_directions : see `SimilarityTree`
        Representation of the samples, and coordinates of their pairs; by default ``["abs_diff", "sum"]``.
    n_pairs, positive_fraction, same_weighting : see `SimilarityTree`
        How pairs are sampled; ``n_pairs`` is the number of pairs at a time.
    refresh : int or None, default=10
        Number of rounds after which new pairs of labelled samples are drawn; None keeps the first pairs. Given pairs are kept.
    focus_fpr : float or None, default=None
        If given, half of the different pairs are drawn among those whose scores by the trees so far are the highest of this
        share, and pairs are weighted such that the loss is still that of all pairs. Requires labelled samples and ``refresh``.
        It has no effect where all pairs are used, because there are no more than ``n_pairs``: no new ones can be drawn.
    early_stopping : bool or "auto", default="auto"
        Whether part of the data is held out to find the number of rounds: by the TPR averaged over false positive rates around
        0.001, such that it does not fall at the lowest of them, and among near equals also by the AUC. ``"auto"`` does so
        unless too few pairs could be held out, or ``warm_start`` is set.
    validation_fraction : float, default=0.2
        Share that is held out: of identities (open set) or of samples (closed set), of ``groups`` if they are given, or of
        given pairs that share no sample. Of other given pairs, those between the two parts are not used to find the number of
        rounds, and up to one half is held out if too few pairs would be.
    n_iter_no_change : int, default=50
        Number of rounds without improvement after which to stop.
    open_set : bool or "auto", default="auto"
        Whether entire identities are held out, because the model will be used on unseen ones. ``"auto"`` is True if there are
        more than 10 labels. In pairs given as row indices, samples that same pairs link are taken for one identity. It also
        decides how evidence of pairs of values of a category is cross-fitted: over identities, or over samples.
    refit : bool, default=True
        Whether to refit on all data with the number of rounds that was found. If False, the trees grown without the held-out
        part are kept.
    max_bins : int, default=255
        Maximum number of bins per coordinate, from 2 to 256.
    preprocessor : see `SimilarityTree`
        Samples that identifiers refer to.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for pairs, features and held-out data.
    warm_start : bool, default=False
        Whether to keep the existing trees in the next call to `fit` and add trees up to ``n_estimators``. Features and
        ``coordinates`` must be the same, and if there are categories, samples and labels too.
    verbose : int, default=0
        Set to 1 to show progress.

    Attributes
    ----------
    trees_ : list of RankTree
        The trees; each of their cells is split by one test.
    values_ : list of ndarrays of shape (n_cells,)
        Values of the cells of each tree; the score of a pair is the sum over trees of the value of its terminal cell.
    best_iteration_ : int
        Number of rounds with the best held-out result; the number of trees without early stopping.
    validation_curve_ : dict of ndarrays or None
        Held-out results: ``iteration`` (number of rounds), ``tpr`` (averaged over low false positive rates), ``auc`` and
        ``log_loss`` (same and different pairs weigh equally). None without early stopping.
    validation_roc_ : Roc
        ROC curve on the held-out pairs after ``best_iteration_`` rounds, if there was early stopping.
    open_set_ : bool or None
        Whether entire identities were held out; None for given pairs, or without early stopping.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it maximises TPR - FPR on the held-out pairs, or on
        a subsample of the training pairs without early stopping; choose it on held-out data with `calibrate_threshold`.
    columns_ : TableColumns or None
        How a table with categories, booleans or dates is read, see `SimilarityTree`; None for numbers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    See Also
    --------
    SimilarityForest : Trees grown independently of each other.
    AutoSimilarity : Choose among models and representations by cross-validation.

    Notes
    -----
    A score is an estimate of the log-likelihood ratio: it does not depend on the share of same pairs. It is overconfident until
    it is calibrated on held-out data with `calibrate_probability`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import SimilarityBoosting
    >>> X, y = load_iris(return_X_y=True)
    >>> boosting = SimilarityBoosting(n_estimators=50, random_state=0).fit(X, y)
    >>> bool(boosting.validation_roc_.auc() > 0.97)
    True
    """

    trees_: list[RankTree]
    values_: list[NDArray[np.float64]]
    validation_curve_: dict[str, NDArray[Any]] | None
    validation_roc_: Roc
    open_set_: bool | None
    best_iteration_: int
    _closed_set: bool
    _entropy: tuple[int, ...]
    _training_roc: Roc
    _coded: CodedTrees | None

    def __init__(
        self,
        *,
        n_estimators: int = 1000,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 63,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2: float | str = "auto",
        max_features: int | float | None = None,
        subsample: float = 1.0,
        monotonic_cst: Mapping[str, int] | Sequence[int] | None = None,
        representation: Any = None,
        categorical_features: ArrayLike | str | None = FROM_DTYPE,
        coordinates: Sequence[str] | None = None,
        directions: str | Sequence[str] = RANDOM,
        n_directions: int | None = None,
        n_pairs: int | None = 100_000,
        positive_fraction: float | None = 0.5,
        same_weighting: str = "pairs",
        refresh: int | None = 10,
        focus_fpr: float | None = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 50,
        open_set: bool | str = "auto",
        refit: bool = True,
        max_bins: int = 255,
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2 = l2
        self.max_features = max_features
        self.subsample = subsample
        self.monotonic_cst = monotonic_cst
        self.representation = representation
        self.categorical_features = categorical_features
        self.coordinates = coordinates
        self.directions = directions
        self.n_directions = n_directions
        self.n_pairs = n_pairs
        self.positive_fraction = positive_fraction
        self.same_weighting = same_weighting
        self.refresh = refresh
        self.focus_fpr = focus_fpr
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.open_set = open_set
        self.refit = refit
        self.max_bins = max_bins
        self.preprocessor = preprocessor
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pairs: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        never_pair: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the trees on labelled samples, or on given pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples; with a ``preprocessor`` also identifiers of shape ``(n_pairs, 2)``.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.
        groups : array-like, optional
            Group of each sample, such as its speaker; entire groups are held out for early stopping, and folds in which
            evidence of categories is learned keep them together. One entry per row of X, or shape ``(n_pairs, 2)`` for pairs
            given as ``(n_pairs, 2, n_features)``.
        never_pair : array-like of shape (n_samples,), optional
            Labelled samples that share a value here never form a pair, see `SimilarityTree.fit`.
        sample_weight : array-like of shape (n_pairs,), optional
            Weight of each given pair, in the loss, in early stopping, and in the ROC curves that thresholds are chosen on.
            Pairs of weight 0 are left out, as if they were not given.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            columns_before = getattr(self, "columns_", None)
            samples, source = check_training(self, X, y, pairs, never_pair)
            if self.focus_fpr is not None and source.labels is None:
                raise ValueError(f"focus_fpr={self.focus_fpr!r} draws new pairs, but pairs are given; set focus_fpr=None.")
            source, weights = check_weights(sample_weight, source)
            units = None if groups is None else encode_groups(groups, len(samples))
            earlier = self._earlier(samples.shape[1])
            self._closed_set = self._is_closed_set()
            if not earlier:
                self._entropy = tuple(check_random_state(self.random_state).randint(2**31, size=4).tolist())
            held_out = self._hold_out(len(samples), source, units, weights)
            rounds = self._rounds(samples, source, units, weights, held_out, earlier, columns_before)
            n_steps = self.n_estimators * (2 if held_out is not None and self.refit else 1) - len(earlier)
            for _ in reported(rounds, self, n_steps=n_steps, what="boosting", verbose=self.verbose):
                pass
        return self

    @property
    def roc_(self) -> Roc:
        """ROC curve on a subsample of the training pairs."""
        check_is_fitted(self)
        return self._training_roc

    @property
    def auc_(self) -> float:
        """AUC on a subsample of the training pairs."""
        return self.roc_.auc()

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the decrease of the loss by all splits; sums to one (all zero if there are no splits)."""
        check_is_fitted(self)
        pair_map = self.trees_[0].pair_map
        by_coordinate = np.zeros(len(pair_map))
        for tree in self.trees_:
            np.add.at(by_coordinate, tree.coordinate, tree.decrease)
        total = by_coordinate.sum()
        return pair_map.by_feature(by_coordinate / total if total > 0.0 else by_coordinate)

    def _rounds(
        self,
        samples: NDArray[Any],
        source: PairSource,
        groups: NDArray[np.int64] | None,
        weights: NDArray[np.float64] | None,
        held_out: HeldOut | None,
        earlier: Sequence[tuple[RankTree, NDArray[np.float64]]],
        columns_before: TableColumns | None,
    ) -> Iterator[None]:
        """Fit the model, yielding after each round."""
        self.validation_curve_ = None
        self.__dict__.pop("validation_roc_", None)
        n_rounds = self.n_estimators
        if held_out is not None:
            grown, prepared = yield from self._search(samples, held_out, groups)
            n_rounds = self.best_iteration_
            source, weights = (source, weights) if self.refit else (held_out.seen, held_out.weights)
        if held_out is None or self.refit:
            represented = self._fit_representation(samples, source)
            directions = earlier[0][0].pair_map.directions if earlier else None
            params = self._boosting_params(represented, source, directions, groups)
            if earlier:
                warm_start.check_categories(earlier[0][0].pair_map, params.pair_map, columns_before, self.columns_)
            prepared = params.pair_map.extend(represented, training=True)
            grown = []
            with Booster(params, prepared, source, self._entropy, weights=weights, n_jobs=self.n_jobs) as booster:
                for tree in booster.rounds(n_rounds, earlier):
                    grown.append(tree)
                    yield
        self.trees_ = [tree for tree, _ in earlier] + [one.tree for one in grown]
        self.values_ = [values for _, values in earlier] + [one.values for one in grown]
        self.best_iteration_ = len(self.trees_)
        self._code()
        self._training_roc = self._curve(prepared, *subsample(source, weights, TRAINING_SAMPLE, np.random.default_rng(0)))
        self.threshold_ = youden_threshold(self._training_roc if held_out is None else self.validation_roc_)

    def _search(
        self, samples: NDArray[Any], held_out: HeldOut, groups: NDArray[np.int64] | None
    ) -> Generator[None, None, tuple[list[BoostedTree], NDArray[Any]]]:
        """Boost without the held-out part until its results are no longer improved; return the trees up to the best round."""
        represented = self._represent_known(samples, held_out)
        params = self._boosting_params(represented, held_out.seen, None, groups, held_out.known)
        prepared = params.pair_map.extend(represented, training=True)
        grown: list[BoostedTree] = []
        rng = np.random.default_rng(np.random.SeedSequence([*self._entropy, 1]))
        chosen, weights = held_out.sample(rng, self.same_weighting)
        units = held_out.units[chosen.first], held_out.units[chosen.second]
        curve = ValidationCurve(self.n_iter_no_change, chosen.same, units, weights)
        with Booster(params, prepared, held_out.seen, self._entropy, weights=held_out.weights, n_jobs=self.n_jobs) as booster:
            validation = booster.encode(chosen)
            for number, tree in enumerate(booster.rounds(self.n_estimators), start=1):
                grown.append(tree)
                booster.add(tree, validation)
                yield
                if number % ROUNDS_PER_EVALUATION == 0 or number == self.n_estimators:
                    curve.add(number, validation.scores)
                if curve.stopped:
                    break
        self.best_iteration_, self.validation_roc_, self.validation_curve_ = (
            curve.best.iteration,
            curve.best.roc,
            curve.columns(),
        )
        return grown[: self.best_iteration_], prepared

    def _represent_known(self, samples: NDArray[Any], held_out: HeldOut) -> NDArray[Any]:
        """Return the samples transformed by a representation fitted without the held-out ones; the others, cross-fitted."""
        known = held_out.known
        if self.representation is None:
            self.representation_ = None
            return samples
        represented = self._fit_representation(samples[known], held_out.seen)
        found = np.empty((len(samples), represented.shape[1]), dtype=represented.dtype)
        found[known] = represented
        if not known.all():
            found[~known] = self._represent(samples[~known])
        return found

    def _hold_out(
        self,
        n_samples: int,
        source: PairSource,
        units: NDArray[np.int64] | None,
        weights: NDArray[np.float64] | None,
    ) -> HeldOut | None:
        """Return the data without and with the held-out part; None if nothing is to be held out. Set ``open_set_``."""
        self.open_set_ = None
        if self.early_stopping is False or (self.early_stopping == "auto" and self.warm_start):
            return None
        rng = np.random.default_rng(np.random.SeedSequence([*self._entropy, 2]))
        open_set = None if self.open_set == "auto" else bool(self.open_set)
        if source.labels is not None and open_set is None:
            open_set = is_open_set(int(source.labels.max()) + 1)
        found = hold_out(source, n_samples, units, weights, open_set, float(self.validation_fraction), rng)
        if found is None and self.early_stopping is True:
            raise ValueError(
                f"early_stopping=True: fewer than {MIN_HELD_OUT} same or different pairs can be held out with "
                f"validation_fraction={self.validation_fraction!r}; give more data, or set early_stopping=False."
            )
        self.open_set_ = None if found is None or source.labels is None else open_set
        return found

    def _boosting_params(
        self,
        samples: NDArray[Any],
        source: PairSource,
        directions: NDArray[np.float64] | None,
        groups: NDArray[np.int64] | None = None,
        known: NDArray[np.bool_] | None = None,
    ) -> BoostingParams:
        """Return the checked parameters for represented samples; directions of oblique coordinates are found if not given."""
        rng = np.random.default_rng(np.random.SeedSequence([*self._entropy, 0]))
        pair_map = self._coordinate_set(samples, source, rng, self._coordinate_kinds(), directions, known=known, groups=groups)
        columns = self._columns_with_values(samples, pair_map)
        return BoostingParams(
            pair_map=pair_map,
            directions=self._monotone(pair_map),
            learning_rate=float(self.learning_rate),
            max_leaf_nodes=int(self.max_leaf_nodes),
            max_depth=MAX_DEPTH if self.max_depth is None else int(self.max_depth),
            min_samples_leaf=int(self.min_samples_leaf),
            l2=None if isinstance(self.l2, str) else float(self.l2),
            n_columns=n_to_draw("max_features", self.max_features, len(columns)),
            subsample=float(self.subsample),
            max_bins=int(self.max_bins),
            n_pairs=self.n_pairs,
            positive_fraction=self.positive_fraction,
            same_weighting=self.same_weighting,
            refresh=self.refresh,
            focus_fpr=self.focus_fpr,
            columns=columns,
        )

    def _monotone(self, pair_map: CoordinateSet) -> NDArray[np.int64]:
        """Return the direction of each coordinate: 1, -1, or 0 for any."""
        given = self.monotonic_cst
        found = np.zeros(len(pair_map), dtype=np.int64)
        if given is None:
            return found
        if isinstance(given, Mapping):
            for kind, direction in given.items():
                if kind not in pair_map.kinds:
                    raise ValueError(
                        f"monotonic_cst has the kind {kind!r}, which is not among the coordinates; "
                        f"choose from {', '.join(pair_map.kinds)}."
                    )
                found[pair_map.monotone_numbers(kind)] = direction
            return found
        if len(given) != len(found):
            raise ValueError(
                f"monotonic_cst has {count(len(given), 'entry', 'entries')} for {count(len(found), 'coordinate')}; "
                "give one per coordinate, or a dict from kinds of coordinates to -1, 0 or 1."
            )
        return np.asarray(given, dtype=np.int64)

    def _earlier(self, n_features: int) -> list[tuple[RankTree, NDArray[np.float64]]]:
        """Return the existing trees and their values, to which trees are added."""
        if not self.warm_start or not hasattr(self, "trees_"):
            return []
        warm_start.check_parameters(self, self.trees_, self._coordinate_kinds())
        warm_start.check_features(self.trees_[0].pair_map, n_features)
        if self._n_codes() and self._is_closed_set() != self._closed_set:
            raise ValueError(
                f"open_set={self.open_set!r} is not what the existing trees were grown with, which share what was learned of "
                f"categories; set open_set={'False' if self._closed_set else 'True'}, or warm_start=False."
            )
        return list(zip(self.trees_, self.values_, strict=True))

    def _coordinate_kinds(self) -> tuple[str, ...]:
        """Return the kinds of coordinates."""
        return ("abs_diff", "sum") if self.coordinates is None else tuple(self.coordinates)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_estimators", self.n_estimators, 1, MAX_TREES)
        check_real("learning_rate", self.learning_rate, 0.0, 1.0, open_low=True)
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 2, MAX_LEAVES)
        if self.max_depth is not None:
            check_integer("max_depth", self.max_depth, 1, MAX_DEPTH)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        if isinstance(self.l2, str) and self.l2 != "auto":
            raise ValueError(f"l2={self.l2!r} is unknown; give 'auto' or a number from 0 to {MAX_L2:g}.")
        if self.l2 != "auto":
            check_real("l2", self.l2, 0.0, MAX_L2)
        check_real("subsample", self.subsample, 0.0, 1.0, open_low=True)
        check_integer("max_bins", self.max_bins, 2, 256)
        check_real("validation_fraction", self.validation_fraction, 0.0, 0.5, open_low=True)
        check_integer("n_iter_no_change", self.n_iter_no_change, 1)
        check_choice("early_stopping", self.early_stopping, (True, False, "auto"))
        check_choice("refit", self.refit, (True, False))
        if self.refresh is not None:
            check_integer("refresh", self.refresh, 1)
        if self.focus_fpr is not None:
            check_real("focus_fpr", self.focus_fpr, 0.0, 1.0, open_low=True, open_high=True)
            if self.refresh is None:
                raise ValueError(f"focus_fpr={self.focus_fpr!r} requires new pairs; set refresh, such as refresh=10.")
        if self.early_stopping is True and self.warm_start:
            raise ValueError("early_stopping=True cannot be used with warm_start=True, which adds trees; set one to False.")
        self._check_monotonic()

    def _check_monotonic(self) -> None:
        given = self.monotonic_cst
        if given is None:
            return
        if not isinstance(given, dict | list | tuple | np.ndarray):
            raise TypeError(f"monotonic_cst={given!r} is neither a dict nor a sequence; give one with entries -1, 0 or 1.")
        entries = given.values() if isinstance(given, Mapping) else given
        if any(entry not in (-1, 0, 1) for entry in entries):
            raise ValueError(f"monotonic_cst={given!r} has an entry other than -1, 0 and 1; give these only.")
        if isinstance(given, Mapping) and any(kind not in KINDS for kind in given):
            raise ValueError(f"monotonic_cst={given!r} has an unknown kind of coordinate; choose from {', '.join(KINDS)}.")

    def _get_fitted_state(self) -> dict[str, Any]:
        curve = self.validation_curve_
        return {
            **self._get_trees_state(),
            "values": np.concatenate(self.values_),
            "entropy": self._entropy,
            "open_set": self.open_set_,
            **({"closed_set": self._closed_set} if self._n_codes() else {}),
            "training_roc": self._training_roc._get_state(),
            "validation_curve": None if curve is None else {name: curve[name].astype(np.float64) for name in CURVE},
            "validation_roc": None if curve is None else self.validation_roc_._get_state(),
        }

    def _set_fitted_state(self, fields: Fields) -> None:
        self.trees_ = self._set_trees_state(fields)
        ends = np.cumsum([tree.n_cells for tree in self.trees_])
        values = fields.array("values", "float64", (int(ends[-1]),), low=-MAX_VALUE, high=MAX_VALUE)
        self.values_ = np.split(values, ends[:-1])
        self.best_iteration_ = len(self.trees_)
        self._code()
        entropy = fields.items("entropy", MAX_SEEDS)
        if not all(type(number) is int and 0 <= number < 1 << 32 for number in entropy):
            raise fields.fail("entropy", "must be integers")
        self._entropy = tuple(entropy)
        self.open_set_ = fields.flag("open_set") if fields.has("open_set") else None
        # Of models of numbers it has no effect; earlier files of others tell it by the parameter.
        self._closed_set = fields.flag("closed_set") if fields.has("closed_set") else self._is_closed_set()
        self._training_roc = Roc._from_state(fields.part("training_roc"))
        self.validation_curve_ = None
        if fields.has("validation_curve"):
            self.validation_curve_ = curve_from_state(fields.part("validation_curve"), MAX_TREES)
            self.validation_roc_ = Roc._from_state(fields.part("validation_roc"))

    def _summary(self) -> dict[str, Any]:
        names = self._names(None)
        trees = [
            {"values": values.tolist(), **rules.to_dict(tree, names)}
            for tree, values in zip(self.trees_, self.values_, strict=True)
        ]
        return {"best_iteration": self.best_iteration_, "trees": trees}

    def _trees(self) -> list[RankTree]:
        return self.trees_

    def _leaf_values(self) -> LeafValues:
        """Return trees and cell values, scaled such that their mean over trees is the sum."""
        return self.trees_, [values * len(self.trees_) for values in self.values_]

    def _test_cost(self) -> float:
        return 1.0 if self._coded is None else COST_OF_CODED_TEST

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        coded = self._coded
        if coded is None or not (coded.takes_missing or not pairs.lacks_values):
            return mean_values(*self._leaf_values(), pairs)
        return coded.sums(pairs) / len(self.trees_)

    def _code(self) -> None:
        """Prepare to score pairs by codes, unless trees of several fits have too many thresholds."""
        self._coded = CodedTrees(*self._leaf_values()) if can_code(self.trees_) else None

    def _max_score(self) -> float:
        trees, values = self._leaf_values()
        # One after another, as scores are added: then no score exceeds it by rounding.
        return float(sum(of_cells.max() for of_cells in values) / len(trees))
