"""Representations of samples: transformers to apply before a similarity, cross-fitted if they learn from labels."""

from simtree.representation import _sklearn as _sklearn  # registers scikit-learn transformers for model files
from simtree.representation import _sklearn_cleaning as _sklearn_cleaning
from simtree.representation._boosting import BoostingPosterior
from simtree.representation._columns import ColumnRepresentation
from simtree.representation._discriminant import KernelDiscriminant
from simtree.representation._imputer import Imputer
from simtree.representation._landmarks import LandmarkFeatures
from simtree.representation._logistic import LogisticPosterior
from simtree.representation._mean import MeanPosterior
from simtree.representation._network import NetworkPosterior
from simtree.representation._nuisance import NuisanceCentering
from simtree.representation._posterior import ForestPosterior
from simtree.representation._quantiles import MarginalQuantiles
from simtree.representation._rarity import RarityEncoder
from simtree.representation._whitening import WithinClassWhitening

__all__ = [
    "BoostingPosterior",
    "ColumnRepresentation",
    "ForestPosterior",
    "Imputer",
    "KernelDiscriminant",
    "LandmarkFeatures",
    "LogisticPosterior",
    "MarginalQuantiles",
    "MeanPosterior",
    "NetworkPosterior",
    "NuisanceCentering",
    "RarityEncoder",
    "WithinClassWhitening",
]
