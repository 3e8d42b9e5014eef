"""Learn whether two images show the same digit, and compare with distances and with LightGBM on the same pairs.

Run it with ``make demo``, or: python examples/demo.py --out demo
"""

import argparse
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draw into files, without a screen

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from simtree import DistanceSimilarity, ForestPosterior, SimilarityForest, SimilarityTree, report
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs import PairSampler, pair_features
from simtree.plots import RocDisplay, TreeDisplay

try:
    import lightgbm
except ImportError:
    lightgbm = None

# The coordinates of a pair that the forest, the tree and LightGBM see.
COORDINATES = ["abs_diff", "sum", "product", "dot", "cosine", "euclidean", "manhattan"]
# The lowest false positive rate that is shown is that of this many different test pairs.
MIN_DIFFERENT = 30
LINES = {
    "similarity forest, posteriors": {"color": "#0072b2", "lw": 2.6},
    "similarity tree, posteriors": {"color": "#56b4e9", "lw": 1.8},
    "LightGBM, posteriors": {"color": "#d55e00", "lw": 1.8},
    "cosine, posteriors": {"color": "#009e73", "lw": 1.8},
    "Euclidean distance, pixels": {"color": "#444444", "lw": 1.6, "ls": "--"},
    "cosine, pixels": {"color": "#999999", "lw": 1.6, "ls": "--"},
}
START = time.perf_counter()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures (default: demo)")
    parser.add_argument("--quick", action="store_true", help="a third of the images and few trees: a few seconds")
    options = parser.parse_args()
    n_trees, n_images = (5, 600) if options.quick else (50, 1797)

    # 1. The data: 1797 images of handwritten digits, 8 x 8 pixels each. Half of the images of each digit are held out. All ten
    #    digits are known in training: the test is on new images, not on unseen classes.
    digits, labels = (array[:n_images] for array in load_digits(return_X_y=True))
    X, X_test, y, y_test = train_test_split(digits, labels, test_size=0.5, stratify=labels, random_state=0)

    # 2. The model to use where classes are known: a forest of ranking trees on class posteriors of extra trees. It learns from
    #    labels; n_pairs=None lets it use all pairs of the training images.
    say("fitting a similarity forest")
    settings = {"coordinates": COORDINATES, "n_pairs": None, "min_pairs_split": 100, "n_jobs": -1, "random_state": 0}
    posterior = ForestPosterior(n_jobs=-1, random_state=0)
    forest = SimilarityForest(n_estimators=n_trees, representation=posterior, **settings).fit(X, y)

    # 3. The model to read: one tree, each split of which is one condition. It sees the same posteriors under their own names.
    say("fitting a similarity tree")
    P, P_test = posterior.fit_transform(X, y), posterior.transform(X_test)
    tree = SimilarityTree(max_depth=8, splitter="cut", **settings).fit(P, y)

    # 4. What they are compared with.
    say("fitting distances" + (" and LightGBM" if lightgbm else ""))
    pixels = {metric: DistanceSimilarity(metric=metric).fit(X, y) for metric in ("euclidean", "cosine")}
    posteriors_cosine = DistanceSimilarity(metric="cosine").fit(P, y)
    booster = fit_lightgbm(P, y, 50 if options.quick else 1000) if lightgbm else None

    # 5. Score all pairs of the held-out images: the larger the score, the more similar the pair.
    first, second = np.triu_indices(len(X_test), k=1)
    pairs, same = np.column_stack([first, second]), y_test[first] == y_test[second]
    say(f"scoring {len(pairs):,} pairs of held-out images")
    scores = {
        "similarity forest, posteriors": forest.pair_score(pairs, X_test),
        "similarity tree, posteriors": tree.pair_score(pairs, P_test),
        "LightGBM, posteriors": booster.predict(pair_features(P_test[pairs], COORDINATES)) if booster else None,
        "cosine, posteriors": posteriors_cosine.pair_score(pairs, P_test),
        "Euclidean distance, pixels": pixels["euclidean"].pair_score(pairs, X_test),
        "cosine, pixels": pixels["cosine"].pair_score(pairs, X_test),
    }
    scores = {name: values for name, values in scores.items() if values is not None}

    n_different = int(np.count_nonzero(~same))
    lowest = MIN_DIFFERENT / n_different
    print(
        f"{len(X)} images to learn from; {len(same) - n_different:,} same and {n_different:,} different pairs of {len(X_test)}"
    )
    print("held-out images of the same ten digits (known classes)\n")
    print_table(scores, same, [1e-1, 1e-2, 1e-3, lowest])
    print("\nA TPR of 0.000 means that no threshold of the model has a false positive rate that low.")
    if lightgbm is None:
        print("LightGBM is not installed and was left out; `pip install lightgbm` adds it to the comparison.")

    # 6. Draw the curves, and the top of the tree.
    say("drawing")
    options.out.mkdir(parents=True, exist_ok=True)
    draw_curves(scores, same, lowest).savefig(options.out / "roc.png", dpi=150)
    names = [f"P({digit})" for digit in range(10)]
    display = TreeDisplay.from_estimator(tree, feature_names=names)
    display.ax_.set_title("The top of the similarity tree; x is the posterior P(0), ..., P(9) of an image")
    display.figure_.savefig(options.out / "tree.png", dpi=150, bbox_inches="tight")  # the title may be wider than the tree
    print(f"\nPictures: {options.out / 'roc.png'}, {options.out / 'tree.png'}")

    # 7. The report of the forest: one HTML file for the person who decides. The threshold is chosen on half of the held-out
    #    images, and the report is on the other half. The ten digits stay the same, so intervals are for new images of them; and
    #    digits are nobody's data, so the hardest pairs may show them.
    say("writing the report")
    page = options.out / "report.html"
    forest.calibrate_threshold(X_test[::2], y_test[::2], max_fpr=1e-2, confidence=None)
    looks = {"with_samples": True, "image_shape": (8, 8), "title": "Same digit? The report of a similarity forest"}
    report.write(forest, X_test[1::2], y_test[1::2], page, unit="samples", **looks)
    print(f"Report: {page}, {page.stat().st_size / 1e6:.1f} MB; open it in a browser")
    say("done")


def fit_lightgbm(samples, y, max_rounds):
    """Return LightGBM fitted to all pairs; how many rounds is decided by early stopping on pairs of images left out."""
    # One thread, so that the result is the same everywhere and a busy machine does not make its threads wait for each other.
    parameters = {"objective": "binary", "learning_rate": 0.05, "num_leaves": 31, "num_threads": 1, "seed": 0, "verbosity": -1}

    def dataset(rows):
        pairs = PairSampler(y[rows]).all_pairs()
        chosen = samples[rows[np.column_stack([pairs.first, pairs.second])]]
        return lightgbm.Dataset(pair_features(chosen, COORDINATES), pairs.same)

    rows = np.arange(len(y))
    kept, left_out = train_test_split(rows, test_size=0.2, stratify=y, random_state=0)
    stop = lightgbm.early_stopping(50, verbose=False)
    trial = lightgbm.train(parameters, dataset(kept), max_rounds, valid_sets=[dataset(left_out)], callbacks=[stop])
    return lightgbm.train(parameters, dataset(rows), trial.best_iteration)


def print_table(scores, same, rates):
    """Print the AUC of each model, and the true positive rate at some false positive rates."""
    print(f"{'':32}{'AUC':>8}" + "".join(f"{f'TPR at {rate:.2g}':>16}" for rate in rates))
    for name, values in scores.items():
        roc = roc_curve(values, same)
        print(f"{name:32}{roc.auc():8.3f}" + "".join(f"{tpr:16.3f}" for tpr in tpr_at_fpr(roc, rates)))


def draw_curves(scores, same, lowest):
    """Return a figure with the ROC curve of each model, on a logarithmic axis that starts at the lowest rate."""
    fig, ax = plt.subplots(figsize=(8.0, 5.0), layout="constrained")
    for name, values in scores.items():
        RocDisplay.from_predictions(same, values, name=name, knots=False, log_fpr=True, ax=ax, **LINES[name])
    ax.set(
        title="Same digit or not? All pairs of held-out images, known classes",
        xlabel=f"false positive rate (log scale, from {MIN_DIFFERENT} of {np.count_nonzero(~same):,} different pairs on)",
        ylabel="true positive rate",
        xlim=(lowest, 1),
        ylim=(0, 1.01),
    )
    ax.legend(loc="lower right", fontsize=9, title="model, and what it sees of an image", title_fontsize=9)
    return fig


def say(what):
    """Print a line of progress."""
    print(f"[{time.perf_counter() - START:3.0f} s] {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
