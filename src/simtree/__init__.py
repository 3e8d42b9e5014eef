"""A scikit-learn-compatible library for similarity learning.

Trees, forests and boosting that optimise the ROC curve of a symmetric pair score, for verification, identification and record
linkage.
"""

from simtree._utils import startup as _startup  # noqa: F401 - before all others: it watches over the imports that follow

# isort: split
import importlib
from typing import TYPE_CHECKING, Any

from simtree.evaluation import Evaluation, evaluate, evaluate_scores
from simtree.io import ModelFileError
from simtree.models import (
    AutoSimilarity,
    Clusters,
    CohortNormalization,
    DistanceSimilarity,
    GaussianSimilarity,
    PosteriorSimilarity,
    SimilarityBoosting,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
    cluster,
    from_pipeline,
    load,
)
from simtree.representation import (
    BoostingPosterior,
    ColumnRepresentation,
    ForestPosterior,
    Imputer,
    KernelDiscriminant,
    LandmarkFeatures,
    LogisticPosterior,
    MarginalQuantiles,
    MeanPosterior,
    NetworkPosterior,
    NuisanceCentering,
    RarityEncoder,
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

if TYPE_CHECKING:  # it needs SQLite, which most programs do not
    from simtree.gallery import Gallery

__version__ = "0.1.0.dev0"

__all__ = [
    "AutoSimilarity",
    "BoostingPosterior",
    "CartSplitter",
    "ClassifierSplitter",
    "Clusters",
    "CohortNormalization",
    "ColumnRepresentation",
    "CrossSplitter",
    "CutSplitter",
    "DistanceSimilarity",
    "Evaluation",
    "ForestPosterior",
    "Gallery",
    "GaussianSimilarity",
    "GaussianSplitter",
    "Imputer",
    "KernelDiscriminant",
    "LandmarkFeatures",
    "LinearSplitter",
    "LogisticPosterior",
    "MarginalQuantiles",
    "MeanPosterior",
    "ModelFileError",
    "NetworkPosterior",
    "NuisanceCentering",
    "ObliqueCartSplitter",
    "PosteriorSimilarity",
    "RarityEncoder",
    "SimilarityBoosting",
    "SimilarityForest",
    "SimilarityTree",
    "StackedSimilarity",
    "VotingSimilarity",
    "WithinClassWhitening",
    "__version__",
    "cluster",
    "evaluate",
    "evaluate_scores",
    "from_pipeline",
    "load",
]

_PUBLIC = (
    "dask",
    "datasets",
    "evaluation",
    "gallery",
    "io",
    "metrics",
    "models",
    "pairs",
    "plots",
    "report",
    "representation",
    "service",
    "splitters",
    "trees",
)


def __getattr__(name: str) -> Any:
    """Import public modules, and `Gallery`, when they are asked for: ``simtree.datasets`` works after ``import simtree``."""
    if name == "Gallery":
        return importlib.import_module("simtree.gallery").Gallery
    if name in _PUBLIC:
        return importlib.import_module(f"simtree.{name}")
    raise AttributeError(f"module 'simtree' has no attribute {name!r}")
