"""
Explaining a pair
=================

Why does a pair have its score? ``explain_pair`` divides the score among the features: a base value plus one
contribution per feature add up to the score exactly.
"""

# %%
# A forest that decides whether two wines come from the same grape.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from simtree import SimilarityForest
from simtree.plots import ExplanationDisplay

wine = load_wine(as_frame=True)
X, X_test, y, y_test = train_test_split(wine.data, wine.target, test_size=0.4, stratify=wine.target, random_state=0)
forest = SimilarityForest(n_estimators=50, n_pairs=None, random_state=0).fit(X, y)

# %%
# Two pairs of test wines: the same pair with the lowest score, and the different pair with the highest. These are the
# two worst mistakes that a threshold could make here.
first, second = np.triu_indices(len(X_test), k=1)
scores = forest.pair_score(np.column_stack([first, second]), X_test)
same = y_test.to_numpy()[first] == y_test.to_numpy()[second]
missed = np.flatnonzero(same)[np.argmin(scores[same])]
confused = np.flatnonzero(~same)[np.argmax(scores[~same])]
rows = X_test.to_numpy()

# %%
# As a table, for the same pair that looks different:
why = forest.explain_pair(rows[first[missed]], rows[second[missed]])
print(why)
print("adds up:", np.isclose(why.base + why.contributions.sum(), why.score))

# %%
# As bars: blue features speak for the same grape, orange ones against it. Beside each name stand the two values.
# Neither mistake is due to a single feature: in the first pair nearly all speak against, and in the second all that are
# shown speak for the same grape.
fig, axes = plt.subplots(2, 1, figsize=(7, 8), layout="constrained")
for ax, pair, name in zip(
    axes, (missed, confused), ("same grape, lowest score", "different grapes, highest score"), strict=True
):
    ExplanationDisplay.from_estimator(forest, rows[first[pair]], rows[second[pair]], max_features=8, ax=ax)
    ax.set_title(f"{name} ({scores[pair]:.1f})")
plt.show()

# %%
# A contribution says how the *model* came to its score. It is no statement about causes, and features that carry the
# same information share the credit in a way that depends on the trees.
