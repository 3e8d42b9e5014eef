"""simtree's forest and its peers, each from labelled points to scores of pairs, with all costs.

A peer needs the coordinates |x - x'| and x + x' of its pairs as a matrix: it draws the pairs, makes the matrix and fits. All
learn from the same pairs, in the same mix, on as many threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from measure import AUC, N_JOBS, SEED, TPR
from problems import Points, draw, materialise, row_numbers
from simtree import CartSplitter, SimilarityForest, SimilarityTree
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs._sampling import IndexPairs

# Pairs whose coordinates a peer is handed at one time when it scores: 80 MB with 306 coordinates.
SCORED_AT_ONCE = 65_536


@dataclass(frozen=True)
class Spec:
    """A model and the pairs it learns from.

    Parameters
    ----------
    library : str
        Who makes it: "simtree", or a key of `PEERS`.
    n_pairs : int
        How many pairs a peer draws; of simtree, how many each tree draws, or all trees share.
    parameters : dict
        What differs from the forest of the benchmark (``n_estimators`` 1: a tree).
    shared : bool
        simtree only: whether all trees learn from the very pairs that a peer is given.
    """

    library: str
    n_pairs: int
    parameters: dict[str, Any] = field(default_factory=dict)
    shared: bool = False

    @property
    def file_name(self) -> str:
        said = "-".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return f"{self.library}-{self.n_pairs}-{said}-{self.shared}.joblib".replace(" ", "").replace("/", "")

    @property
    def installed(self) -> bool:
        return find_spec(MODULES[self.library]) is not None

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        if self.library != "simtree":
            pairs = draw(y, self.n_pairs)
            return PEERS[self.library](**self.parameters).fit(materialise(X, row_numbers(pairs)), pairs.same)
        if not self.shared:
            return self.similarity(n_pairs=self.n_pairs).fit(X, y)
        pairs = draw(y, self.n_pairs)
        return self.similarity().fit(X, pairs.same, pairs=row_numbers(pairs))

    def similarity(self, **more: Any) -> SimilarityForest | SimilarityTree:
        parameters = {"max_depth": 15, "n_jobs": N_JOBS, "random_state": SEED, **self.parameters, **more}
        max_features = parameters.pop("coordinates_a_test", 0.2)
        splitter = CartSplitter(max_depth=5, max_features=max_features)
        if parameters.get("n_estimators") == 1:
            del parameters["n_estimators"]
            return SimilarityTree(splitter=splitter, **parameters)
        return SimilarityForest(splitter=splitter, **parameters)


# A forest on products with discriminant directions alone, which has few coordinates: better and faster where classes differ
# along combinations of features.
OBLIQUE = {"coordinates": ["oblique"], "directions": "discriminant", "min_pairs_split": 100}

# What is not said here is the library's default.


def lightgbm(n_trees: int = 100, **parameters: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(**({"n_estimators": n_trees, "num_leaves": 63, "verbose": -1, **common()} | parameters))


def xgboost(n_trees: int = 100, **parameters: Any) -> Any:
    from xgboost import XGBClassifier

    leaf_wise = {"tree_method": "hist", "grow_policy": "lossguide", "max_leaves": 63, "max_depth": 0, "learning_rate": 0.1}
    return XGBClassifier(**({"n_estimators": n_trees, **leaf_wise, **common()} | parameters))


def hist_gradient_boosting(n_trees: int = 100, **parameters: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    fixed = {"max_iter": n_trees, "max_leaf_nodes": 63, "early_stopping": False, "random_state": SEED}
    return HistGradientBoostingClassifier(**(fixed | parameters))


def random_forest(n_trees: int = 100, **parameters: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**({"n_estimators": n_trees, "min_samples_leaf": 5, **common()} | parameters))


def common() -> dict[str, Any]:
    return {"n_jobs": N_JOBS, "random_state": SEED}


PEERS = {
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "HistGradientBoosting": hist_gradient_boosting,
    "RandomForest": random_forest,
}


MODULES = {
    "simtree": "simtree",
    "LightGBM": "lightgbm",
    "XGBoost": "xgboost",
    "HistGradientBoosting": "sklearn",
    "RandomForest": "sklearn",
}


# Scores and accuracy


def score(model: Any, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Scores of pairs given by row numbers; the coordinates that a peer needs are made a block at a time."""
    if hasattr(model, "pair_score"):
        return model.pair_score(rows, X)
    scores = np.empty(len(rows))
    for start in range(0, len(rows), SCORED_AT_ONCE):
        block = slice(start, start + SCORED_AT_ONCE)
        scores[block] = probabilities(model, materialise(X, rows[block]))
    return scores


def probabilities(model: Any, matrix: np.ndarray) -> np.ndarray:
    """What a peer says of pairs whose coordinates it is handed; LightGBM by its booster, which is its fastest way."""
    booster = getattr(model, "booster_", None)
    return model.predict_proba(matrix)[:, 1] if booster is None else booster.predict(matrix, num_threads=N_JOBS)


def accuracy(scores: np.ndarray, same: np.ndarray) -> dict[str, list[float]]:
    roc = roc_curve(scores, same)
    return {AUC: [roc.auc()], TPR: [float(tpr_at_fpr(roc, [1e-3])[0])]}


def held_out(points: Points, n_pairs: int) -> IndexPairs:
    """Test pairs; a fifth are same, so that there are many different ones for the low rates."""
    return draw(points.y_test, n_pairs, positive_fraction=0.2, seed=SEED + 1)


def fitted(folder: Path, name: str, spec: Spec) -> Any:
    """The model, from the folder if another section has fitted it."""
    file = folder / f"{name}-{spec.file_name}"
    if not file.exists():
        points = Points.load(folder / f"{name}.npz")
        joblib.dump(spec.fit(points.X, points.y), file)
    return joblib.load(file)
