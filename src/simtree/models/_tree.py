"""SimilarityTree: a similarity learned as one ranking tree."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree._utils.matrices import MAX_SQUARED
from simtree._utils.validation import check_choice, check_integer, check_n_jobs, check_real, count, n_to_draw
from simtree.growing._cross_validation import choose_penalty, fold_numbers
from simtree.growing._grower import GrowthParams
from simtree.io._fields import MAX_COUNT, Fields
from simtree.io._registry import MODEL, register
from simtree.metrics import Roc, youden_threshold
from simtree.models._base import LeafValues, Similarity
from simtree.models._represented import RepresentedMixin
from simtree.pairs._coordinates import OBLIQUE, CoordinateSet, SamplePairs, check_training_values, max_value
from simtree.pairs._directions import DISCRIMINANT, MAX_DISCRIMINANT, RANDOM, WAYS, discriminant_directions, random_directions
from simtree.pairs._inputs import check_pairs, check_training
from simtree.pairs._labels import encode_groups
from simtree.pairs._sampling import PairSource, check_drawing
from simtree.representation._applied import represented_names
from simtree.splitters import BY_NAME, Splitter
from simtree.trees import _export as rules
from simtree.trees._explanation import Explanation, explain
from simtree.trees._pruning import PruningPath, prune, pruning_path
from simtree.trees._rank_tree import MAX_DEPTH, RankTree

# Pairs that discriminant directions are computed from.
DIRECTION_PAIRS = 100_000


class TreeLearner(RepresentedMixin, Similarity):
    """What the tree and the forest have in common: parameters of a tree, their checks, and names of features."""

    max_depth: int | str
    splitter: Splitter | str
    representation: Any
    coordinates: Sequence[str] | None
    directions: str | Sequence[str]
    n_directions: int | None
    n_pairs: int | None
    positive_fraction: float | None
    same_weighting: str
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
        directions: NDArray[np.float64] | None = None,
    ) -> GrowthParams:
        """The checked parameters of a tree on these (represented) data; ``rng`` is for directions that are not known yet."""
        splitter = clone(self._default_splitter() if isinstance(self.splitter, str) else self.splitter)
        kinds = tuple(splitter.default_coordinates if self.coordinates is None else self.coordinates)
        n_features = samples.shape[1]
        squared = splitter.squares or (directions is None and OBLIQUE in kinds and DISCRIMINANT in self.directions)
        self._check_magnitude(samples, *_limit(kinds, n_features, squared))
        check_training_values(samples, kinds)
        if directions is None:
            directions = self._find_directions(samples, source, rng) if OBLIQUE in kinds else np.empty((0, n_features))
        pair_map = CoordinateSet(kinds, n_features, directions)
        splitter.check(pair_map)
        return GrowthParams(
            splitter=splitter,
            pair_map=pair_map,
            max_depth=self._depth(source.n_observations),
            min_pairs_split=self.min_pairs_split,
            min_pairs_leaf=self.min_pairs_leaf,
            n_columns=n_to_draw("max_features", self.max_features, pair_map.n_columns),
            focus_fpr=self.focus_fpr,
            max_bins=self.max_bins,
            n_pairs=self.n_pairs,
            positive_fraction=self.positive_fraction,
            same_weighting=self.same_weighting,
        )

    def _find_directions(self, samples: NDArray[Any], source: PairSource, rng: np.random.Generator) -> NDArray[np.float64]:
        """The directions of oblique coordinates."""
        ways = [self.directions] if isinstance(self.directions, str) else list(self.directions)
        n_features = samples.shape[1]
        found = []
        for way in ways:
            if way == RANDOM:
                n = max(1, n_features - 1) if self.n_directions is None else int(self.n_directions)
                found.append(random_directions(n, n_features, rng))
            else:
                n = MAX_DISCRIMINANT if self.n_directions is None else int(self.n_directions)
                drawn = source.sample(DIRECTION_PAIRS, rng, positive_fraction=0.5)
                pairs = SamplePairs(samples, samples, drawn.first, drawn.second)
                found.append(discriminant_directions(pairs, drawn.same, n, np.arange(n_features)))
        return np.concatenate(found)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the splitter as ``splitter__name``, also where a word stands for the splitter."""
        if (
            isinstance(self.splitter, str)
            and "splitter" not in params
            and any(name.startswith("splitter__") for name in params)
        ):
            self.splitter = self._default_splitter()
        super().set_params(**params)
        return self

    def _default_splitter(self) -> Splitter:
        """The splitter that a word stands for."""
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
        kinds = self.coordinates
        if kinds is not None and not (isinstance(kinds, list | tuple) and all(isinstance(kind, str) for kind in kinds)):
            raise TypeError(f"coordinates={kinds!r} is not a list of words; give one, such as ['abs_diff', 'sum'].")
        ways = [self.directions] if isinstance(self.directions, str) else self.directions
        if not isinstance(ways, list | tuple) or not ways or any(way not in WAYS for way in ways):
            raise ValueError(f"directions={self.directions!r} is unknown; give one or a list of {', '.join(map(repr, WAYS))}.")
        if self.n_directions is not None:
            check_integer("n_directions", self.n_directions, 1)
        check_n_jobs(self.n_jobs)
        check_drawing(self.n_pairs, self.positive_fraction, self.same_weighting)
        check_integer("min_pairs_split", self.min_pairs_split, 2)
        check_integer("min_pairs_leaf", self.min_pairs_leaf, 1)
        if self.focus_fpr is not None:
            check_real("focus_fpr", self.focus_fpr, 0.0, 1.0, open_low=True)
        if self.max_bins is not None:
            check_integer("max_bins", self.max_bins, 2, 256)

    def _depth(self, n: int) -> int:
        """The depth as a number, for n points (or given pairs)."""
        return max(1, round(math.sqrt(math.log(n)))) if self.max_depth == "sqrt_log" else int(self.max_depth)

    def explain_pair(self, x: ArrayLike, x2: ArrayLike, *, feature_names: Sequence[str] | None = None) -> Explanation:
        """What each feature added to the score of the pair (x, x2).

        Print it, or draw it with `simtree.plots.ExplanationDisplay`.

        Parameters
        ----------
        x, x2 : array-like of shape (n_features,)
            The two points.
        feature_names : sequence of str, optional
            Names of the features; by default those of the data frame that was fitted, or x0, x1, ...
        """
        check_is_fitted(self)
        samples, first, second = check_pairs(self, np.array([[x, x2]], dtype=np.float64), None)
        prepared = self._prepare(samples)
        leaf_values = self._leaf_values()
        if leaf_values is None:
            raise ValueError("aggregation='median_rank': a median is not a sum over trees; explain with another aggregation.")
        return explain(*leaf_values, SamplePairs(prepared, prepared, first, second), self._names(feature_names))

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the AUC gain of all splits; sums to one (all zero if no split was made)."""
        check_is_fitted(self)
        gains = np.sum([tree.feature_gains() for tree in self._trees()], axis=0)
        total = gains.sum()
        return np.asarray(gains / total if total > 0.0 else gains, dtype=np.float64)

    @abstractmethod
    def _trees(self) -> list[RankTree]:
        """The grown trees."""

    def _get_trees_state(self) -> dict[str, Any]:
        """Return what a model file holds of the trees and of what comes before them."""
        return {
            "representation": self._get_representation_state(),
            "max_depth": self.max_depth_,
            "trees": RankTree._get_state(self._trees()),
        }

    def _set_trees_state(self, fields: Fields) -> list[RankTree]:
        """Read the representation and the depth; return the trees."""
        n_features = self._set_representation_state(fields)
        self.max_depth_ = fields.integer("max_depth", 1, MAX_DEPTH)
        trees = RankTree._from_state(fields.part("trees"))
        if trees[0].pair_map.n_features != n_features:
            raise fields.fail("trees", f"must be of samples with {count(n_features, 'feature')}")
        return trees

    def _units(
        self,
        samples: NDArray[Any],
        source: PairSource,
        groups: ArrayLike | None,
        pairs: ArrayLike | None,
        *,
        whole_classes: bool,
        why: str,
    ) -> NDArray[np.int64]:
        """What bags and folds are made of, as a number for each point; ``why`` names the parameter that needs it."""
        if groups is not None:
            return encode_groups(groups, len(samples))
        if source.labels is not None:
            return source.labels if whole_classes else np.arange(len(samples))
        if pairs is None or whole_classes:
            rest = "." if whole_classes else ", or row numbers of X as pairs."
            raise ValueError(f"{why} needs to know which points are the same: give groups{rest}")
        return np.arange(len(samples))

    def _names(self, feature_names: Sequence[str] | None) -> Sequence[str] | None:
        """Feature names as given, or as seen in fit; their number is checked."""
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        if names is not None and len(names) != self.n_features_in_:
            raise ValueError(f"feature_names has {count(len(names), 'name')}; X had {count(self.n_features_in_, 'feature')}.")
        return names if self.representation_ is None else represented_names(self.representation_, names)

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        pair_map = self._trees()[0].pair_map
        if not len(samples):
            return np.empty((0, pair_map.n_columns))
        represented = self._represent(samples)
        # The regions of a model that are not axis regions are all of one kind.
        region = next((region for tree in self._trees() for region in tree.regions.values()), None)
        squared = region is not None and region.kind != "linear"
        self._check_magnitude(represented, *_limit(pair_map.kinds, pair_map.n_features, squared))
        return pair_map.extend(represented)


def _limit(kinds: Sequence[str], n_features: int, squared: bool) -> tuple[float, str]:
    """Return the largest absolute value of a feature, and what requires it; ``squared`` if the splitter sums squares."""
    limit, needed_by = max_value(kinds, n_features)
    return (MAX_SQUARED, "the splitter's sums of squares") if squared and limit > MAX_SQUARED else (limit, needed_by)


@register(MODEL)
class SimilarityTree(TreeLearner):
    """A similarity of two points, learned as a ranking tree over pairs (the paper's Similarity TreeRank).

    Parameters
    ----------
    max_depth : int or "sqrt_log", default=10
        Depth of the tree, 1 to 52. ``"sqrt_log"`` is the rule of the paper's theorem: the square root of the logarithm of the
        number of points (of pairs, if pairs are given), rounded, at least 1.
    splitter : Splitter or {"cart", "cut", "cross", "linear", "oblique", "gaussian"}, default="cart"
        LeafRank: how a cell is split.
    representation : transformer, optional
        What is done to the points first: a scikit-learn transformer or a Pipeline of them, see `simtree.representation`. It is
        fitted by its ``fit_transform`` and applied once to each point. One that needs labels needs labelled points.
    coordinates : sequence of str, optional
        Kinds of symmetric coordinates, from `simtree.pairs.KINDS`: of each feature (``abs_diff``, ``sum``, ``min``, ``max``,
        ``product``), of the whole pair (``dot``, ``cosine``, ``euclidean``, ``manhattan``), or ``oblique``. By default what the
        splitter wants, mostly ``["abs_diff", "sum"]``.
    directions : {"random", "discriminant"} or a list of them, default="random"
        The directions w of ``oblique`` coordinates |w·(x - x')| and w·(x + x').
    n_directions : int or None, default=None
        How many directions of each sort; None is one less than there are features for random ones, which together with
        ``abs_diff`` makes the coordinates complete, and at most 40 for discriminant ones.
    n_pairs : int or None, default=100_000
        How many pairs of labelled points are drawn (all, if there are fewer); None uses all pairs.
    positive_fraction : float or None, default=0.5
        Share of same pairs among those drawn. None keeps the natural mix. Only the variance depends on it.
    same_weighting : {"pairs", "identities"}, default="pairs"
        Same pairs uniform over pairs, or over classes, so that a class with many points does not make up most same pairs.
    min_pairs_split : int, default=2
        Least number of pairs of a cell that is split.
    min_pairs_leaf : int, default=1
        Least number of pairs of a cell. A cut or a square is chosen among those that respect it; a split by another region is
        not made if it does not.
    focus_fpr : float or None, default=None
        Cells that lie wholly to the right of this false positive rate are not split: all effort goes to the left of the curve.
    max_features : int, float or None, default=None
        How many features (float: which share) are drawn for each cell; None uses all.
    max_bins : int or None, default=255
        Most bins of a coordinate, 2 to 256: exact where its distinct values fit, quantiles otherwise. None is always exact,
        and slower.
    prune : {None, "cv"}, default=None
        ``"cv"`` merges cells again where that raises the AUC estimated by cross-validation.
    prune_penalty : float, default=0.0
        AUC that a terminal cell must be worth, if ``prune`` is None; 0 keeps the whole tree.
    cv : int, default=5
        Number of folds of ``prune="cv"``. Folds are made of points, so that no fold shares a point with another.
    open_set : bool, default=False
        Make folds of whole classes: for data whose classes were never seen in training.
    preprocessor : array-like or callable, optional
        As in metric-learn: points, or a function from identifiers to points, to which ``(n_pairs, 2)`` input refers.
    n_jobs : int or None, default=None
        Threads for scoring, and for binning and counting large cells in `fit`. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the drawn pairs and features.

    Attributes
    ----------
    tree_ : RankTree
        The grown tree.
    max_depth_ : int
        The depth that was meant, as a number.
    n_pairs_ : int
        How many pairs the tree was grown on.
    prune_penalty_ : float
        The penalty that was used.
    threshold_ : float
        Pairs with a score of at least this are predicted to be the same. Until it is set, it maximises TPR - FPR on the
        training pairs, which is optimistic: set it from held-out data.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A terminal cell that is the k-th most similar of depth j has the score ``2**max_depth_ * (1 - k / 2**j)``: an order, not a
    probability.

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
        open_set: bool = False,
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.splitter = splitter
        self.representation = representation
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
        """Learn from labelled points, or from pairs.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features), or (n_pairs, 2, n_features)
            Points, or pairs of points; with a ``preprocessor`` also ``(n_pairs, 2)`` identifiers.
        y : array-like
            For points the class of each; for pairs whether each is the same (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Row numbers of X. Then ``y`` has an entry for each pair.
        groups : array-like, optional
            What the points are points of, such as people: folds of ``prune="cv"`` then hold whole groups. One entry for each
            row of X, or ``(n_pairs, 2)`` for pairs given as ``(n_pairs, 2, n_features)``.
        never_pair : array-like of shape (n_points,), optional
            For labelled points: those that share a value here never form a pair, such as points of one recording or of one
            sitting, which are alike for reasons that tomorrow's pairs will not have.

        Returns
        -------
        self
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            samples, source = check_training(self, X, y, pairs, never_pair)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
            samples = self._fit_representation(samples, source)
            params = self._growth_params(samples, source, rng)
            samples = params.pair_map.extend(samples)
            index = params.sample(source, rng)
            grown = params.grow(samples, index, rng, n_jobs=self.n_jobs)
            self.prune_penalty_ = float(self.prune_penalty)
            self._whole_path = pruning_path(grown) if self.prune == "cv" or self.prune_penalty_ > 0.0 else None
            if self._whole_path is not None and self.prune == "cv":
                units = self._units(samples, source, groups, pairs, whole_classes=self.open_set, why="prune='cv'")
                folds = fold_numbers(units, source, self.cv, rng)
                self.prune_penalty_ = choose_penalty(params, samples, source, folds, self._whole_path, rng, n_jobs=self.n_jobs)
            self.tree_: RankTree = prune(grown, self.prune_penalty_) if self.prune_penalty_ > 0.0 else grown
            self.max_depth_ = params.max_depth
            self.n_pairs_ = len(index)
            self.threshold_ = youden_threshold(self.tree_.roc)
        return self

    @property
    def roc_(self) -> Roc:
        """ROC curve of the tree on its training pairs; its points are the paper's knots."""
        check_is_fitted(self)
        return self.tree_.roc

    @property
    def auc_(self) -> float:
        """AUC on the training pairs: one half plus half the sum of the gains of all splits."""
        check_is_fitted(self)
        return float(0.5 + 0.5 * self.tree_.cells.gain.sum())

    def cost_complexity_path(self) -> PruningPath:
        """Penalties, training AUC and number of terminal cells of the nested subtrees of the tree as it was grown."""
        check_is_fitted(self)
        return pruning_path(self.tree_) if self._whole_path is None else self._whole_path

    def apply(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.int32]:
        """The terminal cell of each pair, as a row number of ``tree_.cells``; takes what `pair_score` takes."""
        check_is_fitted(self)
        samples, first, second = check_pairs(self, pairs, X)
        prepared = self._prepare(samples)
        return self.tree_.apply(SamplePairs(prepared, prepared, first, second))

    def export_text(self, *, feature_names: Sequence[str] | None = None, max_depth: int | None = None, digits: int = 3) -> str:
        """The tree as rules: counts, FPR and TPR of each cell, and how it is split.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the features; by default those of the data frame the tree was fitted on, or x0, x1, ...
        max_depth : int, optional
            Cells of this depth are the last to be shown.
        digits : int, default=3
            Significant digits.
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
        path = self._whole_path
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
        self._whole_path = PruningPath._from_state(fields.part("pruning_path")) if fields.has("pruning_path") else None

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
