"""Representations of points: transformers to put before a similarity, cross-fitted where they learn from labels."""

from simtree.representation.discriminant import KernelDiscriminant
from simtree.representation.posterior import ForestPosterior
from simtree.representation.quantiles import QuantileMargins

__all__ = ["ForestPosterior", "KernelDiscriminant", "QuantileMargins"]
