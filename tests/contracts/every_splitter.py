"""The list of all splitters: to add one, add an entry, and all contract tests run on it."""

from __future__ import annotations

from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from simtree import (
    CartSplitter,
    ClassifierSplitter,
    CrossSplitter,
    CutSplitter,
    GaussianSplitter,
    LinearSplitter,
    ObliqueCartSplitter,
)

SPLITTERS = {
    "cut": CutSplitter(),
    "cross": CrossSplitter(),
    "cart": CartSplitter(),
    "cart-entropy": CartSplitter(criterion="entropy", max_depth=3),
    "cart-auc": CartSplitter(criterion="auc", min_samples_leaf=1),
    "cart-drawn": CartSplitter(max_features=0.3),
    "linear": LinearSplitter(),
    "oblique": ObliqueCartSplitter(n_directions=2, min_samples=20),
    "oblique-drawn": ObliqueCartSplitter(n_directions=1, min_samples=20, max_samples=200, max_features=0.4),
    "gaussian": GaussianSplitter(),
    "tree": ClassifierSplitter(DecisionTreeClassifier(max_depth=3)),
    "svc": ClassifierSplitter(SVC(C=10.0), max_samples=300),
    "forest": ClassifierSplitter(RandomForestClassifier(n_estimators=5, max_depth=3)),
    "neighbours": ClassifierSplitter(KNeighborsClassifier()),
    "network": ClassifierSplitter(MLPClassifier([5], solver="lbfgs", max_iter=50), max_samples=300),
}
