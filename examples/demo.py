"""Learn when two images show the same digit, and compare with plain distances.

Run it with ``make demo``, or: python examples/demo.py --out demo
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draw into files, without a screen

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances
from sklearn.model_selection import train_test_split

from simtree import CartSplitter, SimilarityTree
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.plots import RocDisplay, TreeDisplay

FPR = [1e-1, 1e-2, 1e-3]
COLOURS = ["#0072b2", "#d55e00", "#555555"]


def main() -> None:
    """Learn, compare, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures (default: demo)")
    out = parser.parse_args().out

    # 1. The data: 1797 images of handwritten digits, 8 x 8 pixels each. Half of each digit is for learning.
    digits = load_digits()
    X, X_test, y, y_test = train_test_split(digits.data, digits.target, test_size=0.5, stratify=digits.target, random_state=0)

    # 2. Learn from labelled images: pairs of one digit are the same, others are different; n_pairs=None uses all pairs.
    #    Large leaves keep a single tree from learning its pairs by heart.
    splitter = CartSplitter(max_depth=10, min_samples_leaf=200)
    tree = SimilarityTree(max_depth=10, splitter=splitter, n_pairs=None, random_state=0).fit(X, y)

    # 3. Score all pairs of test images: larger means more alike.
    first, second = np.triu_indices(len(X_test), k=1)
    same = y_test[first] == y_test[second]
    scores = {
        "similarity tree": tree.pair_score(np.column_stack([first, second]), X_test),
        "Euclidean distance": -euclidean_distances(X_test)[first, second],
        "cosine similarity": cosine_similarity(X_test)[first, second],
    }
    print(f"{len(X)} images to learn from; {same.sum():,} same and {(~same).sum():,} different pairs of {len(X_test)} others\n")

    # 4. Which share of the same pairs is found (TPR), where few different pairs are let through (FPR)?
    print(f"{'':20}" + "".join(f"{f'TPR at FPR {fpr:g}':>20}" for fpr in FPR) + f"{'AUC':>8}")
    for name, values in scores.items():
        roc = roc_curve(values, same)
        print(f"{name:20}" + "".join(f"{tpr:20.3f}" for tpr in tpr_at_fpr(roc, FPR)) + f"{roc.auc():8.3f}")

    # 5. Draw the curves, and the top of the tree.
    out.mkdir(parents=True, exist_ok=True)
    fig, ax = plt.subplots(figsize=(7.0, 4.5), layout="constrained")
    for (name, values), colour in zip(scores.items(), COLOURS, strict=True):
        RocDisplay.from_predictions(same, values, name=name, log_fpr=True, ax=ax, color=colour, lw=2)
    ax.set(title="Same digit or not? Pairs of images not seen in training", xlim=(1e-4, 1))
    fig.savefig(out / "roc.png", dpi=150)

    TreeDisplay.from_estimator(tree, feature_names=digits.feature_names).figure_.savefig(out / "tree.png", dpi=150)
    print(f"\nPictures: {out / 'roc.png'}, {out / 'tree.png'}")


if __name__ == "__main__":
    main()
