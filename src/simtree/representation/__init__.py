"""Representations of points: transformers to put before a similarity, cross-fitted where they learn from labels."""

from simtree.representation.discriminant import KernelDiscriminant
from simtree.representation.landmarks import LandmarkFeatures
from simtree.representation.posterior import ForestPosterior
from simtree.representation.quantiles import QuantileMargins
from simtree.representation.whitening import WithinClassWhitening

__all__ = ["ForestPosterior", "KernelDiscriminant", "LandmarkFeatures", "QuantileMargins", "WithinClassWhitening"]
