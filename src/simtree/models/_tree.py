"""SimilarityTree: a similarity learned as one ranking tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree._utils.validation import check_choice, check_integer, check_real, n_to_draw
from simtree.growing._cross_validation import choose_penalty, fold_numbers
from simtree.growing._grower import GrowthParams
from simtree.io._fields import MAX_COUNT, Fields
from simtree.io._registry import MODEL, register
from simtree.metrics import Roc, youden_threshold
from simtree.models._base import LeafValues
from simtree.models._tree_model import TreeModel
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._directions import RANDOM
from simtree.pairs._inputs import check_pairs, check_training
from simtree.pairs._labels import encode_groups
from simtree.pairs._sources import PairSource
from simtree.pairs._table import FROM_DTYPE
from simtree.splitters import BY_NAME, Splitter
from simtree.trees import _export as rules
from simtree.trees._pruning import PruningPath, prune, pruning_path
from simtree.trees._rank_tree import MAX_DEPTH, RankTree


class TreeLearner(TreeModel):
    """Base class of trees and forests of ranking trees: parameters of a tree and their checks."""

    max_depth: int | str
    splitter: Splitter | str
    min_pairs_split: int
    min_pairs_leaf: int
    focus_fpr: float | None
    max_features: int | float | None
    max_bins: int | None
    max_depth_: int

    def _growth_params(
        self,
        samples: NDArray[Any],
        source: PairSource,
        rng: np.random.Generator,
        groups: NDArray[np.int64] | None,
        directions: NDArray[np.float64] | None = None,
    ) -> GrowthParams:
        """Return the checked growth parameters for represented samples; ``rng`` is used if ``directions`` are not given."""
        splitter = clone(self._own_splitter())
        kinds = self._coordinate_kinds()
        pair_map = self._coordinate_set(samples, source, rng, kinds, directions, squares=splitter.squares, groups=groups)
        splitter.check(pair_map)
        columns = self._columns_with_values(samples, pair_map)
        return GrowthParams(
            splitter=splitter,
            pair_map=pair_map,
            max_depth=self._depth(source.n_observations),
            min_pairs_split=self.min_pairs_split,
            min_pairs_leaf=self.min_pairs_leaf,
            n_columns=n_to_draw("max_features", self.max_features, len(columns)),
            focus_fpr=self.focus_fpr,
            max_bins=self.max_bins,
            n_pairs=self.n_pairs,
            positive_fraction=self.positive_fraction,
            same_weighting=self.same_weighting,
            columns=columns,
            lacks_values=pair_map.lacks_values(samples),
        )

    def _trees_take_missing(self) -> bool:
        splitter = BY_NAME.get(self.splitter) if isinstance(self.splitter, str) else self.splitter
        return bool(getattr(splitter, "takes_missing", False))

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of this estimator.

        Parameters of the splitter are set as ``splitter__name``, even if the splitter is given by name.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator.

        Returns
        -------
        self
            The estimator.
        """
        if (
            isinstance(self.splitter, str)
            and "splitter" not in params
            and any(name.startswith("splitter__") for name in params)
        ):
            self.splitter = self._default_splitter()
        super().set_params(**params)
        return self

    def _own_splitter(self) -> Splitter:
        """Return the splitter, given by name or as an instance."""
        return self._default_splitter() if isinstance(self.splitter, str) else self.splitter

    def _coordinate_kinds(self) -> tuple[str, ...]:
        """Return the kinds of coordinates; by default those of the splitter."""
        return tuple(self._own_splitter().default_coordinates if self.coordinates is None else self.coordinates)

    def _default_splitter(self) -> Splitter:
        """Return the splitter for a name."""
        return BY_NAME[check_choice("splitter", self.splitter, BY_NAME)]()

    def _check_parameters(self) -> None:
        if self.max_depth != "sqrt_log":
            if isinstance(self.max_depth, str):
                raise ValueError(f"max_depth={self.max_depth!r} is unknown; give an int from 1 to {MAX_DEPTH} or 'sqrt_log'.")
            check_integer("max_depth", self.max_depth, 1, MAX_DEPTH)
        if isinstance(self.splitter, str):
            check_choice("splitter", self.splitter, BY_NAME)
        elif not isinstance(self.splitter, Splitter):
            raise TypeError(f"splitter={self.splitter!r} is not a Splitter; give one, or one of {', '.join(BY_NAME)}.")
        super()._check_parameters()
        check_integer("min_pairs_split", self.min_pairs_split, 2)
        check_integer("min_pairs_leaf", self.min_pairs_leaf, 1)
        if self.focus_fpr is not None:
            check_real("focus_fpr", self.focus_fpr, 0.0, 1.0, open_low=True)
        if self.max_bins is not None:
            check_integer("max_bins", self.max_bins, 2, 256)

    def _depth(self, n: int) -> int:
        """Return the depth as an integer, for n samples (or given pairs)."""
        return max(1, round(math.sqrt(math.log(n)))) if self.max_depth == "sqrt_log" else int(self.max_depth)

    def _get_trees_state(self) -> dict[str, Any]:
        state = super()._get_trees_state()
        return {"representation": state.pop("representation"), "max_depth": self.max_depth_, **state}

    def _set_trees_state(self, fields: Fields) -> list[RankTree]:
        self.max_depth_ = fields.integer("max_depth", 1, MAX_DEPTH)
        return super()._set_trees_state(fields)


@register(MODEL)
class SimilarityTree(TreeLearner):
    """A similarity learned as a ranking tree over pairs of samples (the Similarity TreeRank algorithm).

    The tree recursively splits the space of pairs into a more and a less similar part such that the ROC curve of the score
    is as high as possible. Its regions are symmetric: the order of the two samples of a pair does not matter.

    Parameters
    ----------
    max_depth : int or "sqrt_log", default=10
        Maximum depth of the tree, from 1 to 52. ``"sqrt_log"`` is the rule of the paper's theorem: the square root of the
        logarithm of the number of samples (or of given pairs), rounded, and at least 1.
    splitter : Splitter or {"cart", "cut", "cross", "linear", "oblique", "gaussian"}, default="cart"
        How cells are split (the paper's LeafRank), see `simtree.splitters`.
    representation : transformer, optional
        Transformer or Pipeline of transformers applied to the samples first, see `simtree.representation`. It is fitted with
        ``fit_transform`` and applied once per sample. A transformer that requires labels requires labelled samples.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Columns that are categories. ``"from_dtype"`` takes those of a data frame that are of text or of a categorical type; a
        mask, numbers or names add columns of numbers, or of text that is different in nearly every row and would be left out.
        Pairs compare them by equality, by the rarity of a shared value, and by how often their two values belong together.
        None refuses text.
    coordinates : sequence of str, optional
        Kinds of symmetric coordinates of a pair, from `simtree.pairs.KINDS`: per feature (``abs_diff``, ``sum``, ``min``,
        ``max``, ``product``), of all features together (``dot``, ``cosine``, ``euclidean``, ``manhattan``), or ``oblique``. By
        default those of the splitter, usually ``["abs_diff", "sum"]``.
    directions : {"random", "discriminant", "fisher"} or a list of them, default="random"
        Directions w of the ``oblique`` coordinates ``|w·(x - x')|`` and ``w·(x + x')``: random ones, those along which
        different pairs differ most compared with same pairs, or the linear discriminants of pairs of classes, which require
        labelled samples.
    n_directions : int or None, default=None
        Number of directions of each type. By default the number of features minus one for random directions, which together
        with ``abs_diff`` and ``sum`` determine a pair completely, at most 40 discriminant directions, and at most 60
        Fisher directions.
    n_pairs : int or None, default=100_000
        Number of pairs sampled from labelled samples (all pairs if there are fewer); None uses all pairs.
    positive_fraction : float or None, default=0.5
        Share of same pairs among the sampled pairs; None keeps their natural proportion. It affects the variance of the
        estimates, not what is estimated.
    same_weighting : {"pairs", "identities"}, default="pairs"
        Whether same pairs are sampled uniformly over pairs, or uniformly over identities so that an identity with many
        samples does not dominate.
    min_pairs_split : int, default=2
        Minimum number of pairs in a cell to split it.
    min_pairs_leaf : int, default=1
        Minimum number of pairs in each child of a split. The splitters ``"cut"``, ``"cross"`` and ``"gaussian"`` search among
        splits that satisfy it; with other splitters a split that violates it is not made.
    focus_fpr : float or None, default=None
        Do not split cells that lie entirely above this false positive rate, to concentrate on the left of the ROC curve.
    max_features : int, float or None, default=None
        Number of features (share of them if a float) drawn for each cell; None uses all.
    max_bins : int or None, default=255
        Maximum number of bins per coordinate, from 2 to 256. Splits are exact if the distinct values fit the bins; otherwise
        bins are quantiles. None always searches exactly, which is slower.
    prune : {None, "cv"}, default=None
        ``"cv"`` prunes the tree with the penalty that maximises the cross-validated AUC.
    prune_penalty : float, default=0.0
        Minimum AUC that each terminal cell must contribute, if ``prune`` is None; 0 keeps the full tree.
    cv : int, default=5
        Number of folds for ``prune="cv"``. Folds are made of samples, so that no sample is in two folds.
    open_set : bool or "auto", default="auto"
        Whether the tree will be used on unseen identities. True makes the folds of ``prune="cv"`` of entire classes, to
        estimate the performance on them; otherwise they are of samples. It also decides how evidence of pairs of values of a
        category is cross-fitted, over identities or over samples; there, ``"auto"`` is True if there are more than 10 labels.
    preprocessor : array-like or callable, optional
        Samples, or a function from identifiers to samples, to which ``(n_pairs, 2)`` input refers (as in metric-learn).
    n_jobs : int or None, default=None
        Number of parallel jobs for scoring, and for binning and counting large cells in `fit`. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for sampling pairs, features, directions and folds.

    Attributes
    ----------
    tree_ : RankTree
        The grown (and pruned) tree.
    max_depth_ : int
        Maximum depth as an integer.
    n_pairs_ : int
        Number of training pairs.
    prune_penalty_ : float
        The pruning penalty that was used.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it maximises TPR - FPR on the training pairs,
        which is optimistic; choose it on held-out data with `calibrate_threshold`.
    columns_ : TableColumns or None
        How a table with categories, booleans or dates is read: its columns, their kinds and values. Features are then in the
        order of ``columns_.names``, categories last. None for numbers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    See Also
    --------
    SimilarityForest : An ensemble of trees, usually more accurate.

    Notes
    -----
    The terminal cell with rank k (from 0, the most similar) at depth j has the score ``2**max_depth_ * (1 - k / 2**j)``.
    Scores of a tree define an order; they are not probabilities.

    References
    ----------
    S. Clémençon and R. Vogel, "On Tree-based Methods for Similarity Learning", 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import SimilarityTree
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = SimilarityTree(max_depth=4, random_state=0).fit(X[::2], y[::2])
    >>> round(tree.score(X[1::2], y[1::2]), 2)
    0.96
    >>> tree.pair_score([[0, 1], [0, 149]], X)
    array([16.,  4.])
    """

    def __init__(
        self,
        *,
        max_depth: int | str = 10,
        splitter: Splitter | str = "cart",
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
        max_features: int | float | None = None,
        max_bins: int | None = 255,
        prune: str | None = None,
        prune_penalty: float = 0.0,
        cv: int = 5,
        open_set: bool | str = "auto",
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.splitter = splitter
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
        self.max_features = max_features
        self.max_bins = max_bins
        self.prune = prune
        self.prune_penalty = prune_penalty
        self.cv = cv
        self.open_set = open_set
        self.preprocessor = preprocessor
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pairs: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        never_pair: ArrayLike | None = None,
    ) -> Self:
        """Fit the tree on labelled samples, or on given pairs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples; with a ``preprocessor`` also identifiers of shape ``(n_pairs, 2)``.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.
        groups : array-like, optional
            Group of each sample, such as its identity; the folds of ``prune="cv"``, and those in which evidence of categories
            is learned, keep groups together. One entry per row of X, or shape ``(n_pairs, 2)`` for pairs given as
            ``(n_pairs, 2, n_features)``.
        never_pair : array-like of shape (n_samples,), optional
            Labelled samples that share a value here never form a pair. Use it for samples of the same recording or session,
            which are similar for reasons that do not hold for future pairs.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            samples, source = check_training(self, X, y, pairs, never_pair)
            in_groups = None if groups is None else encode_groups(groups, len(samples))
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
            samples = self._fit_representation(samples, source)
            params = self._growth_params(samples, source, rng, in_groups)
            samples = params.pair_map.extend(samples, training=True)
            index = params.sample(source, rng)
            grown = params.grow(samples, index, rng, n_jobs=self.n_jobs)
            self.prune_penalty_ = float(self.prune_penalty)
            self._full_path = pruning_path(grown) if self.prune == "cv" or self.prune_penalty_ > 0.0 else None
            if self._full_path is not None and self.prune == "cv":
                by_class = self.open_set not in (False, "auto")
                units = self._units(samples, source, in_groups, pairs, by_class=by_class, reason="prune='cv'")
                folds = fold_numbers(units, source, self.cv, rng)
                self.prune_penalty_ = choose_penalty(params, samples, source, folds, self._full_path, rng, n_jobs=self.n_jobs)
            self.tree_: RankTree = prune(grown, self.prune_penalty_) if self.prune_penalty_ > 0.0 else grown
            self.max_depth_ = params.max_depth
            self.n_pairs_ = len(index)
            self.threshold_ = youden_threshold(self.tree_.roc)
        return self

    @property
    def roc_(self) -> Roc:
        """ROC curve on the training pairs; its points are the paper's knots."""
        check_is_fitted(self)
        return self.tree_.roc

    @property
    def auc_(self) -> float:
        """AUC on the training pairs: one half plus half the sum of the gains of all splits."""
        check_is_fitted(self)
        return float(0.5 + 0.5 * self.tree_.cells.gain.sum())

    def cost_complexity_path(self) -> PruningPath:
        """Return the pruning path of the tree as it was grown, before pruning.

        Returns
        -------
        PruningPath
            Penalty, training AUC and number of terminal cells of each nested subtree.
        """
        check_is_fitted(self)
        return pruning_path(self.tree_) if self._full_path is None else self._full_path

    def apply(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.int32]:
        """Return the terminal cell of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or (n_pairs, 2) with X
            Pairs of samples, or of row indices of X (or of identifiers for the preprocessor).
        X : array-like of shape (n_samples, n_features), optional
            Samples that row indices refer to.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Indices into the arrays of ``tree_.cells``.
        """
        check_is_fitted(self)
        samples, first, second = check_pairs(self, pairs, X)
        prepared = self._prepare(samples)
        return self.tree_.apply(SamplePairs(prepared, prepared, first, second))

    def export_text(self, *, feature_names: Sequence[str] | None = None, max_depth: int | None = None, digits: int = 3) -> str:
        """Return the tree as text: the counts, FPR and TPR of each cell, and the rule that splits it.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the features; by default those seen in `fit`, or x0, x1, ...
        max_depth : int, optional
            Depth of the deepest cells to show.
        digits : int, default=3
            Number of significant digits.

        Returns
        -------
        str
            One line per cell and rule.
        """
        check_is_fitted(self)
        names = self._names(feature_names)
        return rules.export_text(self.tree_, feature_names=names, max_depth=max_depth, digits=digits)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("prune", self.prune, (None, "cv"))
        check_real("prune_penalty", self.prune_penalty, 0.0, 1.0)
        check_integer("cv", self.cv, 2)

    def _get_fitted_state(self) -> dict[str, Any]:
        path = self._full_path
        return {
            **self._get_trees_state(),
            "n_pairs": self.n_pairs_,
            "prune_penalty": self.prune_penalty_,
            "pruning_path": None if path is None else path._get_state(),
        }

    def _set_fitted_state(self, fields: Fields) -> None:
        trees = self._set_trees_state(fields)
        self.tree_ = trees[0]
        if len(trees) > 1 or self.tree_.max_depth != self.max_depth_:
            raise fields.fail("trees", "must be one tree of this max_depth")
        self.n_pairs_ = fields.integer("n_pairs", 1, MAX_COUNT)
        self.prune_penalty_ = fields.number("prune_penalty", 0.0, 1.0)
        self._full_path = PruningPath._from_state(fields.part("pruning_path")) if fields.has("pruning_path") else None

    def _summary(self) -> dict[str, Any]:
        return {"tree": rules.to_dict(self.tree_, self._names(None))}

    def _trees(self) -> list[RankTree]:
        return [self.tree_]

    def _leaf_values(self) -> LeafValues | None:
        return [self.tree_], [self.tree_.scores]

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        return self.tree_.score(pairs)

    def _max_score(self) -> float:
        return float(2**self.max_depth_)
