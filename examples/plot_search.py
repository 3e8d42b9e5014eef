"""
1:N search in a gallery
=======================

Which rows of a gallery are most similar to a query? ``top_k`` answers exactly: the result is that of scoring all rows
and sorting.
"""

# %%
# A gallery of 900 images of digits, and 80 queries that were seen neither in training nor in the gallery.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from simtree import SimilarityForest, evaluate
from simtree.plots import BLUE, ORANGE, CmcDisplay

X, y = load_digits(return_X_y=True)
X_gallery, X_query, y_gallery, y_query = train_test_split(X, y, train_size=900, test_size=80, stratify=y, random_state=0)
forest = SimilarityForest(n_estimators=20, max_depth=8, n_pairs=20_000, random_state=0).fit(X_gallery, y_gallery)
scores, indices = forest.top_k(X_query, X_gallery, k=5)
right = y_gallery[indices] == y_query[:, None]
print(f"the best match is the right digit for {right[:, 0].sum()} of {len(y_query)} queries")

# %%
# Six queries: those with the fewest right digits among their five matches, so these are the worst. A blue frame is the
# right digit, an orange one another; below each match is its score.
shown = np.argsort(right.sum(axis=1), kind="stable")[:6]
fig, axes = plt.subplots(6, 6, figsize=(6, 6.6), layout="constrained")
for row, query in zip(axes, shown, strict=True):
    row[0].set_ylabel(f"a {y_query[query]}", rotation=0, ha="right", va="center")
    row[0].imshow(X_query[query].reshape(8, 8), cmap="gray_r")
    for ax, index, score, is_right in zip(row[1:], indices[query], scores[query], right[query], strict=True):
        ax.imshow(X_gallery[index].reshape(8, 8), cmap="gray_r")
        ax.set_xlabel(f"{score:.1f}", size=8)
        ax.spines[:].set(color=BLUE if is_right else ORANGE, linewidth=2.5)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
axes[0, 0].set_title("query", size=10)
axes[0, 3].set_title("best five of the gallery", size=10)
plt.show()

# %%
# With identities the question is "who is it?". Here are 200 synthetic ones; the forest has seen the first half only,
# and each sample of the others is searched among all other samples of these.
rng = np.random.default_rng(0)
y = np.repeat(np.arange(200), 5)
X = 1.5 * rng.normal(size=(200, 8))[y] + 0.5 * rng.normal(size=(1000, 8))
forest = SimilarityForest(n_estimators=20, max_depth=8, n_pairs=20_000, random_state=0).fit(X[y < 100], y[y < 100])
result = evaluate(forest, X[y >= 100], y[y >= 100])

# %%
# The CMC curve says how often the true identity is among the best k of 100. It assumes that the person is in the
# gallery. If that is not sure, a search needs a threshold: the false negative identification rate (FNIR) is the share
# of enrolled people that are missed, when at most a given share of the searches of strangers (FPIR) return anybody.
for fpir, fnir in result.fnir.items():
    print(f"FNIR {fnir:.3f} at FPIR {fpir:g}")
CmcDisplay(result, name="forest").plot()
plt.show()
