"""What all ensembles share: named members, their prepared samples side by side, and their part of a model file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from simtree._utils.members import NamedMembers
from simtree._utils.validation import check_n_jobs, count, refuse_pipeline
from simtree.io._fields import Fields
from simtree.models._base import Similarity
from simtree.models._persistence import model_from_state
from simtree.models._selection import Units, fit_arguments, groups_for
from simtree.models._table_members import common_categories, reading_again, unread
from simtree.pairs._coordinates import SamplePairs, occurring
from simtree.pairs._inputs import n_columns
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._store import mapped

# More members in a model file are treated as corruption.
MAX_ESTIMATORS = 1 << 8


class Ensemble(NamedMembers, Similarity):
    """Base class of similarities that combine the scores of several others, their members."""

    estimators: Sequence[tuple[str, Similarity]]
    estimators_: list[Similarity]
    _n_columns: list[int]
    _MEMBERS = "estimators"

    def _check_parameters(self) -> None:
        check_n_jobs(self.n_jobs)
        self._check_names("similarity")
        for name, member in self.estimators:
            refuse_pipeline(f"{name!r} of estimators", member)
            if not isinstance(member, Similarity):
                raise TypeError(f"estimators has {member!r} under {name!r}; give similarities such as SimilarityForest().")

    def _takes_missing(self) -> bool:
        return all(getattr(member, "_takes_missing", bool)() for _, member in self.estimators)

    def _table_categories(self) -> Any:
        return common_categories(self.estimators)

    def _given(self, samples: Any) -> Any:
        """Return checked samples as members take them: each reads the categories of a table again."""
        return samples if self.columns_ is None else mapped(samples, self.columns_.with_holes)

    def _members(self) -> list[tuple[str, Similarity]]:
        """Return clones of the members that take what `_given` returns."""
        return [(name, reading_again(member, self.columns_, f"estimators: {name!r}")) for name, member in self.estimators]

    def _fit_members(
        self,
        samples: NDArray[Any],
        source: PairSource,
        index: IndexPairs,
        groups: Units | None,
        X: ArrayLike,
        y: ArrayLike,
        pairs: ArrayLike | None,
        never_pair: ArrayLike | None,
    ) -> list[Any]:
        """Fit clones of the members; return the samples as each of them prepares them. ``index`` are all pairs, if given."""
        given: dict[str, Any] = {"X": X, "y": y, "pairs": pairs}
        if self.columns_ is not None:
            given = {"X": self._given(samples), **fit_arguments(source)}
        elif source.labels is not None:
            given["never_pair"] = never_pair
        elif self.preprocessor is not None:  # otherwise pass the original X, which has the feature names
            given = {"X": samples, "y": index.same, "pairs": np.column_stack([index.first, index.second])}
        members: list[Any] = [member for _, member in self._members()]
        self.estimators_ = [member.fit(**given, **groups_for(member, groups)) for member in members]
        prepared = [mapped(self._given(samples), member._read_and_prepare) for member in self.estimators_]
        self._n_columns = [columns.shape[1] for columns in prepared]
        return prepared

    def _get_members_state(self) -> list[dict[str, Any]]:
        """Return the names and the state of the members for a model file."""
        return [
            {"name": name, "model": member._get_state()}
            for (name, _), member in zip(self.estimators, self.estimators_, strict=True)
        ]

    @classmethod
    def _given_parameters(cls, fields: Fields) -> dict[str, Any]:
        """Return the fitted members as ``estimators``, from which `_set_members_state` makes clones."""
        parts = fields.parts("members", MAX_ESTIMATORS)
        return {"estimators": [(part.string("name"), model_from_state(part.part("model"))) for part in parts]}

    def _set_members_state(self, fields: Fields) -> None:
        """Restore the members from a model file."""
        self.estimators_ = [member for _, member in self.estimators]
        self.estimators = [(name, unread(clone(member), self.columns_)) for name, member in self.estimators]
        if any(member.n_features_in_ != n_columns(self) for member in self.estimators_):
            raise fields.fail("members", f"must be for samples with {count(n_columns(self), 'feature')}")
        origin = np.zeros((1, n_columns(self)))
        self._n_columns = [member._read_and_prepare(origin).shape[1] for member in self.estimators_]

    def _summary(self) -> dict[str, Any]:
        members = zip(self.estimators, self.estimators_, strict=True)
        return {"members": {name: member.to_dict() for (name, _), member in members}}

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return the prepared samples of all members, side by side."""
        given = self._given(samples)
        return np.hstack([member._read_and_prepare(given) for member in self.estimators_])

    def _member_scores(self, pairs: SamplePairs) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of each member."""
        # Restrict to the rows that occur, because a gallery may have many more rows than a block has pairs.
        (A, first), (B, second) = occurring(pairs.A, pairs.first), occurring(pairs.B, pairs.second)
        begin = 0
        for member, n_own in zip(self.estimators_, self._n_columns, strict=True):
            of_a, of_b = (np.ascontiguousarray(rows[:, begin : begin + n_own]) for rows in (A, B))
            yield member._score_pairs(SamplePairs(of_a, of_b, first, second))
            begin += n_own
