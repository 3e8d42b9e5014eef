"""The paper's experiment on MNIST: similarity forests compared with LMNN, a neural network and unlearned similarities."""

from __future__ import annotations

import importlib.util
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from simtree.datasets import load_mnist
from simtree.evaluation._intervals import point_intervals
from simtree.experiments import _peers as peers
from simtree.experiments._results import Order, RunLog, Values, markdown_table, write_figure, write_result
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.models._boosting import SimilarityBoosting
from simtree.models._forest import SimilarityForest
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs
from simtree.plots import BLUE, ORANGE
from simtree.representation import KernelDiscriminant
from simtree.splitters import CartSplitter

NAME = "mnist"
FPR = (1e-1, 1e-2, 1e-3, 1e-4)
# False positive rates at which curves are stored for the figure.
GRID = np.union1d(np.geomspace(1e-5, 1.0, 201), np.linspace(0.0, 1.0, 101))
N_COMPONENTS = 153
# Most rounds of boosting, which stops early; most landmarks of kernel discriminants.
MAX_ROUNDS, MAX_LANDMARKS = 2_000, 4_000


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment."""

    images: int = 60_000
    test_pairs: int = 1_000_000
    network_images: int = 54_000
    lmnn_images: int = peers.LMNN_SAMPLES
    lmnn_iterations: int = 1_000
    trees: int = 44
    pairs: int = 100_000
    best_trees: int = 100
    best_pairs: int = 200_000

    @classmethod
    def quick(cls) -> Sizes:
        """Return sizes with a tenth of the images and pairs."""
        full = cls()
        tenth = {name: value // 10 for name, value in asdict(full).items() if name.endswith(("images", "pairs"))}
        return cls(**{**asdict(full), **tenth, "best_trees": full.trees})


@dataclass(frozen=True, eq=False)
class Data:
    """Principal components of the images, and pairs sampled uniformly from all pairs of test images."""

    X: NDArray[np.float32]
    y: NDArray[Any]
    X_test: NDArray[np.float32]
    test_pairs: IndexPairs
    explained: float
    """Share of the variance of the training images that the components explain."""

    @classmethod
    def prepare(cls, images: Images, sizes: Sizes, seed: int) -> Data:
        """Scale the pixels to [0, 1] and compute their principal components."""
        X, y, X_test, y_test = images
        if len(X) > sizes.images:
            chosen = np.sort(_rng(seed, "images").choice(len(X), sizes.images, replace=False))
            X, y = X[chosen], y[chosen]
        components = PCA(min(N_COMPONENTS, *X.shape), random_state=seed).fit(X.astype(np.float32) / 255.0)
        train, test = (components.transform(part.astype(np.float32) / 255.0).astype(np.float32) for part in (X, X_test))
        rng = _rng(seed, "test pairs")
        pairs = PairSampler(y_test).sample(sizes.test_pairs, rng, positive_fraction=None, shuffle=False)
        return cls(train, y, test, pairs, float(components.explained_variance_ratio_.sum()))


PURPOSES = ("images", "test pairs", "LMNN", "network", "forest", "intervals")


def _rng(seed: int, purpose: str, run: int = 0) -> np.random.Generator:
    """Return the random generator of a purpose and run."""
    return np.random.default_rng([seed, run, 1 + PURPOSES.index(purpose)])


def _seed(seed: int, purpose: str, run: int) -> int:
    return int(_rng(seed, purpose, run).integers(2**31))


Images = tuple[NDArray[np.uint8], NDArray[Any], NDArray[np.uint8], NDArray[Any]]


def find_images(folder: Path | None) -> Images:
    """Load MNIST (X, y, X_test, y_test) from the given folder, from that of SIMTREE_DATA, or else from OpenML."""
    if folder is not None or os.environ.get("SIMTREE_DATA"):
        try:
            return *load_mnist(folder, part="train"), *load_mnist(folder, part="test")
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error} (On the command line, give the folder with --data or SIMTREE_DATA.)") from error
    from sklearn.datasets import fetch_openml

    try:
        with _pulsing("fetching MNIST from OpenML"), warnings.catch_warnings(action="ignore"):
            X, y = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True, n_retries=0)
    except (OSError, HTTPException) as error:  # raised by urllib without a network connection
        raise OSError(
            f"MNIST could not be fetched from OpenML ({error}); give the folder of its four idx files with --data, "
            "or set SIMTREE_DATA to it."
        ) from error
    images, digits = X.astype(np.uint8), y.astype(np.uint8)
    return images[:60_000], digits[:60_000], images[60_000:], digits[60_000:]


@contextmanager
def _pulsing(what: str) -> Iterator[None]:
    """Show a progress bar for work of unknown length."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        yield


@dataclass(frozen=True)
class Run:
    """Settings of one run of a model."""

    sizes: Sizes
    seed: int
    number: int
    n_jobs: int | None

    def random_state(self, purpose: str) -> int:
        """Return the random seed of a purpose in this run."""
        return _seed(self.seed, purpose, self.number)


Scores = dict[str, NDArray[np.float64]]


def score_without_learning(data: Data, run: Run) -> Scores:
    """Score pairs by the cosine similarity and the distance of the components."""
    first, second = data.test_pairs.first, data.test_pairs.second
    return {
        "euclidean": peers.euclidean_scores(data.X_test, first, second),
        "cosine": peers.cosine_scores(data.X_test, first, second),
    }


def score_lmnn(data: Data, run: Run) -> Scores:
    """Score pairs with LMNN, by inner product as in the paper and by distance."""
    L = peers.lmnn_map(
        data.X,
        data.y,
        max_points=run.sizes.lmnn_images,
        max_iter=run.sizes.lmnn_iterations,
        random_state=run.random_state("LMNN"),
    )
    mapped = data.X_test @ L.T
    first, second = data.test_pairs.first, data.test_pairs.second
    return {
        "lmnn_inner": peers.inner_product_scores(mapped, first, second),
        "lmnn_distance": peers.euclidean_scores(mapped, first, second),
    }


def score_network(data: Data, run: Run, *, penalty: float, name: str) -> Scores:
    """Score pairs with the network, by the cosine similarity of its encodings."""
    seed = run.random_state("network")
    chosen = np.random.default_rng(seed).permutation(len(data.X))[: run.sizes.network_images]
    encode = peers.train_network(data.X[chosen], data.y[chosen], penalty=penalty, random_state=seed, verbose=1)
    return {name: peers.cosine_scores(encode(data.X_test), data.test_pairs.first, data.test_pairs.second)}


def score_paper_forest(data: Data, run: Run) -> Scores:
    """Score pairs with the forest of the paper: natural share of same pairs, all coordinates at each split, mean of ranks."""
    forest = SimilarityForest(
        n_estimators=run.sizes.trees,
        max_depth=15,
        splitter=CartSplitter(max_depth=5),
        n_pairs=run.sizes.pairs,
        positive_fraction=None,
        aggregation="mean_rank",
        n_jobs=run.n_jobs,
        random_state=run.random_state("forest"),
        verbose=1,
    )
    return {"paper_forest": _fitted_scores(forest, data)}


def score_best_forest(data: Data, run: Run) -> Scores:
    """Score pairs with our best forest so far."""
    forest = SimilarityForest(
        n_estimators=run.sizes.best_trees,
        n_pairs=run.sizes.best_pairs,
        coordinates=["abs_diff", "sum", "min", "max"],
        refill=True,
        n_jobs=run.n_jobs,
        random_state=run.random_state("forest"),
        verbose=1,
    )
    return {"best_forest": _fitted_scores(forest, data)}


def score_fisher_boosting(data: Data, run: Run) -> Scores:
    """Score pairs with boosted trees along the linear discriminants of pairs of digits."""
    boosting = SimilarityBoosting(
        n_estimators=MAX_ROUNDS,
        n_pairs=run.sizes.best_pairs,
        coordinates=["oblique"],
        directions="fisher",
        n_iter_no_change=100,
        open_set=False,
        n_jobs=run.n_jobs,
        random_state=run.random_state("forest"),
        verbose=1,
    )
    return {"fisher_boosting": _fitted_scores(boosting, data)}


def score_kernel_forest(data: Data, run: Run) -> Scores:
    """Score pairs with a forest on kernel discriminants, a representation that is learned from the digits."""
    seed = run.random_state("forest")
    n_landmarks = min(MAX_LANDMARKS, len(data.X) // 4)
    forest = SimilarityForest(
        n_estimators=run.sizes.trees // 2,
        n_pairs=2 * run.sizes.best_pairs,
        representation=KernelDiscriminant(n_landmarks=n_landmarks, alpha=0.003, n_jobs=run.n_jobs, random_state=seed),
        coordinates=["abs_diff", "sum", "product", "dot", "cosine", "euclidean", "manhattan"],
        min_pairs_split=100,
        n_jobs=run.n_jobs,
        random_state=seed,
        verbose=1,
    )
    return {"kernel_forest": _fitted_scores(forest, data)}


def _fitted_scores(model: SimilarityForest | SimilarityBoosting, data: Data) -> NDArray[np.float64]:
    rows = np.column_stack([data.test_pairs.first, data.test_pairs.second])
    model.fit(data.X, data.y)
    return model.pair_score(rows, data.X_test)


MODELS: dict[str, Callable[[Data, Run], Scores]] = {
    "no learning": score_without_learning,
    "LMNN": score_lmnn,
    "network 0.01": partial(score_network, penalty=0.01, name="network_0.01"),
    "network 0.0001": partial(score_network, penalty=1e-4, name="network_0.0001"),
    "forest of the paper": score_paper_forest,
    "our best forest": score_best_forest,
    "boosting along Fisher directions": score_fisher_boosting,
    "forest on kernel discriminants": score_kernel_forest,
}
NEEDS = {"LMNN": "metric_learn", "network 0.01": "torch", "network 0.0001": "torch"}
# Titles of the scored models, from the worst to the best according to the paper; then what goes beyond it.
TITLES = {
    "euclidean": "Euclidean distance, no learning",
    "cosine": "cosine, no learning",
    "lmnn_inner": "LMNN, inner product",
    "lmnn_distance": "LMNN, distance",
    "paper_forest": "forest as in the paper",
    "best_forest": "our best forest on coordinates as in the paper",
    "network_0.01": "network, penalty 0.01, cosine",
    "network_0.0001": "network, penalty 0.0001, cosine",
    "fisher_boosting": "boosting along Fisher directions",
    "kernel_forest": "forest on kernel discriminants",
}
GREY, RED, BLACK = "#999999", "#c23b75", "#222222"
LOOKS = {
    "euclidean": (GREY, ":"),
    "cosine": (GREY, "-."),
    "lmnn_inner": (RED, ":"),
    "lmnn_distance": (RED, "-"),
    "paper_forest": (BLUE, "--"),
    "best_forest": (BLUE, "-"),
    "network_0.01": (ORANGE, "--"),
    "network_0.0001": (ORANGE, "-"),
    "fisher_boosting": (BLUE, "-."),
    "kernel_forest": (BLACK, "-"),
}


def one_model(data: Data, name: str, run: Run) -> Values:
    """Return the metrics and curves of a model in one run."""
    start = time.perf_counter()
    scored = MODELS[name](data, run)
    seconds = time.perf_counter() - start
    return {key: {**_metrics(scores, data, run), "seconds": seconds} for key, scores in scored.items()}


def _metrics(scores: NDArray[np.float64], data: Data, run: Run) -> Values:
    pairs = data.test_pairs
    roc = roc_curve(scores, pairs.same)
    ends = point_intervals(scores, pairs.same, pairs.first, pairs.second, FPR)
    return {
        "auc": roc.auc(),
        "tpr": tpr_at_fpr(roc, list(FPR)).tolist(),
        "auc_interval": ends[0].tolist(),
        "tpr_interval": ends[1:].tolist(),
        "curve": tpr_at_fpr(roc, GRID).tolist(),
    }


def run(order: Order, *, folder: Path | None = None, quick: bool = False, sizes: Sizes | None = None) -> None:
    """Fit and score all models whose libraries are installed, and write ``mnist.*`` or ``mnist_quick.*``."""
    name = f"{NAME}_quick" if quick else NAME
    sizes = sizes or (Sizes.quick() if quick else Sizes())
    images = find_images(folder)
    checksum = zlib.crc32(images[1].tobytes(), zlib.crc32(images[3].tobytes()))
    log = RunLog(order.out / f"{name}.runs.jsonl", {"seed": order.seed, "labels": checksum, **asdict(sizes)})
    data = Data.prepare(images, sizes, order.seed)
    missing = {model: module for model, module in NEEDS.items() if importlib.util.find_spec(module) is None}
    tasks = {
        f"{model} run {r}": partial(one_model, data, model, Run(sizes, order.seed, r, order.n_jobs))
        for r in range(order.runs)
        for model in MODELS
        if model not in missing
    }
    # One at a time, because each model uses all of its parallel jobs and shows its own progress.
    log.complete(tasks, n_jobs=1, what="model", with_bar=False)
    by_model: dict[str, list[Values]] = {}
    for task in tasks:
        for key, figures in log.found[task].items():
            by_model.setdefault(key, []).append(figures)
    found = {
        "name": name,
        "quick": quick,
        "sizes": {**asdict(sizes), "images": len(data.X), "network_images": min(len(data.X), sizes.network_images)},
        "components": data.X.shape[1],
        "explained_variance": data.explained,
        "test_images": len(data.X_test),
        "test_pairs": {"same": data.test_pairs.n_same, "different": len(data.test_pairs) - data.test_pairs.n_same},
        "fpr": list(FPR),
        "models": [{"model": key, "runs": by_model[key]} for key in TITLES if key in by_model],
        "missing": missing,
        "grid": GRID.tolist(),
    }
    write_figure(order.out / f"{name}.png", draw_curves(found))
    write_result(order, name, found, section)


def draw_curves(found: Values) -> Any:
    """Draw the ROC curves of all models (of their first run) on a linear and on a logarithmic axis."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    grid = np.array(found["grid"])
    for entry in found["models"]:
        colour, line = LOOKS[entry["model"]]
        for ax in axes:
            ax.plot(grid, entry["runs"][0]["curve"], color=colour, linestyle=line, label=TITLES[entry["model"]])
    for ax in axes:
        ax.set(xlabel="false positive rate", ylabel="true positive rate", ylim=(0.0, 1.01))
        ax.grid(color="#dddddd", linewidth=0.5)
    min_fpr = 10.0 / found["test_pairs"]["different"]  # fewer than ten false positives are not informative
    axes[0].set(title="linear", xlim=(0.0, 1.0))
    axes[1].set(title="logarithmic", xscale="log", xlim=(min_fpr, 1.0))
    axes[0].legend(loc="lower right", frameon=False, fontsize=9)
    return figure


def section(result: Values) -> str:
    """Return the table of all models, the curves, and the deviations from the paper."""
    sizes, pairs = result["sizes"], result["test_pairs"]
    rows = []
    for entry in result["models"]:
        runs = entry["runs"]
        auc = _with_interval([r["auc"] for r in runs], [r["auc_interval"] for r in runs], digits=4)
        rates = [
            _with_interval([r["tpr"][k] for r in runs], [r["tpr_interval"][k] for r in runs], digits=3)
            for k in range(len(result["fpr"]))
        ]
        rows.append([TITLES[entry["model"]], auc, *rates, f"{np.mean([r['seconds'] for r in runs]):.0f}"])
    header = ["model", "AUC", *(f"TPR at {fpr:g}" for fpr in result["fpr"]), "seconds"]
    n_runs = len(result["models"][0]["runs"])
    repeated = (
        f" Means over {n_runs} training runs on the same images and test pairs; the curves are those of the first run."
        if n_runs > 1
        else ""
    )
    return f"""## MNIST: forests compared with LMNN and a neural network{" (a tenth of the size)" if result["quick"] else ""}

`{result["command"]}`, random seed {result["seed"]}: {result["components"]} principal components
({result["explained_variance"]:.1%} of the variance) of {sizes["images"]:,} training images, pixels scaled to [0, 1];
{pairs["same"]:,} same and {pairs["different"]:,} different pairs, sampled uniformly from all pairs of the
{result["test_images"]:,} test images.

{markdown_table(header, rows)}

In parentheses: 95 % confidence intervals for new images of the ten digits, which account for images shared between pairs.
Seconds: fitting and scoring, after the images are read.{repeated}

![ROC curves of all models, on a linear and on a logarithmic axis]({result["name"]}.png)

The paper shows curves but no numbers; it finds that the forest is better than LMNN and worse than the network.
{_findings(result)} Where the paper gives no details, or we deviate from it:

- **LMNN** is fitted to {sizes["lmnn_images"]:,} images in at most {sizes["lmnn_iterations"]:,} iterations, because its run
  time grows too fast for all images. The paper scores it by the inner product of the mapped samples, although LMNN optimises
  their distance.
- **The network** has the layers of the paper. Its training is our choice: {sizes["network_images"]:,} images, Adam with a
  learning rate of 0.001, 20 epochs, batches of 128, and a penalty of 0.01 or 0.0001 times the sum of squared weights of the
  ReLU layers.
- **The forest as in the paper** has {sizes["trees"]} trees of depth 15, classification trees of depth 5 as splitters,
  {sizes["pairs"]:,} pairs per tree with the natural share of same pairs, and scores by the mean of ranks. Our choices: each
  tree has a bootstrap sample of the images, each split uses all coordinates of f (in 255 bins), and a leaf of a splitter has
  at least 5 pairs.
- **Our best forest on coordinates as in the paper** has {sizes["best_trees"]} trees, {sizes["best_pairs"]:,} pairs per tree,
  half of them same, a fifth of the coordinates per split, and scores by the mean of log-likelihood ratios. In addition to the
  coordinates of f, it uses the minimum and the maximum of the two values of each feature. (They are functions of f, but a tree
  on f needs many cuts to express one cut on them.) Half of its trees are grown on new pairs that the other half finds
  difficult.

Two models go beyond the paper. Both learn from which digit an image is, as the network does, and not only from whether the
digits of two images are the same.

- **Boosting along Fisher directions** has trees over |w·(x - x')| and w·(x + x') for the linear discriminants w of all pairs of
  digits, on {sizes["best_pairs"]:,} new pairs every ten rounds; held-out images tell when to stop.
- **The forest on kernel discriminants** compares the scores of the ten digits by a ridge regression on at most
  {MAX_LANDMARKS:,} landmarks ({sizes["trees"] // 2} trees, {2 * sizes["best_pairs"]:,} pairs per tree).{_left_out(result)}"""


def _with_interval(values: list[float], ends: list[list[float]], *, digits: int) -> str:
    low, high = np.mean(ends, axis=0)
    return f"{np.mean(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _findings(result: Values) -> str:
    """Return a sentence on whether the models have the same order by AUC as in the paper."""
    auc = {entry["model"]: float(np.mean([r["auc"] for r in entry["runs"]])) for entry in result["models"]}
    if not {"paper_forest", "lmnn_inner", "network_0.01"} <= set(auc):
        return "Not all three models were run."
    ours = f"network {auc['network_0.01']:.3f}, forest {auc['paper_forest']:.3f}, LMNN {auc['lmnn_inner']:.3f}"
    agrees = auc["lmnn_inner"] < auc["paper_forest"] < auc["network_0.01"]
    return f"Our results {'agree' if agrees else '**disagree**'} (AUC: {ours})."


def _left_out(result: Values) -> str:
    if not result["missing"]:
        return ""
    models = ", ".join(f"{name} (requires {module})" for name, module in result["missing"].items())
    return f'\n\n**Left out**, because a library is missing: {models}; `pip install "simtree[experiments]"` installs them.'
