"""Cross-validation over samples or classes, and the choice of the pruning penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from simtree._utils.folds import assign_folds
from simtree.growing._grower import GrowthParams
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._sources import PairSource
from simtree.pairs._store import with_rows
from simtree.trees._pruning import PruningPath, held_out_aucs, held_out_gains


def fold_numbers(units: NDArray[np.int64], source: PairSource, n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each sample; units are kept together, and folds are stratified by class if units are samples."""
    n_units = int(units.max()) + 1
    if n_units < n_folds:
        raise ValueError(f"cv={n_folds!r} exceeds the number of groups, {n_units}; use fewer folds.")
    classes = source.labels if n_units == len(units) else None
    return assign_folds(n_units, n_folds, rng, classes)[units]


def choose_penalty(
    params: GrowthParams,
    samples: NDArray[Any],
    source: PairSource,
    folds: NDArray[np.int64],
    path: PruningPath,
    rng: np.random.Generator,
    *,
    n_jobs: int | None,
) -> float:
    """Return the penalty whose subtrees have the highest mean AUC on held-out pairs; the largest among ties.

    The candidates represent the subtrees of ``path``: they are geometric means of neighbouring penalties.
    """
    candidates = np.append(np.sqrt(path.penalties[:-1] * path.penalties[1:]), path.penalties[-1])
    seeds = rng.integers(2**63, size=int(folds.max()) + 1)
    found = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_fold_aucs)(params, samples, source, folds != fold, candidates, int(seed)) for fold, seed in enumerate(seeds)
    )
    aucs = [fold for fold in found if fold is not None]
    if not aucs:
        raise ValueError(
            f"prune='cv': none of the {len(seeds)} folds has both same and different pairs in training and test; "
            "use fewer folds (cv)."
        )
    means = np.mean(aucs, axis=0)
    # Tolerance, because sums of the same gains in another order differ by rounding.
    return float(candidates[means >= means.max() - 1e-12].max())


def _fold_aucs(
    params: GrowthParams,
    samples: NDArray[Any],
    source: PairSource,
    train: NDArray[np.bool_],
    candidates: NDArray[np.float64],
    seed: int,
) -> NDArray[np.float64] | None:
    """Return the held-out AUC of each subtree of one fold; None if training or test lack same or different pairs."""
    rng = np.random.default_rng(seed)
    seen, left_out = source.restrict(train), source.restrict(~train)
    if seen is None or left_out is None:
        return None
    tree = params.grow(samples, params.sample(seen, rng), rng)
    rows, held_out, _ = with_rows(samples, params.sample(left_out, rng))
    gains = held_out_gains(tree, SamplePairs(rows, rows, held_out.first, held_out.second), held_out.same)
    return held_out_aucs(tree, gains, candidates)
