"""
Verification of unseen identities
=================================

Are two samples from the same person, when that person was not there in training? This is an *open set*: what must be
split into training and test data is identities, not samples, so that none is on both sides.
"""

# %%
# The data is synthetic. Each of 200 identities has eight samples; the features are like timings: positive, skewed, on
# very different scales. Half of them say nothing about the identity, and one measurement in eight went wrong.
import matplotlib.pyplot as plt
import numpy as np

from simtree import DistanceSimilarity, GaussianSimilarity, MarginalQuantiles, SimilarityForest, evaluate
from simtree.plots import RocDisplay

rng = np.random.default_rng(0)
y = np.repeat(np.arange(200), 8)
own = 1.5 * rng.normal(size=(200, 12)) * np.repeat([1.0, 0.0], 6)  # what is particular to an identity
X = own[y] + 0.5 * rng.normal(size=(1600, 12))
X = np.where(rng.random(X.shape) < 1 / 8, 1.5 * rng.normal(size=X.shape), X)
X = np.exp(X) * np.geomspace(0.01, 100, 12)

train, test = y < 100, y >= 100

# %%
# ``MarginalQuantiles`` replaces each feature by its quantile, for all models alike: it removes skewness and scales. The
# Euclidean distance then learns nothing more: it is the baseline. The Gaussian model is the likelihood ratio of two
# Gaussian distributions.
quantiles = MarginalQuantiles()
models = {
    "forest": SimilarityForest(n_estimators=30, max_depth=10, n_pairs=20_000, representation=quantiles, random_state=0),
    "Gaussian": GaussianSimilarity(representation=quantiles),
    "Euclidean distance": DistanceSimilarity(metric="euclidean", representation=quantiles),
}
results = {name: evaluate(model.fit(X[train], y[train]), X[test], y[test]) for name, model in models.items()}

# %%
# An operating point is the best threshold whose false positive rate (FPR, per pair of different identities) is *at
# most* the target. The intervals are for new identities: 100 of them make 316,800 different pairs, but those are not
# independent.
for name, result in results.items():
    point = next(point for point in result.operating_points if point.target == 1e-2)
    tpr = f"{point.tpr.value:.3f} [{point.tpr.low:.3f}, {point.tpr.high:.3f}]"
    print(f"{name:20} TPR at FPR 0.01: {tpr}, AUC {result.auc.value:.3f}")

# %%
# The logarithmic axis shows the low false positive rates, which decide whether a system is usable. The bands are
# intervals of the rates at the same threshold. Which model wins depends on how the data was made: the forest gains from
# the wrong measurements, which no Gaussian distribution describes. Without them (replace ``1 / 8`` by ``0``) the forest
# and the Gaussian model are about equal, and if samples of an identity also vary more (``0.7`` and ``1.0`` instead of
# ``0.5`` and ``1.5``) the Gaussian model, which is then the right one, is a little better. Compare both on your own data.
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, result in results.items():
    RocDisplay(result.roc, band=result.band, name=name, knots=False).plot(ax, log_fpr=True)
ax.set(title="Pairs of 100 identities that were not seen in training", xlim=(1e-4, 1))
plt.show()
