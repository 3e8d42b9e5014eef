"""Representations of points: transformers to put before a similarity, cross-fitted where they learn from labels."""

from simtree.representation import _sklearn as _sklearn  # registers what model files hold of scikit-learn's transformers
from simtree.representation._discriminant import KernelDiscriminant
from simtree.representation._landmarks import LandmarkFeatures
from simtree.representation._posterior import ForestPosterior
from simtree.representation._quantiles import MarginalQuantiles
from simtree.representation._whitening import WithinClassWhitening

__all__ = ["ForestPosterior", "KernelDiscriminant", "LandmarkFeatures", "MarginalQuantiles", "WithinClassWhitening"]
