"""SimilarityForest: a similarity learned as a forest of ranking trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree._utils.progress import CallbackSupportMixin, reported, with_callbacks
from simtree._utils.threads import in_threads
from simtree._utils.validation import check_choice, check_integer, n_to_draw
from simtree.growing._bagging import (
    TreeTask,
    equally_out_of_bag,
    extrapolate_scores,
    fingerprint,
    first_out_of_bag,
    grow_trees,
    out_of_bag_values,
)
from simtree.io._fields import Fields
from simtree.io._registry import MODEL, register
from simtree.metrics import Roc, partial_auc, roc_curve, youden_threshold
from simtree.models import _warm_start as warm_start
from simtree.models._base import LeafValues
from simtree.models._held_out import HeldOutCheck, OutOfBagScores, bags_of_table, check_held_out, summarise_out_of_bag
from simtree.models._tree import TreeLearner
from simtree.models._tree_values import iter_blocks, mean_values
from simtree.pairs._coordinates import OBLIQUE, SamplePairs
from simtree.pairs._directions import RANDOM
from simtree.pairs._inputs import check_training
from simtree.pairs._labels import encode_groups
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._store import with_rows
from simtree.pairs._table import FROM_DTYPE
from simtree.representation._applied import depends_on_labels
from simtree.splitters import CartSplitter, Splitter
from simtree.trees import _export as rules
from simtree.trees._rank_tree import RankTree

# Number of pairs of the training ROC curve and of the out-of-bag ROC curve.
TRAINING_SAMPLE = 20_000
OOB_PAIRS = 200_000
# With fewer trees per pair than this, out-of-bag metrics are too low to be of use (benchmarks/bench_out_of_bag.py).
MIN_TREES_PER_OOB_PAIR = 5
# More random seeds in a model file are treated as corruption.
MAX_SEEDS = 1 << 4


@register(MODEL)
class SimilarityForest(CallbackSupportMixin, TreeLearner):
    """A similarity learned as a forest of ranking trees over pairs of samples (Ranking Forest).

    Each tree is grown on a bootstrap sample of the training samples and on its own pairs among them. Features are drawn at
    random for each cell (``max_features``) and for each test of the splitter (``splitter__max_features``).

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_depth : int or "sqrt_log", default=15
        Maximum depth of a tree, as in `SimilarityTree`.
    splitter : Splitter or {"cart", "cut", "cross", "linear", "oblique", "gaussian"}, default="cart"
        How cells are split, as in `SimilarityTree`, except that ``"cart"`` draws a fifth of the coordinates for each test.
    aggregation : {"llr", "mean_rank", "median_rank"}, default="llr"
        How trees are combined: the mean of the smoothed log-likelihood ratios of the terminal cells of a pair, or the mean
        or the median of their ranks.
    bootstrap : bool, default=True
        Whether each tree is grown on a bootstrap sample. If False, all trees see all samples, and differ only in their pairs
        and features.
    max_samples : int, float or None, default=None
        Number of samples (share of them if a float) drawn with replacement for each tree; None draws as many as there are.
        Duplicates are removed, so that a sample is never paired with itself.
    bag : {"samples", "classes"}, default="samples"
        What is drawn: samples, or entire classes. Out-of-bag estimates of ``"samples"`` hold for new samples of known classes
        (closed set), those of ``"classes"`` for unseen identities (open set).
    open_set : bool or "auto", default="auto"
        Whether the forest will be used on unseen identities. It decides how evidence of pairs of values of a category is
        cross-fitted, over identities or over samples, and has no effect on numbers. ``"auto"`` is True if there are more than
        10 labels; False, which ``bag="classes"`` contradicts, learns more of known classes.
    oob_score : bool, default=False
        Whether to compute out-of-bag scores: pairs are scored by trees that saw neither of their samples (or classes), all of
        them by the same number of trees. With fewer than about 40 trees a warning says that these are too few. Not available
        if a ``representation`` depends on labels, or with discriminant ``directions``: they are fitted once on all samples.
    representation, categorical_features, coordinates, directions, n_directions : see `SimilarityTree`
        Representation of the samples, and coordinates of their pairs.
    n_pairs, positive_fraction, same_weighting : see `SimilarityTree`
        How pairs are sampled; ``n_pairs`` is the number of pairs per tree.
    min_pairs_split, min_pairs_leaf, focus_fpr : see `SimilarityTree`
        Stopping rules.
    refill : bool, default=False
        Whether to grow the second half of the trees on newly sampled pairs that are hard for the first half: those with
        out-of-bag scores in the range of the highest ``focus_fpr`` (0.05 if None) of different pairs. The score is then the sum
        of the averages of both halves. If this sum has a lower AUC on out-of-bag pairs than the first half, or a lower partial
        AUC up to ``focus_fpr``, the second half is dropped with a warning. Requires labelled samples, ``bootstrap=True`` and
        ``aggregation="llr"``.
    refill_budget : int or None, default=None
        Number of pairs scored to find hard ones; None is 20 times ``n_pairs``.
    max_features, max_bins, preprocessor : see `SimilarityTree`
        Features drawn for each cell, bins, and samples that identifiers refer to.
    n_jobs : int or None, default=None
        Number of parallel jobs for growing trees and for scoring pairs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for bootstrap samples, pairs and features.
    warm_start : bool, default=False
        Whether to keep the existing trees in the next call to `fit` and add trees up to ``n_estimators``. The data must be the
        same, which is checked by a hash: otherwise out-of-bag metrics would be false.
    verbose : int, default=0
        Set to 1 to show progress.

    Attributes
    ----------
    trees_ : list of RankTree
        The grown trees.
    max_depth_ : int
        Maximum depth as an integer.
    refilled_ : bool
        Whether the second half of the trees was grown on hard pairs, and kept.
    oob_score_, oob_roc_ : float and Roc
        AUC and ROC curve of out-of-bag scores, extrapolated to the number of trees of the forest, if ``oob_score=True``.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it maximises TPR - FPR on out-of-bag pairs, or on
        a subsample of the training pairs if ``oob_score=False``; choose it on held-out data with `calibrate_threshold`.
    columns_ : TableColumns or None
        How a table with categories, booleans or dates is read, see `SimilarityTree`; None for numbers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    See Also
    --------
    SimilarityTree : A single tree, which can be read as rules.
    AutoSimilarity : Choose among forests, representations and baselines by cross-validation.

    Notes
    -----
    With ``aggregation="llr"`` a score is a log-likelihood ratio: positive scores favour same, and scores of independent
    sources can be added. It is overconfident until it is calibrated on held-out data with `calibrate_probability`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import SimilarityForest
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = SimilarityForest(n_estimators=50, max_depth=6, oob_score=True, random_state=0).fit(X, y)
    >>> round(forest.oob_score_, 2)
    0.99
    """

    trees_: list[RankTree]
    refilled_: bool
    _oob_same: OutOfBagScores | None
    _entropy: tuple[int, ...]
    _fingerprint: str | None

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_depth: int | str = 15,
        splitter: Splitter | str = "cart",
        aggregation: str = "llr",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        bag: str = "samples",
        open_set: bool | str = "auto",
        oob_score: bool = False,
        representation: Any = None,
        categorical_features: ArrayLike | str | None = FROM_DTYPE,
        coordinates: Sequence[str] | None = None,
        directions: str | Sequence[str] = RANDOM,
        n_directions: int | None = None,
        n_pairs: int | None = 100_000,
        positive_fraction: float | None = 0.5,
        same_weighting: str = "pairs",
        min_pairs_split: int = 2,
        min_pairs_leaf: int = 1,
        focus_fpr: float | None = None,
        refill: bool = False,
        refill_budget: int | None = None,
        max_features: int | float | None = None,
        max_bins: int | None = 255,
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.splitter = splitter
        self.aggregation = aggregation
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.bag = bag
        self.open_set = open_set
        self.oob_score = oob_score
        self.representation = representation
        self.categorical_features = categorical_features
        self.coordinates = coordinates
        self.directions = directions
        self.n_directions = n_directions
        self.n_pairs = n_pairs
        self.positive_fraction = positive_fraction
        self.same_weighting = same_weighting
        self.min_pairs_split = min_pairs_split
        self.min_pairs_leaf = min_pairs_leaf
        self.focus_fpr = focus_fpr
        self.refill = refill
        self.refill_budget = refill_budget
        self.max_features = max_features
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
    ) -> Self:
        """Fit the forest on labelled samples, or on given pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples; with a ``preprocessor`` also identifiers of shape ``(n_pairs, 2)``.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.
        groups : array-like, optional
            Group of each sample, such as its identity; bootstrap samples then draw entire groups, and folds in which evidence
            of categories is learned keep them together. One entry per row of X, or shape ``(n_pairs, 2)`` for pairs given as
            ``(n_pairs, 2, n_features)``.
        never_pair : array-like of shape (n_samples,), optional
            Labelled samples that share a value here never form a pair, see `SimilarityTree.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            samples, source = check_training(self, X, y, pairs, never_pair)
            in_groups = None if groups is None else encode_groups(groups, len(samples))
            units, n_drawn = self._bags(samples, source, in_groups, pairs)
            trees = list(self.trees_) if self.warm_start and hasattr(self, "trees_") else []
            warm_start.check_parameters(self, trees, self._coordinate_kinds())
            if (trees and (self.refill or self.refilled_)) or (self.refill and source.labels is None):
                raise ValueError(
                    "refill=True samples pairs of labelled samples that are hard for the first trees; "
                    "set refill=False for given pairs, or warm_start=False to refit a refilled forest."
                )
            seen = fingerprint(samples, source, units, n_drawn)
            if self._is_closed_set() and self._n_codes():  # other ratios of categories, of which all trees share one table
                seen += " closed set"
            if trees and seen != self._fingerprint:
                raise ValueError(
                    "warm_start=True requires the samples, labels and bags (bag, bootstrap, max_samples, groups, open_set) of "
                    "the existing trees, because out-of-bag pairs are found from them; set warm_start=False to fit other data."
                )
            if not trees:
                self._entropy = tuple(check_random_state(self.random_state).randint(2**31, size=4).tolist())
            represented = self._fit_representation(samples, source)
            self._check_out_of_bag(samples, represented)
            samples = represented
            rng = np.random.default_rng(np.random.SeedSequence([*self._entropy, 0]))
            params = self._growth_params(samples, source, rng, in_groups, trees[0].pair_map.directions if trees else None)
            samples = params.pair_map.extend(samples, training=True)
            tasks = [TreeTask(params, units, n_drawn, self._entropy, number) for number in range(self.n_estimators)]
            grown = self._grow(tasks[len(trees) :], samples, source)
            trees += reported(grown, self, n_steps=self.n_estimators - len(trees), what="growing trees", verbose=self.verbose)
            self.trees_ = trees
            self._fingerprint = seen
            self.refilled_ = self.refill
            self.max_depth_ = params.max_depth
            if self.refill:
                self._drop_second_half(samples, source, tasks)
            self._evaluate(samples, source, tasks[: len(self.trees_)])
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

    def _get_fitted_state(self) -> dict[str, Any]:
        return {
            **self._get_trees_state(),
            "refilled": self.refilled_,
            "entropy": self._entropy,
            "fingerprint": self._fingerprint,
            "training_roc": self._training_roc._get_state(),
            "oob_roc": self.oob_roc_._get_state() if hasattr(self, "oob_roc_") else None,
            **({} if self._oob_same is None else {"oob_same": self._oob_same._get_state()}),
        }

    def _set_fitted_state(self, fields: Fields) -> None:
        self.trees_ = self._set_trees_state(fields)
        self.refilled_ = fields.flag("refilled")
        entropy = fields.items("entropy", MAX_SEEDS)
        if not all(type(number) is int and 0 <= number < 1 << 32 for number in entropy):
            raise fields.fail("entropy", "must be integers")
        self._entropy = tuple(entropy)
        self._fingerprint = fields.string("fingerprint") if fields.has("fingerprint") else None
        self._training_roc = Roc._from_state(fields.part("training_roc"))
        if fields.has("oob_roc"):
            self.oob_roc_ = Roc._from_state(fields.part("oob_roc"))
            self.oob_score_ = self.oob_roc_.auc()
        self._oob_same = OutOfBagScores._from_state(fields.part("oob_same")) if fields.has("oob_same") else None

    def _summary(self) -> dict[str, Any]:
        names = self._names(None)
        return {"trees": [rules.to_dict(tree, names) for tree in self.trees_]}

    def _trees(self) -> list[RankTree]:
        return self.trees_

    def _leaf_values(self) -> LeafValues | None:
        """Return trees and cell values, scaled such that their mean is the sum of the averages of the stages."""
        if self.aggregation == "median_rank":
            return None
        cell_values, n = self._cell_values(), len(self.trees_)
        scaled = [values * (n / len(cell_values[stage])) for stage in self._stages() for values in cell_values[stage]]
        return self.trees_, scaled

    def _grow(self, tasks: list[TreeTask], samples: NDArray[Any], source: PairSource) -> Iterator[RankTree]:
        """Yield the trees in order; with refill, the second half is grown on pairs that are hard for the first half."""
        n_first = -(-len(tasks) // 2) if self.refill else len(tasks)
        first = []
        for tree in grow_trees(tasks[:n_first], samples, source, n_jobs=self.n_jobs):
            first.append(tree)
            yield tree
        if self.refill:
            hard = self._hard_pairs(first, samples, source, tasks[:n_first])
            yield from grow_trees(tasks[n_first:], samples, source, hard, n_jobs=self.n_jobs)

    def _hard_pairs(
        self, trees: list[RankTree], samples: NDArray[Any], source: PairSource, tasks: list[TreeTask]
    ) -> IndexPairs:
        """Return newly sampled pairs that score as high out of bag as the most similar different pairs.

        The other pairs are already classified well; among these, same and different pairs are about equally frequent. Scored by
        trees that saw them, all same pairs would be among these, however dissimilar, but only similar different pairs, and the
        second half of the trees would learn that dissimilar pairs are same pairs.
        """
        n_pairs = source.n_pairs if self.n_pairs is None else self.n_pairs
        budget = 20 * n_pairs if self.refill_budget is None else self.refill_budget
        rng = np.random.default_rng(np.random.SeedSequence(self._entropy))
        focus = self._focus()
        candidates = source.sample(
            budget, rng, positive_fraction=focus / (focus + 0.5), same_weighting=self.same_weighting, shuffle=False
        )
        bags = [task.in_bag(source) for task in tasks]
        candidates, n_used = equally_out_of_bag(candidates, [bags])
        if candidates.has_both_kinds:
            values = [tree.llr for tree in trees]
            scores = self._out_of_bag_scores(samples, candidates, trees, values, bags, n_used)[0]
            lowest = np.quantile(scores[~candidates.same], 1.0 - focus, overwrite_input=True)  # saves a copy at the memory peak
            candidates = candidates.take(scores >= lowest)
        if not candidates.has_both_kinds:
            raise ValueError(
                f"refill=True found only same or only different hard pairs among {budget} candidates; "
                "increase refill_budget, focus_fpr or n_estimators."
            )
        return candidates

    def _focus(self) -> float:
        """Return the false positive rate below which pairs are hard."""
        return 0.05 if self.focus_fpr is None else self.focus_fpr

    def _drop_second_half(self, samples: NDArray[Any], source: PairSource, tasks: list[TreeTask]) -> None:
        """Drop the trees grown on hard pairs, with a warning, if they lower the out-of-bag AUC or partial AUC."""
        index, scores, _ = self._out_of_bag(samples, source, tasks)
        if not index.has_both_kinds or len(scores) < 2:
            return
        first, both = (roc_curve(found, index.same) for found in (scores[0, 0], scores[:, 0].sum(axis=0)))
        focus = self._focus()
        if both.auc() >= first.auc() and partial_auc(both, focus) >= partial_auc(first, focus):
            return
        self.trees_ = self.trees_[self._stages()[0]]
        self.refilled_ = False
        warnings.warn(
            f"refill=True lowers the out-of-bag AUC ({first.auc():.3f} to {both.auc():.3f}) or the partial AUC up to FPR "
            f"{focus:g}; the trees grown on hard pairs were dropped, which leaves {len(self.trees_)} trees: set refill=False.",
            UserWarning,
            stacklevel=4,
        )

    def _stages(self) -> list[slice]:
        """Return the ranges of trees whose values are averaged; the averages are then added."""
        half = -(-len(self.trees_) // 2)
        return [slice(0, half), slice(half, None)] if self.refilled_ and len(self.trees_) > 1 else [slice(None)]

    def _cell_values(self) -> list[NDArray[np.float64]]:
        """Return the value of each cell of each tree, before aggregation."""
        return [tree.llr if self.aggregation == "llr" else tree.mean_ranks for tree in self.trees_]

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        leaf_values = self._leaf_values()
        if leaf_values is not None:
            return mean_values(*leaf_values, pairs)
        values, scores = self._cell_values(), np.empty(pairs.n_pairs)
        for rows in iter_blocks(pairs.n_pairs):
            by_tree = np.zeros((len(self.trees_), len(scores[rows])))
            part = self.trees_[0].pair_map.complete(pairs.take(rows))
            for tree, of_cells, row in zip(self.trees_, values, by_tree, strict=True):
                tree.add_values(part, of_cells, row)
            scores[rows] = np.median(by_tree, axis=0)
        return scores

    def _max_score(self) -> float:
        leaf_values = self._leaf_values()
        if leaf_values is None:
            return float(np.median([values.max() for values in self._cell_values()]))
        return float(np.sum([values.max() for values in leaf_values[1]]) / len(self.trees_))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_estimators", self.n_estimators, 1)
        check_choice("aggregation", self.aggregation, ("llr", "mean_rank", "median_rank"))
        check_choice("bag", self.bag, ("samples", "classes"))
        if self._is_closed_set() and self.bag == "classes":
            raise ValueError(
                "open_set=False says that no unseen identities will come, but bag='classes' is for them; "
                "set bag='samples', or open_set=True."
            )
        if self.refill_budget is not None:
            check_integer("refill_budget", self.refill_budget, 2)
        if self.refill and self.aggregation != "llr":
            raise ValueError(
                f"refill=True adds log-likelihood ratios, but aggregation={self.aggregation!r} uses ranks; "
                "set aggregation='llr'."
            )
        if self.refill and not self.bootstrap:
            raise ValueError("refill=True finds hard pairs by trees that did not see them; set bootstrap=True.")
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score=True requires bootstrap samples; set bootstrap=True.")
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError(
                f"max_samples={self.max_samples!r} requires bootstrap samples; set bootstrap=True, or max_samples=None."
            )

    def _check_out_of_bag(self, samples: NDArray[Any], represented: NDArray[Any]) -> None:
        """Raise an error if out-of-bag scores are asked for, but something that all trees share was fitted with labels."""
        if not self.oob_score:
            return
        kinds = self._coordinate_kinds()
        shared = None
        given, n_kept = self._given_and_kept(samples)
        if self.representation_ is not None and depends_on_labels(
            self._own_representation(), given, represented, n_kept=n_kept
        ):
            shared = f"representation={self.representation!r} depends on labels (or on chance, without a random_state), and it"
        elif OBLIQUE in kinds and self._directions_are_fitted():
            shared = f"directions={self.directions!r}"
        if shared is not None:
            raise ValueError(
                f"oob_score=True: {shared} is fitted once on all samples, so that no pair is out of bag; "
                "set oob_score=False, and use held-out data or cross-validation instead."
            )

    def _default_splitter(self) -> Splitter:
        return CartSplitter(max_features=0.2) if self.splitter == "cart" else super()._default_splitter()

    def _bags(
        self, samples: NDArray[Any], source: PairSource, groups: NDArray[np.int64] | None, pairs: ArrayLike | None
    ) -> tuple[NDArray[np.int64] | None, int | None]:
        """Return the unit of each sample (None if given pairs are drawn themselves) and the number of draws per bag."""
        by_class = self.bag == "classes"
        units: NDArray[np.int64] | None = None
        # Otherwise given pairs are drawn themselves, which does not require the identity of their samples.
        if groups is not None or source.labels is not None or by_class or self.oob_score:
            reason = "bag='classes'" if by_class else "oob_score=True"
            units = self._units(samples, source, groups, pairs, by_class=by_class, reason=reason)
        n_units = source.n_observations if units is None else 1 + int(units.max())
        return units, n_to_draw("max_samples", self.max_samples, n_units) if self.bootstrap else None

    def _evaluate(self, samples: NDArray[Any], source: PairSource, tasks: list[TreeTask]) -> None:
        """Compute the ROC curves and the threshold of the grown forest."""
        for name in ("oob_roc_", "oob_score_"):  # of a previous fit
            self.__dict__.pop(name, None)
        index = source.subsample(TRAINING_SAMPLE, np.random.default_rng(0))
        self._training_roc = self._curve(samples, index)
        if self.oob_score:
            self.oob_roc_ = self._out_of_bag_roc(samples, source, tasks)
            self.oob_score_ = self.oob_roc_.auc()
        self._oob_same = self._summarise_out_of_bag(samples, source, tasks) if self.oob_score else None
        self.threshold_ = youden_threshold(self.oob_roc_ if self.oob_score else self._training_roc)

    def _summarise_out_of_bag(self, samples: NDArray[Any], source: PairSource, tasks: list[TreeTask]) -> OutOfBagScores | None:
        bags, units = [task.in_bag(source) for task in tasks[: len(self.trees_)]], tasks[0].units
        assert units is not None  # oob_score=True requires them
        return summarise_out_of_bag(self.trees_, self._cell_values(), bags, samples, source, units)

    def _check_held_out(self, prepared: NDArray[Any], source: PairSource, identities: NDArray[np.int64]) -> HeldOutCheck:
        bags = None
        if self.bootstrap and source.labels is not None:
            units = source.labels if self.bag == "classes" else np.arange(len(prepared))
            n_drawn = n_to_draw("max_samples", self.max_samples, 1 + int(units.max()))
            bags = bags_of_table(source, units, n_drawn, self._entropy, len(self.trees_))
        return check_held_out(self.trees_, self._cell_values(), self._oob_same, bags, prepared, source, identities)

    def _out_of_bag_roc(self, samples: NDArray[Any], source: PairSource, tasks: list[TreeTask]) -> Roc:
        """Return the ROC curve of pairs scored by trees for which they are out of bag, extrapolated to all trees."""
        index, scores, n_used = self._out_of_bag(samples, source, tasks, halves=True)
        if not index.has_both_kinds:
            raise ValueError(
                f"oob_score=True: with n_estimators={self.n_estimators} too few pairs are out of bag to have both same "
                "and different ones; increase n_estimators, or decrease max_samples."
            )
        n_trees = min(len(self.trees_[stage]) for stage in self._stages())
        if n_used < MIN_TREES_PER_OOB_PAIR:
            warnings.warn(
                f"n_estimators={self.n_estimators} is too few for oob_score=True: pairs are out of bag for {n_used} of the "
                "trees, so that out-of-bag metrics are low and depend on the number of trees; "
                f"use at least {-(-self.n_estimators * MIN_TREES_PER_OOB_PAIR // n_used)} trees.",
                UserWarning,
                stacklevel=5,
            )
        total = scores.sum(axis=0)
        found = [extrapolate_scores(total[0, k], total[1:, k], n_used, n_trees) for k in (index.same, ~index.same)]
        return roc_curve(np.concatenate(found), np.repeat([True, False], [len(part) for part in found]))

    def _out_of_bag(
        self, samples: NDArray[Any], source: PairSource, tasks: list[TreeTask], *, halves: bool = False
    ) -> tuple[IndexPairs, NDArray[np.float64], int]:
        """Return out-of-bag pairs, their scores in each stage as of `_out_of_bag_scores`, and by how many trees of a stage."""
        bags, values, stages = [task.in_bag(source) for task in tasks], self._cell_values(), self._stages()
        index = source.subsample(OOB_PAIRS, np.random.default_rng(1))
        index, n_used = equally_out_of_bag(index, [bags[stage] for stage in stages])
        scores = [
            self._out_of_bag_scores(samples, index, self.trees_[stage], values[stage], bags[stage], n_used, halves=halves)
            for stage in stages
        ]
        return index, np.array(scores), n_used

    def _out_of_bag_scores(
        self,
        samples: NDArray[Any],
        index: IndexPairs,
        trees: list[RankTree],
        values: list[NDArray[np.float64]],
        bags: list[NDArray[np.bool_]],
        n_used: int,
        *,
        halves: bool = False,
    ) -> NDArray[np.float64]:
        """Return the score of each pair by ``n_used`` trees for which it is out of bag; with halves, also by each half of them.

        The result has shape (1, n_pairs) or (3, n_pairs). Halves have ``n_used // 2`` trees, and are zero if there are none.
        """
        samples, index, rows_used = with_rows(samples, index)
        bags = [inside[rows_used] for inside in bags]
        average = np.median if self.aggregation == "median_rank" else np.mean
        n_half = n_used // 2 if halves else 0
        every = SamplePairs(samples, samples, index.first, index.second)
        scores = np.zeros((3 if halves else 1, len(index)))

        def fill(rows: slice) -> None:
            pairs = trees[0].pair_map.complete(every.take(rows))
            used = first_out_of_bag(out_of_bag_values(trees, values, bags, pairs), n_used)
            scores[0, rows] = average(used, axis=0)
            for k in range(2 if n_half else 0):
                scores[1 + k, rows] = average(used[k : 2 * n_half : 2], axis=0)

        in_threads(fill, list(iter_blocks(len(index))), self.n_jobs)
        return scores
