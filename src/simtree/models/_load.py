"""`load`: a model file back to a fitted model; every number of it is checked before it is used.

What a model writes of itself is its document (`Similarity.save`); here all of them are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from simtree.evaluation._calibration import Calibration
from simtree.evaluation._thresholds import STRATEGIES, ThresholdReport
from simtree.io._archive import Fields, read_document
from simtree.models._auto import AutoSimilarity
from simtree.models._base import Similarity
from simtree.models._distance import DistanceSimilarity
from simtree.models._forest import SimilarityForest
from simtree.models._gaussian import GREATEST_RATIO, GaussianLaw, GaussianSimilarity
from simtree.models._part_files import GREATEST, check_parameters, read_estimator, read_moderate, read_representation
from simtree.models._tree import SimilarityTree, TreeLearner
from simtree.models._voting import VotingSimilarity
from simtree.pairs._coordinates import CoordinateSet
from simtree.trees._pruning import PruningPath
from simtree.trees._rank_tree import RankTree
from simtree.trees._tree_files import DEEPEST, MOST_FEATURES, MOST_PAIRS, read_roc, read_trees

# Larger numbers are taken for damage.
MOST_CANDIDATES = 1 << 10
MOST_SEEDS = 1 << 4
MOST_MEMBERS = 1 << 8

VOTING = "VotingSimilarity"
# What AutoSimilarity may have chosen.
CHOSEN = ("GaussianSimilarity", "DistanceSimilarity", "SimilarityForest", VOTING)


def load(path: str | os.PathLike[str]) -> Similarity:
    """Read a model that `save` wrote.

    A file is data: nothing in it is run, and what is not as it must be is refused. The model scores as the saved one did, bit
    for bit on the same machine.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    SimilarityTree, SimilarityForest, GaussianSimilarity, DistanceSimilarity, VotingSimilarity or AutoSimilarity

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, or was written by a newer simtree.

    Examples
    --------
    >>> import tempfile, simtree
    >>> model = simtree.DistanceSimilarity(metric="euclidean").fit([[0.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/plain.simtree")
    ...     simtree.load(f"{folder}/plain.simtree")
    DistanceSimilarity(metric='euclidean')
    """
    return read_model(read_document(Path(path)))


def read_model(fields: Fields, known: tuple[str, ...] | None = None) -> Similarity:
    """The model of a document, one of some classes if these are given."""
    classes = {name: made for name, (made, _) in MODELS.items() if known is None or name in known}
    given = {"estimators": _read_members(fields.part("fitted"))} if fields.word("class", classes) == VOTING else {}
    model = read_estimator(fields, classes, **given)
    check_parameters(fields, model)
    model.n_features_in_ = fields.integer("n_features_in", 1, MOST_FEATURES)
    if fields.has("feature_names_in"):
        names = fields.words("feature_names_in", MOST_FEATURES)
        if len(names) != model.n_features_in_:
            raise fields.fail("feature_names_in", f"must be {model.n_features_in_:,} words")
        model.feature_names_in_ = np.array(names, dtype=object)
    _, read_fitted = MODELS[type(model).__name__]
    read_fitted(fields.part("fitted"), model)
    model.threshold_ = fields.number("threshold")
    if fields.has("threshold_report"):
        model.threshold_report_ = _read_report(fields.part("threshold_report"))
        if model.threshold_report_.threshold != model.threshold_:
            raise fields.fail("threshold", "must be that of its report")
    if fields.has("calibration"):
        model.calibration_ = _read_calibration(fields.part("calibration"))
    return model


def _read_tree(fields: Fields, model: SimilarityTree) -> None:
    trees = _read_represented_trees(fields, model)
    model.tree_ = trees[0]
    if len(trees) > 1 or model.tree_.max_depth != model.max_depth_:
        raise fields.fail("trees", "must be one tree of this max_depth")
    model.n_pairs_ = fields.integer("n_pairs", 1, MOST_PAIRS)
    model.prune_penalty_ = fields.number("prune_penalty", 0.0, 1.0)
    model._whole_path = _read_path(fields.part("pruning_path")) if fields.has("pruning_path") else None


def _read_forest(fields: Fields, model: SimilarityForest) -> None:
    model.trees_ = _read_represented_trees(fields, model)
    model.refilled_ = fields.flag("refilled")
    entropy = fields.items("entropy", MOST_SEEDS)
    if not all(type(number) is int and 0 <= number < 1 << 32 for number in entropy):
        raise fields.fail("entropy", "must be whole numbers")
    model._entropy = tuple(entropy)
    model._training_roc = read_roc(fields.part("training_roc"))
    if fields.has("oob_roc"):
        model.oob_roc_ = read_roc(fields.part("oob_roc"))
        model.oob_score_ = model.oob_roc_.auc()


def _read_plain(fields: Fields, model: DistanceSimilarity) -> None:
    model._pair_map = CoordinateSet((model.metric,), _read_representation(fields, model))


def _read_gaussian(fields: Fields, model: GaussianSimilarity) -> None:
    n_features = _read_representation(fields, model)
    matrix = read_moderate(fields, "matrix", (n_features, None))
    ratios = fields.array("ratios", "float64", matrix.shape[1:], low=0.0, high=GREATEST_RATIO)
    if not len(ratios) or (np.diff(ratios) > 0.0).any():
        raise fields.fail("ratios", "must be numbers from the greatest to the least")
    reach = fields.number("reach", 0.0, GREATEST)
    model._take(GaussianLaw(read_moderate(fields, "mean", (n_features,)), matrix, ratios, reach))


def _read_auto(fields: Fields, model: AutoSimilarity) -> None:
    results = fields.part("results")
    names = results.words("name", MOST_CANDIDATES)
    model.results_ = {
        "name": np.array(names),
        **{column: results.numbers(column, len(names)) for column in ("tpr", "tpr_spread", "auc", "seconds")},
    }
    model.best_name_ = fields.word("best_name", names)
    model.open_set_ = fields.flag("open_set")
    model.fpr_ = fields.number("fpr", 0.0)
    model.best_estimator_ = read_model(fields.part("best_estimator"), CHOSEN)
    if model.best_estimator_.n_features_in_ != model.n_features_in_:
        raise fields.fail("best_estimator", "must have as many features as the model")


def _read_members(fields: Fields) -> list[tuple[str, Similarity]]:
    """The fitted members of a vote, with their names."""
    return [(part.word("name"), read_model(part.part("model"))) for part in fields.parts("members", MOST_MEMBERS)]


def _read_voting(fields: Fields, model: VotingSimilarity) -> None:
    model.estimators_ = [member for _, member in model.estimators]
    model.estimators = [(name, clone(member)) for name, member in model.estimators]
    n_members = len(model.estimators_)
    if any(member.n_features_in_ != model.n_features_in_ for member in model.estimators_):
        raise fields.fail("members", f"must be of points with {model.n_features_in_:,} features")
    model.scales_ = fields.array("scales", "float64", (n_members,), low=np.finfo(np.float64).tiny)
    origin = np.zeros((1, model.n_features_in_))
    model._n_columns = [member._ready(origin).shape[1] for member in model.estimators_]


# The models, and how what they learned is read.
MODELS: dict[str, tuple[type[Similarity], Callable[[Fields, Any], None]]] = {
    "AutoSimilarity": (AutoSimilarity, _read_auto),
    "GaussianSimilarity": (GaussianSimilarity, _read_gaussian),
    "DistanceSimilarity": (DistanceSimilarity, _read_plain),
    "SimilarityForest": (SimilarityForest, _read_forest),
    "SimilarityTree": (SimilarityTree, _read_tree),
    VOTING: (VotingSimilarity, _read_voting),
}


def _read_representation(fields: Fields, model: TreeLearner | DistanceSimilarity | GaussianSimilarity) -> int:
    """Read the representation, if there is one; how many features represented points have."""
    if not fields.has("representation"):
        model.representation_ = None
        return model.n_features_in_
    model.representation_, n_features = read_representation(fields.part("representation"), model.n_features_in_)
    return n_features


def _read_represented_trees(fields: Fields, model: TreeLearner) -> list[RankTree]:
    n_features = _read_representation(fields, model)
    model.max_depth_ = fields.integer("max_depth", 1, DEEPEST)
    trees = read_trees(fields.part("trees"))
    if trees[0].pair_map.n_features != n_features:
        raise fields.fail("trees", f"must be of points with {n_features:,} features")
    return trees


def _read_path(fields: Fields) -> PruningPath:
    """The subtrees of a tree as it was grown."""
    penalties = fields.array("penalties", "float64", (None,), low=0.0)
    aucs = fields.array("aucs", "float64", penalties.shape)
    return PruningPath(penalties, aucs, fields.array("n_leaves", "int64", penalties.shape, low=1))


def _read_report(fields: Fields) -> ThresholdReport:
    """How a threshold was chosen."""

    def rate(name: str) -> float:
        return fields.number(name, 0.0, 1.0)

    def count(name: str) -> int:
        return fields.integer(name, 0, MOST_PAIRS)

    return ThresholdReport(
        threshold=fields.number("threshold"),
        strategy=fields.word("strategy", STRATEGIES),
        max_fpr=rate("max_fpr") if fields.has("max_fpr") else None,
        confidence=rate("confidence") if fields.has("confidence") else None,
        fpr=rate("fpr"),
        tpr=rate("tpr"),
        fpr_bound=rate("fpr_bound") if fields.has("fpr_bound") else None,
        n_identities=count("n_identities"),
        n_same=count("n_same"),
        n_different=count("n_different"),
        n_effective=fields.number("n_effective", 0.0) if fields.has("n_effective") else None,
    )


def _read_calibration(fields: Fields) -> Calibration:
    """What scores are worth as evidence."""
    knots = fields.array("knots", "float64", (None,))
    llr = fields.array("llr", "float64", knots.shape)
    if not len(knots) or (knots[1:] <= knots[:-1]).any() or (llr[1:] < llr[:-1]).any():
        raise fields.fail("knots", "must rise, and llr must not fall")
    return Calibration(
        knots,
        llr,
        cllr_before=fields.number("cllr_before", 0.0),
        cllr_after=fields.number("cllr_after", 0.0),
        cllr_least=fields.number("cllr_least", 0.0),
        n_same=fields.integer("n_same", 0, MOST_PAIRS),
        n_different=fields.integer("n_different", 0, MOST_PAIRS),
    )
