"""How much a model was trained on: numbers that say nothing of a sample."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from simtree._utils.validation import count
from simtree.pairs._sources import PairSource

MAX_COUNT = 1 << 62


@dataclass(frozen=True)
class TrainingCounts:
    """Numbers of samples, identities and pairs that `fit` was given.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    n_identities : int or None
        Number of identities; None if pairs were given, whose identities are not known.
    n_pairs : int
        Number of pairs, of all labelled samples or as given; a model may draw from them.

    Examples
    --------
    >>> print(TrainingCounts(400, 100, 79_800))
    400 samples of 100 identities, which make 79,800 pairs
    """

    n_samples: int
    n_identities: int | None
    n_pairs: int

    @classmethod
    def of(cls, n_samples: int, source: PairSource) -> Self:
        """Return the counts of samples and of the source of their pairs."""
        n_identities = None if source.labels is None else int(source.labels.max()) + 1
        return cls(int(n_samples), n_identities, int(source.n_pairs))

    def __str__(self) -> str:
        if self.n_identities is None:
            return f"{count(self.n_pairs, 'given pair')} of {count(self.n_samples, 'sample')}"
        identities = count(self.n_identities, "identity", "identities")
        return f"{count(self.n_samples, 'sample')} of {identities}, which make {count(self.n_pairs, 'pair')}"

    def _get_state(self) -> dict[str, Any]:
        """Return what a model file holds of the counts."""
        return asdict(self)

    @classmethod
    def _from_state(cls, fields: Any) -> Self:
        """Return the counts of a model file."""
        return cls(
            fields.integer("n_samples", 1, MAX_COUNT),
            fields.integer("n_identities", 1, MAX_COUNT) if fields.has("n_identities") else None,
            fields.integer("n_pairs", 1, MAX_COUNT),
        )
