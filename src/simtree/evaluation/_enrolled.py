"""Comparisons of probes with enrolled identities, in the form of pairs: all that is known about pairs then holds for them.

A comparison is a pair of two *rows*: a probe, and an enrolled identity as a whole. Rows are numbered anew, first the probes
and then the enrolled identities. Both rows of a comparison belong to identities, and these are the units. Two people may be
compared twice, each as the probe of the other, with two different scores; both comparisons belong to the one unordered pair of
these identities. Pairs of identities without a common identity are independent, which is all that intervals and guarantees
need: the rate of accepted comparisons per pair of identities is a U-statistic whose kernel is the mean over the comparisons of
the pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from simtree._utils.times import check_times
from simtree.evaluation._counting import SAME_SHARE, Score
from simtree.evaluation._templates import ScoreFusion, Starts
from simtree.metrics import FloatArray
from simtree.pairs._labels import encode_groups
from simtree.pairs._sources import Index, IndexPairs

Codes = NDArray[np.int64]
# Scores of probes with some samples each: from the row of each probe, the rows of the samples, and where those of each begin.
TemplateScore = Callable[[Codes, Codes, Starts], FloatArray]
# Number of pairs of samples scored at a time.
BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Templates:
    """Probes and enrolled identities of labelled samples.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Identity of each sample, as an integer from 0.
    probes : ndarray of shape (n_probes,)
        Rows of the probes.
    samples : ndarray of shape (n_enrolled,)
        Rows of the enrolled samples, those of an identity beside each other and in their order in the data.
    starts : ndarray of shape (n_identities,)
        First of the samples of each enrolled identity.
    never_pair : ndarray of shape (n_samples,), optional
        Samples with the same value are not compared, as integers from 0.

    Examples
    --------
    >>> templates = Templates.of(np.array([0, 0, 1, 1, 0]), [True, False, True, False, True])
    >>> templates.probes.tolist(), templates.samples.tolist(), templates.starts.tolist()
    ([1, 3], [0, 4, 2], [0, 2])
    """

    labels: Codes
    probes: Codes
    samples: Codes
    starts: Starts
    never_pair: Codes | None = None

    @classmethod
    def of(cls, labels: Codes, enrol: ArrayLike, never_pair: ArrayLike | None = None) -> Templates:
        """Return the probes and enrolled identities that a mask of enrolled samples makes; raise if it makes none."""
        mask = np.asarray(enrol)
        if mask.dtype != np.bool_ or mask.shape != labels.shape:
            raise ValueError(
                f"enrol has shape {mask.shape} and type {mask.dtype}; give a boolean for each of the {len(labels)} samples, "
                "True for those that are enrolled."
            )
        probes, enrolled = np.flatnonzero(~mask), np.flatnonzero(mask)
        if not len(probes) or not len(enrolled):
            kind = "enrolled samples" if not len(enrolled) else "probes"
            raise ValueError(f"enrol leaves no {kind}; mark some samples, and not all, as enrolled.")
        samples = enrolled[np.argsort(labels[enrolled], kind="stable")]
        starts = np.flatnonzero(np.diff(labels[samples], prepend=-1))
        codes = None if never_pair is None else encode_groups(never_pair, len(labels), "never_pair")
        return cls(labels, probes, samples, starts, codes)

    @property
    def sizes(self) -> Codes:
        """Number of samples of each enrolled identity."""
        return np.diff(self.starts, append=len(self.samples))

    @property
    def identities(self) -> Codes:
        """Identity of each row: of each probe, and of each enrolled identity."""
        return np.append(self.labels[self.probes], self.labels[self.samples[self.starts]])

    def comparisons(self, n_pairs: int | None = None, *, weighting: str = "samples", seed: int = 0) -> IndexPairs:
        """Return the comparisons, or ``n_pairs`` of them if there are more.

        Parameters
        ----------
        n_pairs : int or None
            Maximum number of comparisons.
        weighting : {"samples", "identities"}
            What the sample is to be representative of: all comparisons, or pairs of identities; for these, probes of identities
            with many are left out first.
        seed : int, default=0
            Random seed of the sample.

        Returns
        -------
        IndexPairs
            Comparisons of probes, which come first, with enrolled identities.
        """
        rng, n_templates = np.random.default_rng(seed), len(self.starts)
        probes = np.arange(len(self.probes))
        if n_pairs is not None and weighting == "identities" and len(probes) * n_templates > n_pairs:
            probes = _fewer_per_identity(self.labels[self.probes], n_pairs // n_templates, rng)
        owner = self.labels[self.samples[self.starts]]
        place = np.full(int(self.labels.max()) + 1, -1)
        place[owner] = np.arange(n_templates)
        own = place[self.labels[self.probes[probes]]]
        mated = np.column_stack([probes, own])[own >= 0]
        n_all = len(probes) * n_templates
        if n_pairs is None or n_all <= n_pairs:
            first, second = np.divmod(np.arange(n_all), n_templates)
            pairs = np.column_stack([probes[first], second])
        else:
            n_same = max(1, int(SAME_SHARE * n_pairs))
            mated = mated if len(mated) <= n_same else mated[np.sort(rng.choice(len(mated), n_same, replace=False))]
            drawn = np.unique(rng.integers(n_all, size=n_pairs - len(mated)))
            others = np.column_stack([probes[drawn // n_templates], drawn % n_templates])
            pairs = np.concatenate([mated, others[place[self.labels[self.probes[others[:, 0]]]] != others[:, 1]]])
        same = self.labels[self.probes[pairs[:, 0]]] == owner[pairs[:, 1]]
        compared = self._n_compared(pairs) > 0
        found = IndexPairs(
            pairs[compared, 0].astype(np.int32), (pairs[compared, 1] + len(self.probes)).astype(np.int32), same[compared]
        )
        if not found.has_both_kinds:
            kind, remedy = (
                ("same", "enrol somebody of whom there are probes") if found.n_same == 0 else ("different", "add identities")
            )
            raise ValueError(f"enrol allows no {kind} comparison of a probe with an enrolled identity; {remedy}.")
        return found

    @property
    def n_comparisons(self) -> int:
        """Number of all probes times that of all enrolled identities."""
        return len(self.probes) * len(self.starts)

    def _n_compared(self, pairs: Codes) -> Codes:
        """Return the number of samples that each comparison, of a probe and a template, is made with."""
        sizes = self.sizes[pairs[:, 1]]
        if self.never_pair is None:
            return sizes
        n_codes = int(self.never_pair.max()) + 1
        owners = np.repeat(np.arange(len(self.starts)), self.sizes)
        found, counts = np.unique(owners * n_codes + self.never_pair[self.samples], return_counts=True)
        wanted = pairs[:, 1] * n_codes + self.never_pair[self.probes[pairs[:, 0]]]
        at = np.minimum(np.searchsorted(found, wanted), len(found) - 1)
        return np.asarray(sizes - np.where(found[at] == wanted, counts[at], 0))

    def expand(self, first: Index, second: Index) -> tuple[Codes, Codes, Starts]:
        """Return comparisons as pairs of samples.

        Parameters
        ----------
        first, second : ndarray of shape (n_comparisons,)
            Rows of comparisons.

        Returns
        -------
        probes : ndarray of shape (n_comparisons,)
            Row of each probe in the data.
        samples : ndarray of shape (n_pairs,)
            Rows of the samples that they are compared with, one comparison after the other.
        starts : ndarray of shape (n_comparisons,)
            First sample of each comparison.
        """
        probes, templates = self.probes[first], second - len(self.probes)
        sizes = self.sizes[templates]
        ends = np.cumsum(sizes)
        samples = self.samples[
            np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.starts[templates] - ends + sizes, sizes)
        ]
        if self.never_pair is not None:
            owners = np.repeat(np.arange(len(probes)), sizes)
            kept = self.never_pair[samples] != self.never_pair[probes][owners]
            samples, sizes = samples[kept], np.bincount(owners[kept], minlength=len(probes))
        return probes, samples, np.append(0, np.cumsum(sizes)[:-1]).astype(np.int64)

    def scorer(self, score: TemplateScore) -> Score:
        """Return the function that scores comparisons, given by their rows, in blocks."""
        sizes = self.sizes

        def scores(first: Index, second: Index) -> FloatArray:
            found = np.empty(len(first))
            ends = np.cumsum(sizes[second - len(self.probes)])
            start = 0
            while start < len(first):
                limit = (ends[start - 1] if start else 0) + BLOCK
                stop = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
                found[start:stop] = score(*self.expand(first[start:stop], second[start:stop]))
                start = stop
            return found

        return scores

    def of_rows(self, values: ArrayLike | None, name: str) -> NDArray[Any] | None:
        """Return an attribute of samples as one of rows; the enrolled samples of an identity must agree on it."""
        if values is None:
            return None
        given = np.asarray(values)
        if given.shape != self.labels.shape:
            raise ValueError(f"{name} has shape {given.shape}; give one entry for each of the {len(self.labels)} samples.")
        codes = encode_groups(given, len(given), name)[self.samples]
        owners = np.repeat(np.arange(len(self.starts)), self.sizes)
        unequal = np.flatnonzero(codes != codes[self.starts][owners])
        if len(unequal):
            raise ValueError(
                f"{name} has several values for the enrolled samples of one identity (row {self.samples[unequal[0]]}); "
                "give one value per enrolled identity."
            )
        return np.append(given[self.probes], given[self.samples[self.starts]])

    def sessions(self, sessions: ArrayLike | None) -> Codes | None:
        """Return the session of each row; sessions that an identity was enrolled in together are one.

        An enrolled identity shares the effects of all of its sessions with others, so that these count as one session.
        """
        if sessions is None:
            return None
        codes = encode_groups(sessions, len(self.labels), "sessions")
        of_samples = codes[self.samples]
        firsts = np.repeat(of_samples[self.starts], self.sizes)
        n = int(codes.max()) + 1
        links = coo_array((np.ones(len(firsts)), (firsts, of_samples)), shape=(n, n))
        merged = connected_components(links, directed=False)[1].astype(np.int64)[codes]
        return np.append(merged[self.probes], merged[self.samples[self.starts]])


def fused_scorer(score: Score, fusion: ScoreFusion, times: FloatArray | None) -> TemplateScore:
    """Return the fused scores of comparisons from the scores of pairs of samples.

    Parameters
    ----------
    score : callable
        Function from two arrays of row numbers to the scores of pairs of samples.
    fusion : ScoreFusion
        How the scores of a comparison become one.
    times : ndarray of shape (n_samples,) or None
        When each sample was taken.

    Returns
    -------
    callable
        Function from probes, samples and where the samples of each probe begin to fused scores.
    """

    def scores(probes: Codes, samples: Codes, starts: Starts) -> FloatArray:
        first = np.repeat(probes, np.diff(starts, append=len(samples)))
        ages = None if times is None else (times[first] - times[samples])[None, :]
        of_pairs = score(first.astype(np.int32), samples.astype(np.int32))
        fused: FloatArray = fusion(of_pairs[None, :], starts, ages)[0]
        return fused

    return scores


def check_template_times(time: Any, n_samples: int, *, needed: bool) -> FloatArray | None:
    """Return the times of samples, if there are any; raise if they are needed and not given."""
    if time is not None:
        return check_times(time, n_samples)
    if needed:
        raise ValueError("fusion='learned' depends on the age of samples; give time=, as when it was fitted.")
    return None


def check_protocol(enrol: Any, **others: Any) -> None:
    """Raise if parameters that concern enrolled samples are given without them."""
    if enrol is None:
        for name, value in others.items():
            if value is not None:
                raise ValueError(f"{name} has no effect without enrol=; give the mask of enrolled samples, or leave it out.")


def check_no_pairs(X: Any, pairs: Any, identities: Any) -> None:
    """Raise if pairs are given, since enrolled samples are marked in labelled data."""
    if pairs is not None or identities is not None or np.ndim(X) == 3:
        raise ValueError("enrol= needs samples and their identities, not pairs; give X with one row per sample, and y.")


def _fewer_per_identity(labels: Codes, n_kept: int, rng: np.random.Generator) -> Codes:
    """Return the numbers of some probes: the same number per identity as far as there are so many, and about n_kept in all."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels)
    turn = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    by_turn = np.cumsum(np.bincount(turn))
    n_turns = max(1, int(np.searchsorted(by_turn, n_kept, side="right")))
    return np.sort(order[turn < n_turns])
