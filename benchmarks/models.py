"""simtree's forest and its peers, from labelled samples to scores of pairs, with all costs.

A peer needs the coordinates |x - x'| and x + x' of its pairs as a matrix: it samples the pairs, computes the matrix and fits.
All models have the same proportion of same pairs and the same number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from measure import AUC, N_JOBS, SEED, TPR
from problems import Samples, draw, materialise, row_numbers
from simtree import CartSplitter, SimilarityForest, SimilarityTree
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs._sources import IndexPairs

# Number of pairs per block when a peer scores: 80 MB with 306 coordinates.
SCORED_AT_ONCE = 65_536


@dataclass(frozen=True)
class Spec:
    """Specification of a model and its training pairs.

    Parameters
    ----------
    library : str
        "simtree", or a key of `PEERS`.
    n_pairs : int
        Number of training pairs of a peer; of simtree, the number per tree, or that all trees share.
    parameters : dict
        Parameters that differ from the default model of the benchmark (``n_estimators`` 1 is a single tree).
    shared : bool
        Only for simtree: whether all trees are trained on the same pairs as a peer.
    """

    library: str
    n_pairs: int
    parameters: dict[str, Any] = field(default_factory=dict)
    shared: bool = False

    @property
    def file_name(self) -> str:
        settings = "-".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return f"{self.library}-{self.n_pairs}-{settings}-{self.shared}.joblib".replace(" ", "").replace("/", "")

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
        max_features = parameters.pop("coordinates_per_test", 0.2)
        splitter = CartSplitter(max_depth=5, max_features=max_features)
        if parameters.get("n_estimators") == 1:
            del parameters["n_estimators"]
            return SimilarityTree(splitter=splitter, **parameters)
        return SimilarityForest(splitter=splitter, **parameters)


# A forest on projections on discriminant directions alone: few coordinates, and more accurate if classes differ along
# combinations of features.
OBLIQUE = {"coordinates": ["oblique"], "directions": "discriminant", "min_pairs_split": 100}

# All other parameters have the default of the library.


def lightgbm(n_trees: int = 100, **parameters: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(**({"n_estimators": n_trees, "num_leaves": 63, "verbose": -1, **common()} | parameters))


def xgboost(n_trees: int = 100, **parameters: Any) -> Any:
    from xgboost import XGBClassifier

    leaf_wise = {"tree_method": "hist", "grow_policy": "lossguide", "max_leaves": 63, "max_depth": 0, "learning_rate": 0.1}
    return XGBClassifier(**({"n_estimators": n_trees, **leaf_wise, **common()} | parameters))


def catboost(n_trees: int = 100, *, n_jobs: int = N_JOBS, random_state: int = SEED, **parameters: Any) -> Any:
    from catboost import CatBoostClassifier

    quiet = {"verbose": False, "allow_writing_files": False}
    return CatBoostClassifier(iterations=n_trees, thread_count=n_jobs, random_seed=random_state, **quiet, **parameters)


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
    """Return the scores of pairs of rows; the coordinates that a peer needs are computed in blocks."""
    if hasattr(model, "pair_score"):
        return model.pair_score(rows, X)
    scores = np.empty(len(rows))
    for start in range(0, len(rows), SCORED_AT_ONCE):
        block = slice(start, start + SCORED_AT_ONCE)
        scores[block] = probabilities(model, materialise(X, rows[block]))
    return scores


def probabilities(model: Any, matrix: np.ndarray) -> np.ndarray:
    """Return the scores of a peer for a matrix of coordinates; for LightGBM from its booster, which is fastest."""
    booster = getattr(model, "booster_", None)
    return model.predict_proba(matrix)[:, 1] if booster is None else booster.predict(matrix, num_threads=N_JOBS)


def accuracy(scores: np.ndarray, same: np.ndarray) -> dict[str, list[float]]:
    roc = roc_curve(scores, same)
    return {AUC: [roc.auc()], TPR: [float(tpr_at_fpr(roc, [1e-3])[0])]}


def held_out(samples: Samples, n_pairs: int) -> IndexPairs:
    """Sample test pairs; a fifth of them are same pairs, so that low false positive rates are supported."""
    return draw(samples.y_test, n_pairs, positive_fraction=0.2, seed=SEED + 1)


def fitted(folder: Path, name: str, spec: Spec) -> Any:
    """Return a fitted model, from the folder if another section has fitted it."""
    file = folder / f"{name}-{spec.file_name}"
    if not file.exists():
        samples = Samples.load(folder / f"{name}.npz")
        joblib.dump(spec.fit(samples.X, samples.y), file)
    return joblib.load(file)
