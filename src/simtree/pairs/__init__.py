"""Pairs of samples: how they are sampled and split, and the symmetric coordinates computed from them."""

from simtree.pairs._coordinates import KINDS, CoordinateSet
from simtree.pairs._cross_validation import PairGroupKFold
from simtree.pairs._pair_features import pair_features
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._splitting import split_identities

__all__ = [
    "KINDS",
    "CoordinateSet",
    "IndexPairs",
    "PairGroupKFold",
    "PairSampler",
    "PairSource",
    "pair_features",
    "split_identities",
]
