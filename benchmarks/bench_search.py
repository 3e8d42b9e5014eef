"""1:N search in a gallery of face descriptors, compared with FAISS (flat, L2) and with LightGBM scoring every row.

Gallery and queries are descriptors plus a little Gaussian noise; the queries are of unseen people. FAISS runs with one thread
or all, whichever is faster. LightGBM is measured for one query and some rows, including the features of each pair, and its time
is scaled to other sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from measure import MEMORY, N_JOBS, SECONDS, SEED, TPR, Goal, Line, Section, Table, in_fresh_process, observe, seconds
from models import accuracy, lightgbm
from problems import Samples, draw, materialise, row_numbers
from simtree import CartSplitter, SimilarityForest

TITLE = "1:N search: the ten most similar rows of a gallery"
K = 10
NOISE = 0.02
N_QUERIES = 100
COORDINATES = {
    "f": ["abs_diff", "sum"],
    "f and pairwise coordinates": ["abs_diff", "sum", "dot", "cosine", "euclidean", "manhattan"],
}
SEARCHED = "f and pairwise coordinates"
EUCLIDEAN = "Euclidean distance"
FASTER_THAN_LIGHTGBM, SLOWER_THAN_FAISS = 20.0, 20.0
# Galleries so small that to score all pairs is the fastest way: number of queries, numbers of rows, and the ratio allowed.
SMALL_QUERIES, SMALL_ROWS, SLOWER_THAN_SCORING = 602, (50, 602), 1.2


@dataclass(frozen=True)
class Size:
    rows: tuple[int, ...]
    n_trees: int = 44
    depth: int = 15
    n_pairs: int = 200_000
    n_test: int = 1_500_000
    lightgbm_rows: int = 100_000


SIZES = {
    "full": Size((100_000, 1_000_000)),
    "quick": Size((100_000,), n_trees=12, n_pairs=50_000, n_test=200_000, lightgbm_rows=20_000),
    "tiny": Size((3_000,), n_trees=3, depth=4, n_pairs=1_000, n_test=2_000, lightgbm_rows=500),
}


def fitted_forest(samples: Samples, kinds: list[str], size: Size) -> SimilarityForest:
    forest = SimilarityForest(
        n_estimators=size.n_trees,
        max_depth=size.depth,
        splitter=CartSplitter(max_depth=5, max_features=0.2),
        coordinates=kinds,
        n_pairs=size.n_pairs,
        n_jobs=N_JOBS,
        random_state=SEED,
    )
    return forest.fit(samples.X, samples.y)


def noisy(X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows of X drawn with replacement, plus noise; computed in blocks to save memory."""
    rows = np.empty((n, X.shape[1]), dtype=np.float32)
    for start in range(0, n, 1 << 16):
        part = rows[start : start + (1 << 16)]
        part[:] = X[rng.integers(0, len(X), len(part))]
        part += rng.normal(0, NOISE, part.shape).astype(np.float32)
    return rows


def gallery_and_queries(samples: Samples, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    queries = noisy(samples.X_test, N_QUERIES, rng)
    return noisy(np.concatenate([samples.X, samples.X_test]), n_rows, rng), queries


def lightgbm_search(model: Any, query: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """Return the best rows for one query, from the features of all pairs."""
    samples = np.concatenate([query[None], gallery])
    pairs = np.column_stack([np.zeros(len(gallery), dtype=int), np.arange(1, len(samples))])
    scores = model.predict_proba(materialise(samples, pairs))[:, 1]
    best = np.argpartition(-scores, K)[:K]
    return best[np.argsort(-scores[best])]


def timed(work: Callable[[], Any], repeats: int) -> list[float]:
    work()
    return [seconds(work) for _ in range(repeats)]


def faiss_seconds(gallery: np.ndarray, queries: np.ndarray, repeats: int) -> list[float]:
    import faiss

    index = faiss.IndexFlatL2(gallery.shape[1])
    index.add(gallery)
    runs = []
    for threads in (1, N_JOBS):
        faiss.omp_set_num_threads(threads)
        runs.append(timed(lambda: index.search(queries, K), repeats))
    return min(runs, key=median)


def memory_of_search(folder: Path, size: Size) -> float:
    """Return the peak memory of a search in the largest gallery in megabytes, above the gallery."""
    samples = Samples.load(folder / "lfw.npz")
    model = fitted_forest(samples, COORDINATES[SEARCHED], size)
    gallery, queries = gallery_and_queries(samples, size.rows[-1])
    model.top_k(queries[:1], gallery[: size.rows[0]], K)
    return observe(lambda: model.top_k(queries, gallery, K))[1][MEMORY][0]


def check_exact(model: SimilarityForest, queries: np.ndarray, gallery: np.ndarray) -> None:
    scores = model.pairwise_score(queries, gallery)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    if not np.array_equal(model.top_k(queries, gallery, K)[1], expected):
        raise AssertionError("top_k differs from sorting all scores.")


def section(folder: Path, scale: str, repeats: int) -> Section:
    size, samples = SIZES[scale], Samples.load(folder / "lfw.npz")
    test = draw(samples.y_test, size.n_test, positive_fraction=0.02, seed=SEED + 1)
    a, b = samples.X_test[test.first], samples.X_test[test.second]
    models = {name: fitted_forest(samples, kinds, size) for name, kinds in COORDINATES.items()}
    scores = {EUCLIDEAN: -np.linalg.norm(a - b, axis=1)}
    scores |= {f"forest on {name}": model.pair_score(row_numbers(test), samples.X_test) for name, model in models.items()}
    of_models = Table(
        f"Unseen people, {size.n_test:,} pairs; forests of {size.n_trees} trees of depth {size.depth}:",
        [Line(name, accuracy(values, test.same)) for name, values in scores.items()],
    )

    model = models[SEARCHED]
    gallery, queries = gallery_and_queries(samples, size.rows[-1])
    check_exact(model, queries[:2], gallery[: size.rows[0]])
    pairs = draw(samples.y, size.n_pairs)
    peer = lightgbm().fit(materialise(samples.X, row_numbers(pairs)), pairs.same)
    one_query = timed(lambda: lightgbm_search(peer, queries[0], gallery[: size.lightgbm_rows]), repeats)
    tables, goals = [of_models], []
    for n_rows in size.rows:
        for n_queries in (1, N_QUERIES):
            part, wanted = gallery[:n_rows], queries[:n_queries]
            ours = timed(lambda part=part, wanted=wanted: model.top_k(wanted, part, K), repeats)
            flat = faiss_seconds(part, wanted, repeats)
            scaled = [run * n_queries * n_rows / size.lightgbm_rows for run in one_query]
            what = f"{n_queries} {'query' if n_queries == 1 else 'queries'}, {n_rows:,} rows"
            note = (
                "" if (n_queries, n_rows) == (1, size.lightgbm_rows) else f"scaled from 1 query and {size.lightgbm_rows:,} rows"
            )
            lines = [
                Line("simtree", {SECONDS: ours}),
                Line("FAISS flat", {SECONDS: flat}),
                Line("LightGBM", {SECONDS: scaled}, note),
            ]
            tables.append(Table(f"{what}:", lines, relative_to="simtree"))
            goals.append(
                Goal(f"LightGBM / simtree, {what}", median(scaled) / median(ours), FASTER_THAN_LIGHTGBM, at_least=True)
            )
            if n_queries > 1:
                goals.append(Goal(f"simtree / FAISS flat, {what}", median(ours) / median(flat), SLOWER_THAN_FAISS))
    many = noisy(samples.X_test, SMALL_QUERIES, np.random.default_rng(SEED))
    for n_rows in SMALL_ROWS:
        part, what = gallery[:n_rows], f"{SMALL_QUERIES} queries, {n_rows:,} rows"
        ours = timed(lambda part=part: model.top_k(many, part, K), repeats)
        every = timed(lambda part=part: model.pairwise_score(many, part), repeats)
        lines = [Line("top_k", {SECONDS: ours}), Line("pairwise_score", {SECONDS: every})]
        tables.append(Table(f"{what}:", lines, relative_to="top_k"))
        goals.append(Goal(f"top_k / pairwise_score, {what}", median(ours) / median(every), SLOWER_THAN_SCORING))
    best = of_models.line(f"forest on {SEARCHED}").median(TPR)
    goals.append(
        Goal(f"{TPR}, difference of the forest to the {EUCLIDEAN}", best - of_models.line(EUCLIDEAN).median(TPR), 0.0, True)
    )
    held = in_fresh_process(memory_of_search, folder, size)
    tables.append(Table(f"{N_QUERIES} queries, {size.rows[-1]:,} rows, memory:", [Line("simtree", {MEMORY: [held]})]))
    return Section(TITLE, tables, goals)
