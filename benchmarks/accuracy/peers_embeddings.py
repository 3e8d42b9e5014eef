"""Similarities for unseen identities: discriminant analysis, PLDA, whitened cosines, and a network with a metric-learning loss.

All of them see standardised features, or features whose marginal distribution was transformed to a normal one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from sklearn.base import TransformerMixin
from sklearn.covariance import ledoit_wolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from accuracy.peers import Compare, MappedSamples, Training
from problems import draw, row_numbers
from simtree.experiments import _peers as maps
from simtree.metrics import roc_curve
from simtree.models._early_stopping import low_rates

Map = Callable[[np.ndarray], np.ndarray]

# The network: widths of its hidden layers and of the embedding, samples per identity and step, and steps per evaluation.
HIDDEN, EMBEDDING = (256, 256), 64
PER_IDENTITY, BATCH = 4, 256
MAX_EPOCHS, PATIENCE, STEPS = 100, 15, 50
VALIDATION_PAIRS = 50_000


def scaling(training: Training, quantiles: bool) -> TransformerMixin:
    """Return the transformer that comes first: of each feature to mean 0 and variance 1, or to a normal distribution."""
    if not quantiles:
        return StandardScaler()
    return QuantileTransformer(
        n_quantiles=min(1_000, len(training.X)), output_distribution="normal", random_state=training.seed
    )


# Discriminant analysis


def lda(training: Training, *, compare: Compare, quantiles: bool = False) -> MappedSamples:
    """Train a discriminant analysis with covariances shrunk by Ledoit and Wolf; a cosine normalises lengths, a distance not."""
    analysis = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    pipeline = make_pipeline(scaling(training, quantiles), analysis).fit(training.X, training.y)
    return MappedSamples(pipeline.transform, compare)


# Whitened cosine


def wccn(training: Training, *, quantiles: bool = False) -> MappedSamples:
    """Whiten by the covariance within identities, and compare by cosine."""
    first = scaling(training, quantiles).fit(training.X)
    samples = first.transform(training.X)
    mean, factor = samples.mean(axis=0), cholesky(within_covariance(samples, training.y), lower=True)
    return MappedSamples(lambda X: solve_triangular(factor, (first.transform(X) - mean).T, lower=True).T, maps.cosine_scores)


def within_covariance(samples: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the covariance within identities, shrunk by Ledoit and Wolf."""
    centred = centred_by_identity(samples, y)
    n_identities, n_samples = len(np.unique(y)), len(y)
    return ledoit_wolf(centred, assume_centered=True)[0] * (n_samples / (n_samples - n_identities))


def centred_by_identity(samples: np.ndarray, y: np.ndarray) -> np.ndarray:
    codes, sizes = np.unique(y, return_inverse=True, return_counts=True)[1:]
    means = np.zeros((len(sizes), samples.shape[1]))
    np.add.at(means, codes, samples)
    return samples - (means / sizes[:, None])[codes]


# PLDA


@dataclass(frozen=True)
class Plda:
    """Log-likelihood ratio of the two-covariance model, in directions in which both covariances are diagonal.

    Along a direction samples have variance 1, and two samples of one identity the correlation ``correlations``.
    """

    map: Map
    correlations: np.ndarray

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray:
        projected, r = self.map(X), self.correlations
        own = -0.5 * (projected**2 @ (r**2 / (1.0 - r**2)))
        products = maps.inner_product_scores(projected * np.sqrt(r / (1.0 - r**2)), rows[:, 0], rows[:, 1])
        return products + own[rows[:, 0]] + own[rows[:, 1]] - 0.5 * np.log1p(-(r**2)).sum()


def plda(training: Training, *, normalise_lengths: bool, quantiles: bool = False) -> Plda:
    """Fit the two-covariance model by the moments of a one-way analysis of variance.

    With normalised lengths, samples are first whitened by their covariance and scaled to the same length, which makes
    heavy-tailed samples more Gaussian (Garcia-Romero and Espy-Wilson 2011).
    """
    prepare = (
        normalised_map(training, quantiles) if normalise_lengths else scaling(training, quantiles).fit(training.X).transform
    )
    samples, sizes = prepare(training.X).astype(np.float64), np.unique(training.y, return_counts=True)[1]
    within = within_covariance(samples, training.y)
    mean = samples.mean(axis=0)
    of_identities = samples - mean - centred_by_identity(samples, training.y)
    n_effective = len(samples) - (sizes**2).sum() / len(samples)
    between = (of_identities.T @ of_identities - (len(sizes) - 1) * within) / n_effective
    ratios, directions = eigh(between, within)
    positive = ratios > 0.0
    ratios, directions = ratios[positive], directions[:, positive] / np.sqrt(1.0 + ratios[positive])
    return Plda(lambda X: (prepare(X) - mean) @ directions, ratios / (1.0 + ratios))


def normalised_map(training: Training, quantiles: bool) -> Map:
    """Return the map that whitens by the covariance of all samples, and scales each sample to the same length."""
    first = scaling(training, quantiles).fit(training.X)
    samples = first.transform(training.X)
    mean, factor = samples.mean(axis=0), cholesky(ledoit_wolf(samples)[0], lower=True)

    def normalise(X: np.ndarray) -> np.ndarray:
        white = solve_triangular(factor, (first.transform(X) - mean).T, lower=True).T
        lengths = np.linalg.norm(white, axis=1, keepdims=True)
        return np.sqrt(white.shape[1]) * white / np.maximum(lengths, np.finfo(np.float64).tiny)

    return normalise


# A network with a metric-learning loss


def embedding(training: Training, *, loss: str = "MultiSimilarityLoss", quantiles: bool = False) -> MappedSamples:
    """Train a network with a loss of pytorch-metric-learning, and compare its embeddings by cosine.

    The number of epochs is found on held-out identities, by the mean TPR at low false positive rates; the network is then
    trained again on all identities.
    """
    out = training.hold_out()
    first = scaling(training, quantiles).fit(training.X[~out])
    pairs = draw(training.y[out], training.some(VALIDATION_PAIRS), positive_fraction=0.1, seed=training.seed)
    rows, held_out = row_numbers(pairs), first.transform(training.X[out])
    tprs: list[float] = []

    def is_over(embed: Map) -> bool:
        roc = roc_curve(maps.cosine_scores(embed(held_out), rows[:, 0], rows[:, 1]), pairs.same)
        tprs.append(float(roc.at(low_rates(len(pairs) - pairs.n_same)).mean()))
        return len(tprs) - int(np.argmax(tprs)) > training.rounds(PATIENCE)

    how = {"loss": loss, "seed": training.seed}
    train(first.transform(training.X[~out]), training.y[~out], n_epochs=training.rounds(MAX_EPOCHS), is_over=is_over, **how)
    first = scaling(training, quantiles).fit(training.X)
    embed = train(first.transform(training.X), training.y, n_epochs=int(np.argmax(tprs)) + 1, **how)
    return MappedSamples(lambda X: embed(first.transform(X)), maps.cosine_scores)


def train(
    X: np.ndarray, y: np.ndarray, *, loss: str, seed: int, n_epochs: int, is_over: Callable[[Map], bool] | None = None
) -> Map:
    """Train a network for some epochs, or until ``is_over``, and return the function that embeds samples."""
    import torch
    from pytorch_metric_learning import losses

    def embed(X: np.ndarray) -> np.ndarray:
        network.eval()
        with torch.inference_mode():
            return network(torch.tensor(X, dtype=torch.float32)).numpy()

    with maps._deterministic(torch, seed):
        samples, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(np.unique(y, return_inverse=True)[1])
        network = make_network(torch, X.shape[1])
        criterion = getattr(losses, loss)()
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-3)
        rng = np.random.default_rng(seed)
        for _ in range(n_epochs):
            network.train()
            for _ in range(STEPS):
                batch = torch.from_numpy(batch_of(y, rng))
                optimizer.zero_grad()
                criterion(network(samples[batch]), labels[batch]).backward()
                optimizer.step()
            if is_over is not None and is_over(embed):
                break
    return embed


def batch_of(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rows of a batch: some samples each of random identities; those with one sample are left out."""
    codes, sizes = np.unique(y, return_inverse=True, return_counts=True)[1:]
    order, starts = np.argsort(codes, kind="stable"), np.cumsum(sizes) - sizes
    candidates = np.flatnonzero(sizes > 1)
    chosen = rng.choice(candidates, min(BATCH // PER_IDENTITY, len(candidates)), replace=False)
    return order[(starts[chosen] + rng.integers(0, sizes[chosen], (PER_IDENTITY, len(chosen)))).ravel()]


def make_network(torch: Any, n_features: int) -> Any:
    widths = (n_features, *HIDDEN)
    layers = [
        layer
        for before, after in pairwise(widths)
        for layer in (torch.nn.Linear(before, after), torch.nn.BatchNorm1d(after), torch.nn.ReLU(), torch.nn.Dropout(0.1))
    ]
    return torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN[-1], EMBEDDING))
