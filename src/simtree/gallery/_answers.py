"""Answers of a gallery: tables of arrays, which become data frames where pandas is installed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from simtree.gallery._audit import Entry
from simtree.metrics import FloatArray
from simtree.models import Clusters


class Table:
    """A table of columns, each of which is an array and an attribute; subclasses are dataclasses."""

    #: Attributes that are not columns.
    _OTHERS: ClassVar[tuple[str, ...]] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(field.name for field in fields(self) if field.name not in self._OTHERS)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name.

        Returns
        -------
        dict
            Arrays of equal length.
        """
        return {name: getattr(self, name) for name in self.columns}

    def to_frame(self) -> Any:
        """Return the table as a data frame of pandas, which must be installed.

        Returns
        -------
        pandas.DataFrame
            One column per array.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError('to_frame needs pandas; install it with: pip install "simtree[cli]"') from None
        return pd.DataFrame(self.to_dict())


@dataclass(frozen=True)
class Candidates(Table):
    """Candidates of a search, one row each: the queries in their order, and for each query the best identity first.

    Parameters
    ----------
    query : ndarray of shape (n_candidates,)
        Row number of the query.
    rank : ndarray of shape (n_candidates,)
        1 for the best identity.
    id : ndarray of shape (n_candidates,)
        The identity.
    score : ndarray of shape (n_candidates,)
        Fused score.
    probability : ndarray of shape (n_candidates,)
        Probability that the samples are of one identity, for a model with calibrated probabilities and an identity with one
        sample, if both answers are equally likely beforehand; NaN otherwise.
    expected_false_matches : ndarray of shape (n_candidates,)
        Number of enrolled identities that a stranger is expected to match with at least this score; NaN unless the gallery is
        calibrated.
    threshold : float or None
        Score that candidates have at least, for a search with ``max_fpir``.
    promise : str or None
        What holds for the threshold.
    n_queries, n_identities : int
        Number of queries, and of identities that were searched.
    n_enrolled : int
        Number of all identities in the gallery.
    fingerprint : str
        Fingerprint of the model.
    expected_fpir : float
        Share of strangers who are expected to have a candidate above the threshold; NaN without a threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.gallery import Candidates
    >>> one = np.ones(1)
    >>> Candidates(np.array([0]), np.array([1]), np.array(["ann"]), one, one, one, None, None, 1, 7).to_dict()["id"]
    array(['ann'], dtype='<U3')
    """

    _OTHERS = ("threshold", "promise", "n_queries", "n_identities", "n_enrolled", "fingerprint", "expected_fpir")

    query: NDArray[np.int64]
    rank: NDArray[np.int64]
    id: NDArray[np.object_]
    score: FloatArray
    probability: FloatArray
    expected_false_matches: FloatArray
    threshold: float | None
    promise: str | None
    n_queries: int
    n_identities: int
    n_enrolled: int = 0
    fingerprint: str = ""
    expected_fpir: float = np.nan


@dataclass(frozen=True)
class Verifications(Table):
    """Answers to claims, one row each.

    Parameters
    ----------
    id : ndarray of shape (n_claims,)
        The identity that was claimed.
    score : ndarray of shape (n_claims,)
        Fused score.
    threshold : ndarray of shape (n_claims,)
        Score from which on a claim is accepted.
    accepted : ndarray of shape (n_claims,)
        The decision.
    probability, expected_false_matches : ndarrays of shape (n_claims,)
        As in `Candidates`.
    n_enrolled, fingerprint, expected_fpir : int, str and float
        As in `Candidates`; the rate is that of a search at the threshold, NaN unless the gallery is calibrated.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.gallery import Verifications
    >>> one = np.ones(1)
    >>> Verifications(np.array(["ann"]), 3.0 * one, one, one > 0.0, np.nan * one, 0.1 * one).accepted
    array([ True])
    """

    _OTHERS = ("n_enrolled", "fingerprint", "expected_fpir")

    id: NDArray[np.object_]
    score: FloatArray
    threshold: FloatArray
    accepted: NDArray[np.bool_]
    probability: FloatArray
    expected_false_matches: FloatArray
    n_enrolled: int = 0
    fingerprint: str = ""
    expected_fpir: float = np.nan


@dataclass(frozen=True)
class Groups(Table):
    """Samples of a gallery in groups, one row per sample, in the order of identities.

    Parameters
    ----------
    id : ndarray of shape (n_samples,)
        The identity that the sample was enrolled for.
    cluster : ndarray of shape (n_samples,)
        The group, numbered from 0.
    size : ndarray of shape (n_samples,)
        Number of samples of the group.
    clusters : Clusters
        Threshold, numbers of matches, and how well groups agree with ids.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.gallery import Groups
    >>> from simtree.models import Clusters
    >>> groups = np.array([0, 0, 1])
    >>> found = Groups(np.array(["ann", "bob", "eve"]), groups, np.array([2, 2, 1]), Clusters(groups, 2, 1.5, 1, 3, None, None))
    >>> found.mixed()
    [['ann', 'bob']]
    """

    _OTHERS = ("clusters",)

    id: NDArray[np.object_]
    cluster: NDArray[np.int64]
    size: NDArray[np.int64]
    clusters: Clusters

    def mixed(self) -> list[list[str]]:
        """Return the ids of each group that has more than one: perhaps one person under several ids.

        Returns
        -------
        list of list of str
            Sorted ids, by group.
        """
        names: dict[int, set[str]] = {}
        for group, name in zip(self.cluster.tolist(), self.id.tolist(), strict=True):
            names.setdefault(group, set()).add(name)
        return [sorted(own) for own in names.values() if len(own) > 1]


@dataclass(frozen=True)
class AuditTrail(Table):
    """Entries of the audit, oldest first.

    Parameters
    ----------
    time : ndarray of shape (n_entries,)
        When, in UTC.
    action : ndarray of shape (n_entries,)
        What was done.
    model : ndarray of shape (n_entries,)
        Fingerprint of the model.
    n_identities, n_samples : ndarrays of shape (n_entries,)
        How many identities and samples it was about.
    subjects : ndarray of shape (n_entries,)
        Keyed hashes of these identities, separated by spaces.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.gallery import AuditTrail
    >>> now, one = np.array(["2026-01-01"], dtype="datetime64[s]"), np.array([1])
    >>> len(AuditTrail(now, np.array(["enroll"]), np.array(["ab"]), one, one, np.array(["cd"])))
    1
    """

    time: NDArray[np.datetime64]
    action: NDArray[np.object_]
    model: NDArray[np.object_]
    n_identities: NDArray[np.int64]
    n_samples: NDArray[np.int64]
    subjects: NDArray[np.object_]

    @classmethod
    def of(cls, entries: list[Entry]) -> Self:
        """Return a table of entries.

        Parameters
        ----------
        entries : list of Entry
            The entries.

        Returns
        -------
        AuditTrail
            The table.
        """
        seconds = np.array([entry.time for entry in entries], dtype=np.float64)
        return cls(
            (1000.0 * seconds).astype(np.int64).astype("datetime64[ms]"),
            np.array([entry.action for entry in entries], dtype=object),
            np.array([entry.model for entry in entries], dtype=object),
            np.array([len(entry.subjects) for entry in entries], dtype=np.int64),
            np.array([entry.n_samples for entry in entries], dtype=np.int64),
            np.array([" ".join(entry.subjects) for entry in entries], dtype=object),
        )


class Duplicate(NamedTuple):
    """A sample that matches another identity than its own.

    Parameters
    ----------
    row : int
        Its row.
    id : str
        Its identity.
    other : str
        The other identity.
    score : float
        Its score with the other identity.
    """

    row: int
    id: str
    other: str
    score: float


@dataclass(frozen=True)
class Enrolment:
    """What an enrolment did.

    Parameters
    ----------
    n_samples, n_identities : int
        Number of samples, and of the identities that they are of.
    n_new : int
        Number of identities that were not in the gallery before.
    n_dropped : int
        Number of samples that were dropped because of ``max_samples``, the oldest ones.
    duplicates : tuple of Duplicate
        Samples that match another identity, if ``on_duplicate`` asked for them.
    is_repeated : bool
        Whether it was done before, under the same ``request``, and was not done again.

    Examples
    --------
    >>> from simtree.gallery import Enrolment
    >>> Enrolment(4, 2, 2, 0).n_new
    2
    """

    n_samples: int
    n_identities: int
    n_new: int
    n_dropped: int
    duplicates: tuple[Duplicate, ...] = ()
    is_repeated: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class Identity:
    """What is enrolled of an identity.

    Parameters
    ----------
    id : str
        The identity.
    n_samples : int
        Number of its samples.
    times : ndarray of shape (n_samples,)
        When they were taken, in UTC.
    metadata : dict
        Its values by name.
    hash : str
        What stands for the identity in the audit.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.gallery import Identity
    >>> Identity("ann", 1, np.array(["2026-01-31"], dtype="datetime64[ms]"), {"site": "A"}, "ab").n_samples
    1
    """

    id: str
    n_samples: int
    times: NDArray[np.datetime64]
    metadata: dict[str, str | int | float]
    hash: str
