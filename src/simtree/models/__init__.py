"""Similarity models: tree, forest, boosting, Gaussian, distance, posteriors, cohorts, ensembles and AutoML; and `load`."""

from simtree.models._auto import AutoSimilarity
from simtree.models._base import Similarity
from simtree.models._boosting import SimilarityBoosting
from simtree.models._clustering import Clusters, cluster
from simtree.models._cohort import CohortNormalization
from simtree.models._distance import DistanceSimilarity
from simtree.models._forest import SimilarityForest
from simtree.models._gaussian import GaussianSimilarity
from simtree.models._load import load
from simtree.models._pipeline import from_pipeline
from simtree.models._posterior import PosteriorSimilarity
from simtree.models._stack import StackedSimilarity
from simtree.models._tree import SimilarityTree
from simtree.models._voting import VotingSimilarity

__all__ = [
    "AutoSimilarity",
    "Clusters",
    "CohortNormalization",
    "DistanceSimilarity",
    "GaussianSimilarity",
    "PosteriorSimilarity",
    "Similarity",
    "SimilarityBoosting",
    "SimilarityForest",
    "SimilarityTree",
    "StackedSimilarity",
    "VotingSimilarity",
    "cluster",
    "from_pipeline",
    "load",
]
