"""
Known classes
=============

If the classes of the future are those of training, such as ten digits, this is a *closed set*: only the images are new.
Then a representation that learns the classes, put before the forest, gains much. (For unseen identities it would lose.)
"""

# %%
# Half of the images of each digit are for training, and all pairs of the others for the test.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from simtree import DistanceSimilarity, ForestPosterior, SimilarityForest
from simtree.metrics import tpr_at_fpr
from simtree.plots import RocDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# ``ForestPosterior`` replaces an image by the probability of each class, as estimated by extremely randomised trees.
# What it gives to a training image comes from trees that did not see it; otherwise training pairs would look easier
# than new ones.
posterior = ForestPosterior(n_estimators=50, random_state=0)
models = {
    "forest on class posteriors": SimilarityForest(n_estimators=20, n_pairs=20_000, representation=posterior, random_state=0),
    "forest on pixels": SimilarityForest(n_estimators=20, n_pairs=20_000, random_state=0),
    "Euclidean distance": DistanceSimilarity(metric="euclidean"),
}

# %%
# The order is the same at all false positive rates.
fig, ax = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
for name, model in models.items():
    model.fit(X_train, y_train)
    display = RocDisplay.from_estimator(model, X_test, y_test, name=name, knots=False, log_fpr=True, ax=ax)
    rates = tpr_at_fpr(display.roc, [0.1, 0.01, 0.001])
    print(f"{name:28} TPR {rates[0]:.3f} at FPR 0.1, {rates[1]:.3f} at 0.01, {rates[2]:.3f} at 0.001")
ax.set(title="The same digit? Pairs of new images", xlim=(1e-4, 1))
ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
plt.show()
