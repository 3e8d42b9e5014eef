"""Splitters (LeafRank): how a cell of pairs is split in two. See `Splitter` for the interface."""

from simtree.splitters._base import Cell, Split, Splitter
from simtree.splitters._cart import CartSplitter
from simtree.splitters._classifier import ClassifierSplitter
from simtree.splitters._cross import CrossSplitter
from simtree.splitters._cut import CutSplitter
from simtree.splitters._gaussian import GaussianSplitter
from simtree.splitters._linear import LinearSplitter
from simtree.splitters._oblique import ObliqueCartSplitter

#: Splitters that can be given by name.
BY_NAME: dict[str, type[Splitter]] = {
    "cart": CartSplitter,
    "cross": CrossSplitter,
    "cut": CutSplitter,
    "gaussian": GaussianSplitter,
    "linear": LinearSplitter,
    "oblique": ObliqueCartSplitter,
}

__all__ = [
    "BY_NAME",
    "CartSplitter",
    "Cell",
    "ClassifierSplitter",
    "CrossSplitter",
    "CutSplitter",
    "GaussianSplitter",
    "LinearSplitter",
    "ObliqueCartSplitter",
    "Split",
    "Splitter",
]
