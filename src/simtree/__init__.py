"""simtree learns how alike two things are: ranking trees whose ROC curve over pairs is as high as possible."""

import importlib
from typing import Any

from simtree.auto import AutoSimilarity
from simtree.estimators import SimilarityTree
from simtree.evaluation import Evaluation, evaluate, evaluate_scores
from simtree.forest import SimilarityForest
from simtree.gaussian import GaussianSimilarity
from simtree.loading import load
from simtree.persistence import ModelFileError
from simtree.plain import PlainSimilarity
from simtree.representation import (
    ForestPosterior,
    KernelDiscriminant,
    LandmarkFeatures,
    QuantileMargins,
    WithinClassWhitening,
)
from simtree.splitters import (
    CartSplitter,
    ClassifierSplitter,
    CrossSplitter,
    CutSplitter,
    GaussianSplitter,
    LinearSplitter,
    ObliqueCartSplitter,
)
from simtree.voting import VotingSimilarity

__version__ = "0.1.0.dev0"

__all__ = [
    "AutoSimilarity",
    "CartSplitter",
    "ClassifierSplitter",
    "CrossSplitter",
    "CutSplitter",
    "Evaluation",
    "ForestPosterior",
    "GaussianSimilarity",
    "GaussianSplitter",
    "KernelDiscriminant",
    "LandmarkFeatures",
    "LinearSplitter",
    "ModelFileError",
    "ObliqueCartSplitter",
    "PlainSimilarity",
    "QuantileMargins",
    "SimilarityForest",
    "SimilarityTree",
    "VotingSimilarity",
    "WithinClassWhitening",
    "__version__",
    "evaluate",
    "evaluate_scores",
    "load",
]

_MODULES = ("datasets", "intervals", "metrics", "pairs", "plots", "representation", "score_files", "splitters", "symmetry")


def __getattr__(name: str) -> Any:
    """Public modules are imported when they are asked for: ``simtree.datasets`` works after ``import simtree``."""
    if name in _MODULES:
        return importlib.import_module(f"simtree.{name}")
    raise AttributeError(f"module 'simtree' has no attribute {name!r}")
