"""
Reading a tree
==============

A single tree is less accurate than a forest, but it can be read. This one decides whether two wines come from the same
grape.
"""

# %%
# ``splitter="cut"`` uses one test per split, the easiest to read; ``min_pairs_leaf`` avoids cells of a few pairs.
import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from simtree import SimilarityForest, SimilarityTree
from simtree.plots import ImportanceDisplay, RocDisplay, TreeDisplay

wine = load_wine(as_frame=True)
X, X_test, y, y_test = train_test_split(wine.data, wine.target, test_size=0.4, stratify=wine.target, random_state=0)
tree = SimilarityTree(max_depth=3, splitter="cut", n_pairs=None, min_pairs_leaf=20, random_state=0).fit(X, y)

# %%
# As text. The cells are ordered: cell 3.0 is the most similar. FPR and TPR are the rates when all pairs down to that
# cell are accepted, so the last line of each cell is a point of the ROC curve on the training pairs.
print(tree.export_text())

# %%
# The same as a drawing. Blue cells hold mostly same pairs and orange cells mostly different ones, relative to their
# shares of all pairs.
TreeDisplay.from_estimator(tree)
plt.show()

# %%
# Which features were used, and what does reading cost? The forest is the upper curve; the knots of the tree's curve are
# its few cells.
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
ImportanceDisplay.from_estimator(tree, max_features=6, ax=axes[0])
forest = SimilarityForest(n_estimators=50, n_pairs=None, random_state=0).fit(X, y)
for name, model in {"forest": forest, "tree": tree}.items():
    RocDisplay.from_estimator(model, X_test, y_test, name=name, knots=model is tree, ax=axes[1])
axes[1].set_title("pairs of other wines")
plt.show()
