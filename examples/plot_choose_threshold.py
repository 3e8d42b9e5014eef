"""
Choosing a threshold with a guarantee
=====================================

A threshold whose false positive rate is 0.01 on the data it was chosen on will often have a higher one on new
identities. ``calibrate_threshold`` gives a guarantee for new identities instead, which knows that pairs share identities
and that some identities are mistaken more often than others.
"""

# %%
# Three disjoint sets of identities: to train, to choose the threshold, and a large one to see what the choice was
# worth.
import matplotlib.pyplot as plt
import numpy as np

from simtree import SimilarityForest
from simtree.plots import ThresholdDisplay

rng = np.random.default_rng(0)


def make_identities(n_identities):
    """Return three samples of each of some new identities."""
    labels = np.repeat(np.arange(n_identities), 3)
    return 1.5 * rng.normal(size=(n_identities, 8))[labels] + 0.5 * rng.normal(size=(len(labels), 8)), labels


forest = SimilarityForest(n_estimators=20, max_depth=8, n_pairs=20_000, random_state=0).fit(*make_identities(100))

# %%
# With 150 identities an FPR of 0.01 can be guaranteed with 95 % confidence. The dotted line is the threshold: it lies to
# the right of where the FPR itself, the solid orange line, crosses the target. The promise names its assumption: people
# who are not in the data are as unequal as those in it. Without that assumption these identities promise less.
X_tune, y_tune = make_identities(150)
forest.calibrate_threshold(X_tune, y_tune, max_fpr=0.01, confidence=0.95)
print(forest.threshold_report_)
ThresholdDisplay.from_estimator(forest, X_tune, y_tune, name="Rates on the 150 identities of the choice")
plt.show()

# %%
# What cannot be guaranteed is refused, with the number of identities that it would take.
try:
    forest.calibrate_threshold(X_tune, y_tune, max_fpr=1e-4)
except ValueError as error:
    print(error)

# %%
# Is the guarantee kept? Choose a threshold anew from 150 identities, 20 times, and measure its rates on 200 others.
# Without a confidence (``confidence=None``) the threshold is the best one on the 150 identities, and its FPR on others
# is often too high. With 95 % confidence at most about one choice in twenty may exceed the target; the price is a lower
# TPR. :doc:`/guarantees` has the same for many kinds of inequality.
X_new, y_new = make_identities(200)
first, second = np.triu_indices(len(y_new), k=1)
same = y_new[first] == y_new[second]
scores = forest.pair_score(np.column_stack([first, second]), X_new)
rates = {0.95: [], None: []}
for _ in range(20):
    X_tune, y_tune = make_identities(150)
    for confidence, found in rates.items():
        accepted = scores >= forest.calibrate_threshold(X_tune, y_tune, max_fpr=0.01, confidence=confidence).threshold_
        found.append((accepted[~same].mean(), accepted[same].mean()))

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, found in zip(["95 % confidence", "no confidence"], rates.values(), strict=True):
    fpr, tpr = np.transpose(found)
    print(f"{name:16} FPR above 0.01 in {np.mean(fpr > 0.01):.0%} of the choices, mean TPR {tpr.mean():.3f}")
    ax.plot(fpr, tpr, "o", alpha=0.6, label=name)
ax.axvline(0.01, color="0.4", ls="--", lw=1, label="target")
ax.set(xlabel="FPR on 200 new identities", ylabel="TPR on 200 new identities", title="20 choices of a threshold")
ax.legend(frameon=False)
plt.show()
