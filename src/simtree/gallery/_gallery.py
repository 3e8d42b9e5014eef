"""`Gallery`: enrolled identities in a database, and the search among them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from simtree._utils.validation import check_integer, check_real, count
from simtree.evaluation._templates import N_BEST
from simtree.gallery import _enrolment as enrolment
from simtree.gallery import _identification as identification
from simtree.gallery import _identities as identities
from simtree.gallery import _requests as requests
from simtree.gallery._address import parse_address
from simtree.gallery._answers import Candidates, Enrolment, Verifications
from simtree.gallery._audit import add_entry
from simtree.gallery._creation import checked_settings, new_gallery_of
from simtree.gallery._groups import GroupsMixin
from simtree.gallery._inputs import check_ids, check_lengths, check_times, check_where
from simtree.gallery._lookup import LookupMixin
from simtree.gallery._maintenance import TIMEOUT, MaintenanceMixin
from simtree.gallery._model import check_rows_of, fingerprint
from simtree.gallery._same_file import FileMark
from simtree.gallery._search import Search, best_identities
from simtree.gallery._session import Session, prepare_nothing
from simtree.gallery._store import get_setting
from simtree.gallery._stores import open_store, upgrade
from simtree.gallery._strangers import check_rate
from simtree.models import Similarity
from simtree.models._base import check_similarity
from simtree.pairs._labels import encode_labels


class Gallery(LookupMixin, GroupsMixin, MaintenanceMixin):
    """Enrolled identities in a database, and an exact search among them.

    A gallery is an SQLite file, or a schema of a PostgreSQL database, that holds the model, the samples of each identity and
    what was done with them. Several processes may use it at once. What `enroll` has returned from survives a crash of the
    program and of the machine, and a reader sees an enrolment as a whole or not at all.

    Parameters
    ----------
    path : str or path-like
        File of an existing gallery, or its address: ``postgresql://user@host:port/database?schema=people``. `Gallery.create`
        makes a new one.
    readonly : bool, default=False
        Whether methods that change the gallery are refused.
    timeout : float, default=30.0
        How long to wait for other processes that write, in seconds.
    model : Similarity, optional
        The model that the gallery is expected to have; an error is raised if it scores by another one.

    Attributes
    ----------
    path : Path or str
        The file, or the address without a password.
    readonly : bool
        Whether methods that change the gallery are refused.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from simtree import DistanceSimilarity, Gallery
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceSimilarity(metric="euclidean").fit(X, y)
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Gallery.create(f"{folder.name}/flowers.gallery", model) as gallery:
    ...     enrolled = gallery.enroll(["a", "a", "b"], X[[0, 1, 100]], metadata={"site": ["east", "east", "west"]})
    ...     found = gallery.identify(X[[2, 101]], k=1)
    >>> found.id
    array(['a', 'b'], dtype=object)
    >>> with Gallery.open(f"{folder.name}/flowers.gallery", readonly=True) as gallery:
    ...     gallery.identify(X[[2]], where={"site": "west"}).id
    array(['b'], dtype=object)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        readonly: bool = False,
        timeout: float = TIMEOUT,
        model: Similarity | None = None,
    ) -> None:
        check_real("timeout", timeout, 0.0, np.inf, open_high=True)
        address = parse_address(path)
        self.path: Path | str = address if isinstance(address, Path) else str(address)
        self.readonly = readonly
        self._session = Session(open_store(address, readonly=readonly, timeout=float(timeout)))
        try:
            self._mark = FileMark(address) if isinstance(address, Path) else None
            own = self.model
            if model is not None and fingerprint(check_similarity(model)) != fingerprint(own):
                raise ValueError(
                    f"{self.path} has another model ({type(own).__name__}) than the one given; leave model out, or switch "
                    "to the new one with re_enroll."
                )
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        model: Similarity,
        *,
        fusion: str = "max",
        n_best: int = N_BEST,
        max_samples: int | None = None,
        keep_vectors: bool = True,
        dtype: str = "float64",
        audit_searches: bool = False,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Make a new, empty gallery, and open it.

        Parameters
        ----------
        path : str or path-like
            File to make, which must not exist, or an address in PostgreSQL, whose schema must not exist or be empty.
        model : Similarity
            Fitted model, which is stored in the gallery.
        fusion : {"max", "mean", "top_mean", "likelihood_ratio", "learned"}, default="max"
            How the scores with the samples of an identity become one: the best, the mean, the mean of the best few, the closed
            form of a `GaussianSimilarity`, or what the model has learned with `Similarity.fit_fusion`, which may depend on the
            age of samples.
        n_best : int, default=3
            Number of samples that ``"top_mean"`` averages over.
        max_samples : int, optional
            Maximum number of samples per identity; when more are enrolled, the oldest are dropped.
        keep_vectors : bool, default=True
            Whether to keep the samples as they were given beside what the model computes from them. Without them the gallery
            cannot change to another model, and takes less space; a model without a representation needs them anyway.
        dtype : {"float64", "float32"}, default="float64"
            Type to which samples are converted. float32 takes half the space and rounds samples to seven digits.
        audit_searches : bool, default=False
            Whether the audit also records searches and other comparisons of samples with people who are enrolled: `identify`,
            `verify`, `explain`, `cluster` and `prefilter_recall`.
        timeout : float, default=30.0
            How long to wait for other processes that write, in seconds.

        Returns
        -------
        Gallery
            The open gallery.
        """
        check_real("timeout", timeout, 0.0, np.inf, open_high=True)
        settings = checked_settings(
            model,
            fusion=fusion,
            n_best=n_best,
            max_samples=max_samples,
            keep_vectors=keep_vectors,
            dtype=dtype,
            audit_searches=audit_searches,
        )
        with new_gallery_of(parse_address(path), model, settings, timeout):
            pass
        return cls(path, timeout=timeout)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        readonly: bool = False,
        timeout: float = TIMEOUT,
        model: Similarity | None = None,
    ) -> Self:
        """Open an existing gallery.

        Parameters
        ----------
        path : str or path-like
            File or address of the gallery.
        readonly : bool, default=False
            Whether methods that change the gallery are refused.
        timeout : float, default=30.0
            How long to wait for other processes that write, in seconds.
        model : Similarity, optional
            The model that the gallery is expected to have.

        Returns
        -------
        Gallery
            The open gallery.
        """
        return cls(path, readonly=readonly, timeout=timeout, model=model)

    @staticmethod
    def upgrade(
        path: str | os.PathLike[str], *, backup: str | os.PathLike[str] | None = None, timeout: float = TIMEOUT
    ) -> Path | None:
        """Upgrade a gallery that an older simtree has written, after a backup.

        Programs with an older simtree cannot use it afterwards.

        Parameters
        ----------
        path : str or path-like
            File or address of the gallery.
        backup : str or path-like, optional
            File to copy it to first, which must not exist; by default a name beside it that ends in its old version.
        timeout : float, default=30.0
            How long to wait for other processes that write, in seconds.

        Returns
        -------
        Path or None
            The backup; None if the gallery has the present version already, and nothing was done.
        """
        check_real("timeout", timeout, 0.0, np.inf, open_high=True)
        return upgrade(parse_address(path), None if backup is None else Path(backup), float(timeout))

    def close(self) -> None:
        """Close the file; a gallery is also closed at the end of a ``with`` block."""
        self._prefilter = None
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._session.store.is_closed:
            return f"<closed gallery {self.path}>"
        return f"<gallery {self.path}: {count(len(self), 'identity', 'identities')}>"

    def __len__(self) -> int:
        """Return the number of identities."""
        with self._session.reading() as (connection, _):
            return identities.count_identities(connection)

    def __bool__(self) -> bool:
        """Return True: an empty gallery is a gallery."""
        return True

    def __contains__(self, id: object) -> bool:
        with self._session.reading() as (connection, _):
            return bool(identities.find(connection, check_ids([id])))

    @property
    def model(self) -> Similarity:
        """The model of the gallery."""
        return self._session.state().model

    @property
    def fingerprint(self) -> str:
        """Hash of everything that determines scores."""
        return self._session.state().fingerprint

    def ids(self) -> list[str]:
        """Return the ids of all identities, in the order in which they were first enrolled.

        Returns
        -------
        list of str
            The ids.
        """
        with self._session.reading() as (connection, _):
            return identities.all_ids(connection)

    def enroll(
        self,
        ids: Any,
        X: ArrayLike,
        *,
        metadata: Any = None,
        time: Any = None,
        on_duplicate: str = "ignore",
        request: str | None = None,
    ) -> Enrolment:
        """Enrol samples: all of them when this returns, or none if it raises.

        Parameters
        ----------
        ids : array-like of shape (n_samples,)
            Identity of each sample, a string or an integer (which becomes its digits). An identity may have several samples,
            and more of them later.
        X : array-like of shape (n_samples, n_features)
            The samples.
        metadata : data frame or dict of columns, optional
            Values to filter by in `identify`, one per sample; the samples of an identity must agree. A value replaces the one
            that the identity had before.
        time : datetime or number or array-like of shape (n_samples,), optional
            When the samples were taken; numbers are seconds since 1970. Now, if None.
        on_duplicate : {"ignore", "warn", "raise"}, default="ignore"
            What to do if a sample matches another identity, that is if its score reaches the threshold of `calibrate`, or that
            of the model if the gallery is not calibrated. ``"raise"`` enrols nothing then.
        request : str, optional
            Name of this enrolment, such as a random UUID: if one of this name was done already, nothing is enrolled, and what
            it did is returned. So an enrolment whose answer was lost can be repeated. Another one of the same name is refused.

        Returns
        -------
        Enrolment
            What was done, with the duplicates.
        """
        given = enrolment.Given.checked(ids, X, metadata, time, on_duplicate)
        if request is not None:
            requests.check_request(request)
        with self._session.changing(given.prepared) as (connection, state, samples):
            if request is not None:
                known = enrolment.find_repeated(connection, request, samples, with_times=time is not None)
                if known is not None:
                    return known
            done = enrolment.enroll_given(connection, state, given, samples)
            if request is not None:
                enrolment.note_request(connection, request, samples, done, with_times=time is not None)
        enrolment.warn_of(done)
        return done

    def remove(self, ids: Any) -> int:
        """Remove identities, with their samples, metadata and the keys of their hashes in the audit.

        Nobody can find them any more when this returns. Their bytes leave the file and its log with `compact`.

        Parameters
        ----------
        ids : str, int or array-like
            Identities, all of which must be enrolled.

        Returns
        -------
        int
            Number of samples that were removed.
        """
        names = check_ids(ids)
        self._prefilter = None
        with self._session.changing(prepare_nothing) as (connection, state, _):
            return enrolment.remove(connection, state, names)

    def identify(
        self,
        queries: ArrayLike,
        *,
        k: int = 10,
        where: Mapping[str, Any] | None = None,
        max_fpir: float | None = None,
        time: Any = None,
        n_candidates: int | None = None,
        keep_below: bool = False,
    ) -> Candidates:
        """Return the identities that are most similar to each query.

        The search is exact: scores are those of `Similarity.pair_score`, fused over the samples of each identity. Ties are in
        the order of first enrolment.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_features)
            Samples to search for.
        k : int, default=10
            Maximum number of candidates per query.
        where : dict, optional
            Search only identities whose metadata have this value, or one of these values, for each name.
        max_fpir : float, optional
            Return only candidates above the threshold that keeps the share of strangers with any candidate below this rate,
            with the confidence of `calibrate`. A query may then have no candidate.
        time : datetime or number or array-like of shape (n_queries,), optional
            When the queries were taken, for a learned fusion that depends on age; now, if None.
        n_candidates : int, optional
            Approximate search: FAISS (``simtree[search]``) proposes this many samples per query by their Euclidean distance,
            and only the identities of these are scored. Their scores are exact; `prefilter_recall` tells how many of the best
            are missed. With ``where`` the search stays exact. By default it is exact.
        keep_below : bool, default=False
            Whether to return candidates below that threshold too, for people who look at them.

        Returns
        -------
        Candidates
            Table of candidates; ``to_frame()`` makes a data frame of it.
        """
        check_integer("k", k, 1)
        if max_fpir is not None:
            check_rate(max_fpir)
        if n_candidates is not None:
            check_integer("n_candidates", n_candidates, 1)
        search = best_identities
        if n_candidates is not None and not where:
            search = partial(self._best_proposed, int(n_candidates))
        return self._identify(queries, int(k), where, max_fpir, time, keep_below, search)

    def _identify(
        self,
        queries: ArrayLike,
        k: int,
        where: Mapping[str, Any] | None,
        max_fpir: float | None,
        time: Any,
        keep_below: bool,
        search: Search,
    ) -> Candidates:
        """Return what `identify` does, with a search of one's own for the best identities."""
        allowed = check_where(where)
        with self._session.searching() as (connection, state):
            chosen = identities.select(connection, allowed) if allowed else None
        if not len(state.snapshot.templates):
            raise ValueError(f"{self.path} is empty; enrol somebody first.")
        prepared = state.model._prepare(check_rows_of(state.model, state.form, queries))
        times = check_times(time, len(prepared))
        answer = identification.identify(state, prepared, times, k, max_fpir, chosen, search, keep_below)
        self._session.audit_search(state, "identify", answer.id, answer.n_queries)
        return answer

    def verify(self, ids: Any, X: ArrayLike, *, time: Any = None) -> Verifications:
        """Decide whether each sample is of the identity that it claims to be of.

        The threshold is that of the model inside the gallery. Choose it with ``calibrate_threshold(..., enrol=, fusion=)``, for
        the fusion of the gallery: a threshold for pairs of samples is exceeded by a stranger up to m times as often with fusion
        ``"max"`` and m samples of an identity, and is refused with ``"learned"``.

        Parameters
        ----------
        ids : array-like of shape (n_samples,)
            Claimed identities, all of which must be enrolled.
        X : array-like of shape (n_samples, n_features)
            The samples.
        time : datetime or number or array-like of shape (n_samples,), optional
            When the samples were taken, for a learned fusion that depends on age; now, if None.

        Returns
        -------
        Verifications
            Table of scores, thresholds and decisions.
        """
        names = check_ids(ids)
        with self._session.searching() as (connection, state):
            found = identities.require(connection, names)
        samples = check_rows_of(state.model, state.form, X)
        check_lengths(names, len(samples))
        numbers = np.array([found[name].number for name in names], dtype=np.int64)
        times = check_times(time, len(samples))
        answer = identification.verify(state, state.model._prepare(samples), times, numbers)
        self._session.audit_search(state, "verify", answer.id, len(answer))
        return answer

    def calibrate(
        self, X: ArrayLike, y: ArrayLike, *, max_fpir: float = 0.05, confidence: float = 0.95, time: Any = None
    ) -> str:
        """Search for people who are not enrolled, so that `identify` can keep a false positive identification rate (FPIR).

        The bound is free of assumptions about scores: it uses one maximum per person, over all samples of the person and all
        identities. It takes 59 people for a rate of 5 % and 299 for 1 %. When the gallery grows, the allowed rate shrinks in
        proportion, which assumes that those enrolled later are like those before, until the gallery is calibrated again.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples of people who are not enrolled.
        y : array-like of shape (n_samples,)
            Who they are of.
        max_fpir : float, default=0.05
            Rate that these people must suffice for. Other rates can be asked for in `identify`.
        confidence : float, default=0.95
            Confidence level.
        time : datetime or number or array-like of shape (n_samples,), optional
            When the samples were taken, for a learned fusion that depends on age; now, if None.

        Returns
        -------
        str
            What is promised.
        """
        check_rate(max_fpir)
        check_real("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
        self._session.store.check_writable()
        codes = encode_labels(y)
        labels = {str(label) for label in np.asarray(y).tolist()}
        while True:
            with self._session.searching() as (connection, state):
                identities.check_strangers(connection, labels)
            samples = check_rows_of(state.model, state.form, X)
            if len(codes) != len(samples):
                raise ValueError(f"y has {len(codes):,} entries for {count(len(samples), 'sample')} of X; give one each.")
            times = check_times(time, len(samples))
            strangers = identification.search_strangers(
                state, state.model._prepare(samples), times, codes, float(max_fpir), float(confidence)
            )
            with self._session.store.writing() as connection:
                if get_setting(connection, "model_version") != state.model_version:
                    continue  # all samples were prepared by another model meanwhile
                strangers.write(connection)
                add_entry(connection, "calibrate", state.fingerprint, n_samples=len(samples))
                self._session.forget_version()
            return strangers.promise(max_fpir, state.size)
