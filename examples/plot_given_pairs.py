"""
Given pairs
===========

In record linkage nobody knows the identity of a record, but somebody has looked at pairs of records and decided: the
same or not. Then ``fit`` takes these pairs.
"""

# %%
# Two catalogues describe the same 1,000 products, each with its own errors. The features are the logarithms of a price
# (the second catalogue adds a tax of 20 %), a weight and a size, and four numbers that stand for an embedding of the
# title.
import matplotlib.pyplot as plt
import numpy as np

from simtree import SimilarityForest
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.plots import RocDisplay, ScoreHistogramDisplay

rng = np.random.default_rng(0)
product = rng.normal(size=(1000, 7))
noise = np.array([0.03, 0.1, 0.3, 0.6, 0.6, 0.6, 0.6])
first_shop = product + noise * rng.normal(size=(1000, 7))
second_shop = product + noise * rng.normal(size=(1000, 7)) + np.log(1.2) * np.eye(7)[0]
X = np.concatenate([first_shop, second_shop])  # rows i and 1000 + i are the same product

# %%
# The pairs that were looked at: the true match of each product, and six others. A pair is two row numbers of ``X``.
left = np.repeat(np.arange(1000), 7)
right = np.where(np.arange(len(left)) % 7 == 0, left, rng.integers(1000, size=len(left)))
pairs, same = np.column_stack([left, 1000 + right]), left == right

# %%
# Never split pairs at random: two pairs with a record in common are not independent. Here the products are split, and
# pairs with one product on each side are dropped.
is_train = rng.random(1000) < 0.5
train, test = is_train[left] & is_train[right], ~is_train[left] & ~is_train[right]
forest = SimilarityForest(n_estimators=50, max_depth=8, random_state=0).fit(X, same[train], pairs=pairs[train])
scores = forest.pair_score(pairs[test], X)
print(f"{train.sum()} pairs to learn from, {test.sum()} to test on, of which {same[test].sum()} are the same")

# %%
# The baseline is the Euclidean distance of the same features. It does not know that prices are reliable and titles are
# not, which the forest learns from the pairs; the data was made so that there is this to learn. The logarithms matter
# too: on prices, weights and sizes as they are, the forest is less accurate, because their errors are relative.
distance = np.linalg.norm(X[pairs[test, 0]] - X[pairs[test, 1]], axis=1)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
ScoreHistogramDisplay.from_predictions(same[test], scores, name="scores of the forest on test pairs", ax=axes[0])
for name, values in {"forest": scores, "Euclidean distance": -distance}.items():
    curve = roc_curve(values, same[test])
    print(f"{name:18} TPR {tpr_at_fpr(curve, 0.01):.3f} at FPR 0.01")
    RocDisplay(curve, name=name, knots=False).plot(axes[1], log_fpr=True)
axes[1].legend(frameon=False, loc="lower right")
plt.show()
