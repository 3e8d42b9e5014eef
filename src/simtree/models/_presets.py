"""Settings that are known to do well: the one answer to "what should I use?" of `AutoSimilarity`, the command and the docs.

- To be accurate without a search: `forest_preset`, what ``simtree fit`` learns.
- To be read: `tree_preset`, what ``simtree fit --model tree`` learns.
- To have it chosen by cross-validation: `AutoSimilarity`, which compares the `CANDIDATES`.

All of them ask `is_open_set` whether the identities that will be met are those of the training data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from simtree.models._base import Similarity
from simtree.models._boosting import SimilarityBoosting
from simtree.models._cohort import CohortNormalization
from simtree.models._distance import DistanceSimilarity
from simtree.models._forest import SimilarityForest
from simtree.models._gaussian import GaussianSimilarity
from simtree.models._open_set import is_open_set
from simtree.models._posterior import PosteriorSimilarity
from simtree.models._tree import SimilarityTree
from simtree.pairs._sampling import PairSampler
from simtree.representation import (
    BoostingPosterior,
    ForestPosterior,
    KernelDiscriminant,
    LogisticPosterior,
    MarginalQuantiles,
    NetworkPosterior,
    NuisanceCentering,
    WithinClassWhitening,
)

F = ["abs_diff", "sum"]
PAIRWISE = ["dot", "cosine", "euclidean", "manhattan"]
# A forest draws bags, and has out-of-bag metrics, from this many samples on.
MIN_BAG_SAMPLES = 30
N_TREES = 50
# With fewer trees than this, a pair is out of the bags of so few of them that its score says little.
MIN_TREES_FOR_OOB_SCORE = N_TREES
# Where there are this many pairs, a cell of fewer than MIN_PAIRS_SPLIT is not worth splitting.
MANY_PAIRS = 20_000
MIN_PAIRS_SPLIT = 100
# A tree that can be read: one condition per split, and at most 2^depth rules.
READABLE_SPLITTER, READABLE_DEPTH = "cut", 5


def forest_preset(
    pairs: PairSampler, *, n_trees: int = N_TREES, open_set: bool | None = None, **parameters: Any
) -> SimilarityForest:
    """Return the forest to start with: accurate on most data, and fitted in seconds.

    Parameters
    ----------
    pairs : PairSampler
        The pairs that there are; what they are of decides about bags and about the size of cells.
    n_trees : int, default=50
        Number of trees.
    open_set : bool, optional
        Whether new identities will come, so that bags, and folds of categories, are of identities; by default as `is_open_set`
        says.
    **parameters
        Further parameters of `SimilarityForest`, which take precedence.

    Examples
    --------
    >>> forest_preset(PairSampler([0, 0, 1, 1]), n_trees=10).bag
    'samples'
    """
    enough = pairs.n_samples >= MIN_BAG_SAMPLES
    of_splitter = parameters.get("splitter", "cart") != "cart"  # another splitter has coordinates of its own
    settings: dict[str, Any] = {
        "n_estimators": n_trees,
        "representation": MarginalQuantiles(),
        "coordinates": None if of_splitter else [*F, "product", *PAIRWISE],
        "min_pairs_split": _min_pairs_split(pairs),
        "bag": "classes" if (is_open_set(_n_labels(pairs)) if open_set is None else open_set) else "samples",
        "open_set": "auto" if open_set is None else open_set,
        "bootstrap": enough,
        # Another representation or other directions may be fitted with labels, and no pair is then out of bag.
        "oob_score": enough
        and n_trees >= MIN_TREES_FOR_OOB_SCORE
        and parameters.keys().isdisjoint({"representation", "directions"}),
    }
    return SimilarityForest(**{**settings, **parameters})


def tree_preset(pairs: PairSampler, **parameters: Any) -> SimilarityTree:
    """Return a tree that can be read: each split is one condition on one coordinate of a pair, and there are few of them.

    A forest is more accurate, and so is one tree that is deeper or whose splits have more conditions (``splitter="cart"``).

    Parameters
    ----------
    pairs : PairSampler
        The pairs that there are.
    **parameters
        Further parameters of `SimilarityTree`, which take precedence.

    Examples
    --------
    >>> tree_preset(PairSampler([0, 0, 1, 1]), max_depth=3)
    SimilarityTree(max_depth=3, splitter='cut')
    """
    settings = {"splitter": READABLE_SPLITTER, "max_depth": READABLE_DEPTH, "min_pairs_split": _min_pairs_split(pairs)}
    return SimilarityTree(**{**settings, **parameters})


def _min_pairs_split(pairs: PairSampler) -> int:
    return MIN_PAIRS_SPLIT if pairs.n_pairs >= MANY_PAIRS else 2


def _n_labels(pairs: PairSampler) -> int:
    return int(pairs.labels.max()) + 1


@dataclass(frozen=True)
class Size:
    """How large a forest and its representation are: small to be compared, large to be used."""

    n_trees: int
    n_pairs: int
    n_landmarks: int
    n_extra_trees: int
    n_rounds: int = 30
    n_updates: int = 2_500
    n_folds: int = 3
    n_pairs_per_sample: int = 40
    n_fourier: int = 2_000

    def for_samples(self, n_samples: int) -> Size:
        """Return the size for a number of samples.

        It has no more pairs than are worth their time: more repeat the same samples. Of few samples a kernel classifier has
        more random features, and a forest of classes more trees, which then cost little, and make them depend less on chance.

        Examples
        --------
        >>> SMALL.for_samples(600).n_pairs, LARGE.for_samples(600).n_pairs, LARGE.for_samples(60_000).n_pairs
        (24000, 60000, 100000)
        >>> LARGE.for_samples(200).n_extra_trees, LARGE.for_samples(1_000).n_extra_trees
        (500, 200)
        """
        return replace(
            self,
            n_pairs=min(self.n_pairs, self.n_pairs_per_sample * n_samples),
            n_extra_trees=int(self.n_extra_trees * min(max(MANY_TREES_UP_TO / n_samples, 1.0), MAX_MORE_TREES)),
            n_fourier=MANY_FOURIER if n_samples <= FEW_SAMPLES else self.n_fourier,
        )


SMALL = Size(n_trees=12, n_pairs=50_000, n_landmarks=500, n_extra_trees=100)
LARGE = Size(
    n_trees=N_TREES,
    n_pairs=100_000,
    n_landmarks=2_000,
    n_extra_trees=200,
    n_rounds=150,
    n_updates=5_000,
    n_folds=5,
    n_pairs_per_sample=100,
)
# Boosted trees are small, and a forest of as many pairs takes as long as this many rounds per tree.
ROUNDS_PER_TREE = 8
# Below so many samples a forest of classes has more trees, in inverse proportion, up to so many times as many.
MANY_TREES_UP_TO, MAX_MORE_TREES = 1_000, 2.5
# Random features of a kernel classifier of at most FEW_SAMPLES samples.
MANY_FOURIER, FEW_SAMPLES = 6_000, 3_000
LARGE_LAYERS = (256, 128)
# A posterior keeps one column per class up to this number of classes; with more, classes are merged.
MAX_POSTERIOR_CLASSES = 10_000


def _forest(size: Size, **parameters: Any) -> SimilarityForest:
    return SimilarityForest(n_estimators=size.n_trees, n_pairs=size.n_pairs, min_pairs_split=MIN_PAIRS_SPLIT, **parameters)


def _oblique(size: Size) -> Similarity:
    return _forest(size, coordinates=["oblique", *PAIRWISE], directions="discriminant")


def _on_f(size: Size) -> Similarity:
    # An identity with many samples would have most of the same pairs.
    return _forest(size, coordinates=[*F, *PAIRWISE], same_weighting="identities")


def _boosting(size: Size, **parameters: Any) -> Similarity:
    rounds = ROUNDS_PER_TREE * size.n_trees
    return SimilarityBoosting(n_estimators=rounds, n_pairs=size.n_pairs, early_stopping=False, **parameters)


def _boosting_on_f(size: Size) -> Similarity:
    return _boosting(size, coordinates=[*F, *PAIRWISE], same_weighting="identities")


def _boosting_oblique(size: Size) -> Similarity:
    return _boosting(size, coordinates=["oblique", *PAIRWISE], directions="discriminant")


def _gaussian(size: Size) -> Similarity:
    return GaussianSimilarity(representation=MarginalQuantiles())


def _on_all(size: Size, representation: Any = None) -> Similarity:
    return _forest(size, representation=representation, coordinates=[*F, "product", *PAIRWISE])


def _on_whitened(size: Size) -> Similarity:
    return _on_all(size, make_pipeline(MarginalQuantiles(), WithinClassWhitening()))


def _on_posterior(size: Size) -> Similarity:
    return _on_all(size, ForestPosterior(n_estimators=size.n_extra_trees))


def _on_landmarks(size: Size) -> Similarity:
    return _on_all(size, KernelDiscriminant(n_landmarks=size.n_landmarks))


def seeded(candidate: Similarity, seed: int, n_jobs: int | None) -> Similarity:
    """Return a candidate with all its random seeds and numbers of parallel jobs set."""
    settings: dict[str, Any] = {}
    for name in candidate.get_params():
        if name == "random_state" or name.endswith("__random_state"):
            settings[name] = seed
        elif name == "n_jobs" or name.endswith("__n_jobs"):
            settings[name] = n_jobs
    found: Similarity = clone(candidate.set_params(**settings))
    return found


def _standardised_distance(size: Size) -> Similarity:
    return DistanceSimilarity(metric="manhattan", representation=StandardScaler())


# Directions in which classes do not differ are dropped and the others are whitened and weighted: discriminant analysis.


def _whitened_cosine(size: Size) -> Similarity:
    return DistanceSimilarity(representation=make_pipeline(StandardScaler(), WithinClassWhitening()))


def _discriminant_cosine(size: Size) -> Similarity:
    return DistanceSimilarity(representation=make_pipeline(StandardScaler(), WithinClassWhitening(emphasis=0.5)))


def _whitened_quantile_cosine(size: Size) -> Similarity:
    quantiles = MarginalQuantiles(output="normal")
    return DistanceSimilarity(representation=make_pipeline(quantiles, WithinClassWhitening(emphasis=0.25)))


def _whitened_distance(size: Size) -> Similarity:
    whitened = make_pipeline(StandardScaler(), WithinClassWhitening(emphasis=0.25))
    return DistanceSimilarity(metric="euclidean", representation=whitened)


def _whitened_embedding_cosine(size: Size) -> Similarity:
    # Embeddings trained for the cosine are compared by their angle from the origin, which stays where it is.
    whitened = make_pipeline(Normalizer(), WithinClassWhitening(center=False, shrinkage=0.5))
    return DistanceSimilarity(metric="cosine", representation=whitened)


def _normalised_gaussian(size: Size) -> Similarity:
    # Samples of length one: two that point the same way are alike, however far out they are.
    return GaussianSimilarity(representation=make_pipeline(StandardScaler(), WithinClassWhitening(), Normalizer()))


def _without_nuisance() -> Any:
    return make_pipeline(MarginalQuantiles(output="normal"), NuisanceCentering())


def _centred_gaussian(size: Size) -> Similarity:
    return GaussianSimilarity(representation=_without_nuisance())


def _centred_boosting_on_f(size: Size) -> Similarity:
    return _boosting(size, representation=_without_nuisance(), coordinates=[*F, *PAIRWISE], same_weighting="identities")


def _cohort_cosine(size: Size) -> Similarity:
    return CohortNormalization(DistanceSimilarity(metric="cosine"))


def _cohort_distance(size: Size) -> Similarity:
    return CohortNormalization(_whitened_distance(size))


def _cohort_forest(size: Size) -> Similarity:
    return CohortNormalization(_forest(size, coordinates=F, same_weighting="identities"))


def _extra_trees(size: Size) -> Any:
    return ForestPosterior(n_estimators=size.n_extra_trees, max_classes=MAX_POSTERIOR_CLASSES)


def _full_extra_trees(size: Size) -> Any:
    # Trees on nearly all samples, as scikit-learn's: better where classes hardly overlap.
    return ForestPosterior(n_estimators=size.n_extra_trees, bootstrap=False, max_classes=MAX_POSTERIOR_CLASSES)


def _boosted(size: Size) -> Any:
    return BoostingPosterior(n_rounds=size.n_rounds, cv=size.n_folds)


def _network(size: Size) -> Any:
    # For small tables, where training ends early: large ones are left to the large network.
    return make_pipeline(StandardScaler(), NetworkPosterior(n_updates=size.n_updates // 2, cv=size.n_folds))


def _large_network(size: Size) -> Any:
    # Better where there are many samples of many classes; small tables want the small one.
    network = NetworkPosterior(hidden_layer_sizes=LARGE_LAYERS, n_updates=size.n_updates, cv=size.n_folds)
    return make_pipeline(StandardScaler(), network)


def _kernel(size: Size) -> Any:
    # Random features rather than landmarks: these are means of several rows, of which a small table has few.
    kernel = KernelDiscriminant(
        n_landmarks=size.n_fourier, landmarks="fourier", gamma="auto", alpha="auto", max_classes=MAX_POSTERIOR_CLASSES
    )
    return make_pipeline(StandardScaler(), kernel, LogisticPosterior(C=10.0))


def _posterior_ratio(make: Callable[[Size], Any]) -> Callable[[Size], Similarity]:
    """Return a maker of the likelihood ratio of a posterior."""
    return lambda size: PosteriorSimilarity(make(size))


# Sets that a candidate is for.
ANY_SET, OPEN_SET, CLOSED_SET = "any", "open", "closed"


class Candidate(NamedTuple):
    """A model that `AutoSimilarity` tries, at any size.

    One that is ``of`` closed sets learns what tells the labels of the training data apart; one of open sets adds nothing where
    the labels are known, beside those that learn them. One that comes ``after`` another is tried if the other is not far
    behind: it normalises the scores of the other, or is a forest on coordinates like those of the other.
    """

    make: Callable[[Size], Similarity]
    of: str = ANY_SET
    after: str | None = None

    def is_for(self, *, closed_set: bool) -> bool:
        """Return whether the candidate is tried for a closed, or for an open set."""
        return self.of in (ANY_SET, CLOSED_SET if closed_set else OPEN_SET)


#: What is tried, from the simplest on: among equals the first wins.
CANDIDATES: Mapping[str, Candidate] = {
    "euclidean": Candidate(lambda size: DistanceSimilarity(metric="euclidean")),
    "cosine": Candidate(lambda size: DistanceSimilarity(metric="cosine")),
    "manhattan of standardised features": Candidate(_standardised_distance),
    "cosine of whitened features": Candidate(_whitened_cosine),
    "cosine of discriminants": Candidate(_discriminant_cosine),
    "cosine of whitened quantiles": Candidate(_whitened_quantile_cosine),
    "cosine of whitened embeddings": Candidate(_whitened_embedding_cosine),
    "distance of whitened features": Candidate(_whitened_distance),
    "cosine relative to a cohort": Candidate(_cohort_cosine, after="cosine"),
    "distance of whitened features relative to a cohort": Candidate(_cohort_distance, after="distance of whitened features"),
    # The scale of features does not matter, so that they need not be standardised.
    "Gaussian likelihood ratio of features as given": Candidate(lambda size: GaussianSimilarity()),
    "Gaussian likelihood ratio of whitened features of length one": Candidate(_normalised_gaussian),
    "Gaussian likelihood ratio": Candidate(_gaussian),
    "Gaussian likelihood ratio without nuisance": Candidate(_centred_gaussian, OPEN_SET),
    "forest on f and pairwise coordinates": Candidate(_on_f, OPEN_SET, after="boosting on f and pairwise coordinates"),
    "forest along discriminant directions": Candidate(_oblique, OPEN_SET, after="boosting along discriminant directions"),
    "boosting on f and pairwise coordinates": Candidate(_boosting_on_f),
    "boosting along discriminant directions": Candidate(_boosting_oblique),
    "boosting on f and pairwise coordinates without nuisance": Candidate(
        _centred_boosting_on_f, OPEN_SET, after="boosting on f and pairwise coordinates"
    ),
    "forest relative to a cohort": Candidate(_cohort_forest, OPEN_SET, after="forest on f and pairwise coordinates"),
    "forest on all coordinates": Candidate(_on_all, OPEN_SET, after="boosting on f and pairwise coordinates"),
    "forest on whitened samples": Candidate(_on_whitened, OPEN_SET, after="boosting on f and pairwise coordinates"),
    "forest on class posteriors of extra trees": Candidate(_on_posterior, CLOSED_SET),
    "forest on kernel discriminants": Candidate(_on_landmarks, CLOSED_SET),
    "posteriors of extra trees": Candidate(_posterior_ratio(_extra_trees), CLOSED_SET),
    "posteriors of extra trees without bootstrap": Candidate(_posterior_ratio(_full_extra_trees), CLOSED_SET),
    "posteriors of boosted trees": Candidate(_posterior_ratio(_boosted), CLOSED_SET),
    "posteriors of networks": Candidate(_posterior_ratio(_network), CLOSED_SET),
    "posteriors of large networks": Candidate(_posterior_ratio(_large_network), CLOSED_SET),
    "posteriors of a kernel classifier": Candidate(_posterior_ratio(_kernel), CLOSED_SET),
}
