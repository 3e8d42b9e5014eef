"""simtree learns how alike two things are: ranking trees whose ROC curve over pairs is as high as possible."""

from simtree.estimators import SimilarityTree
from simtree.forest import SimilarityForest
from simtree.splitters import CartSplitter, ClassifierSplitter, CrossSplitter, CutSplitter, LinearSplitter

__version__ = "0.1.0.dev0"

__all__ = [
    "CartSplitter",
    "ClassifierSplitter",
    "CrossSplitter",
    "CutSplitter",
    "LinearSplitter",
    "SimilarityForest",
    "SimilarityTree",
    "__version__",
]
