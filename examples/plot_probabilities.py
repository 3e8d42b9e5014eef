"""
From scores to probabilities
============================

The score of a forest is a log-likelihood ratio, but not one to be taken at its word. ``calibrate_probability`` corrects
it with held-out identities; ``predict_proba`` then returns probabilities for the share of same pairs that you expect.
"""

# %%
# Synthetic identities: to train, to calibrate, to test, none in two of them.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

from simtree import SimilarityForest
from simtree.metrics import cllr, min_cllr

rng = np.random.default_rng(0)
y = np.repeat(np.arange(300), 6)
X = rng.normal(size=(300, 6))[y] + 0.7 * rng.normal(size=(1800, 6))
train, tune, test = y < 100, (y >= 100) & (y < 200), y >= 200
forest = SimilarityForest(n_estimators=30, n_pairs=20_000, random_state=0).fit(X[train], y[train])
forest.calibrate_probability(X[tune], y[tune])

# %%
# Cllr is the cost of log-likelihood ratios in bits: 0 is perfect, and 1 is what a constant score of 0 costs. The last
# figure is the least that any increasing function of the scores could have on these pairs, so nearly all that
# calibration can do has been done.
rows = np.flatnonzero(test)
pairs = np.column_stack([rows[k] for k in np.triu_indices(len(rows), k=1)])
same = y[pairs[:, 0]] == y[pairs[:, 1]]
raw, even = forest.pair_score(pairs, X), forest.predict_proba(pairs, X, prior=0.5)[:, 1]
print(
    f"Cllr on test pairs: {cllr(raw, same):.3f} before, {cllr(logit(even), same):.3f} after; at best {min_cllr(raw, same):.3f}"
)

# %%
# A reliability diagram: of the pairs with a probability of about p, a share of p should be the same. Same and different
# pairs are weighted to be equally frequent, as the prior says, and points of fewer than 30 pairs are left out. Taken at
# its word, the score lies far above the diagonal: it is much too sure that pairs are different. The calibrated
# probabilities scatter around it.
weight = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())
fig, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.6", ls=":", lw=1.2)
for name, probability in {"score taken at its word": expit(raw), "calibrated": even}.items():
    bins = np.minimum((10 * probability).astype(int), 9)
    total, hits, place = (np.bincount(bins, weight * v, minlength=10) for v in (1.0, same, probability))
    shown = np.bincount(bins, minlength=10) >= 30
    ax.plot((place / total)[shown], (hits / total)[shown], "o-", label=name)
ax.set(xlabel="predicted probability", ylabel="share of same pairs", title="Pairs of 100 other identities", aspect="equal")
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# The same score means something else where same pairs are rare: give the prior of the place where the decision is made.
best = np.argmax(raw)
for prior in (0.5, 0.01, 1e-4):
    print(f"most similar pair, prior {prior:g}: probability {forest.predict_proba(pairs[[best]], X, prior=prior)[0, 1]:.4f}")
