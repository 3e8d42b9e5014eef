"""LeafRank: how a cell of pairs is split in two. One file a splitter; the contract is in `simtree.splitters.base`."""

from simtree.splitters.base import Cell, Split, Splitter
from simtree.splitters.cart import CartSplitter
from simtree.splitters.classifier import ClassifierSplitter
from simtree.splitters.cross import CrossSplitter
from simtree.splitters.cut import CutSplitter
from simtree.splitters.gaussian import GaussianSplitter
from simtree.splitters.linear import LinearSplitter
from simtree.splitters.oblique import ObliqueCartSplitter

#: Splitters that can be named by a word.
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
