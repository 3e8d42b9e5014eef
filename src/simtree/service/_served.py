"""The gallery that a service answers from, and the answers as JSON can hold them."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from simtree.gallery import Candidates, Gallery, GalleryError, NotEnrolledError
from simtree.models import Similarity
from simtree.models._description import input_columns
from simtree.pairs._cells import DATE, NUMBER
from simtree.service._refusals import RefusedError
from simtree.service._warm_up import compile_searches

# What a sample has per feature.
Cell = float | str | bool | None
# Features of an explanation that are listed; the others are summed up.
N_EXPLAINED = 15

logger = logging.getLogger("simtree.service")


class Served:
    """A gallery that is open for a service.

    It is open twice: who searches does not wait for the disk that an enrolment waits for.

    Parameters
    ----------
    address : str or Path
        The gallery.
    n_jobs : int, default=1
        Number of parallel jobs per search; several searches run at once anyway.
    """

    def __init__(self, address: str | Path, n_jobs: int = 1) -> None:
        self.n_jobs = n_jobs
        self._writer = Gallery.open(address)
        # What messages call it; never with a password.
        self.path = str(self._writer.path)
        try:
            self._reader = Gallery.open(address, readonly=not self._writer.to_dict()["audit_searches"])
        except BaseException:
            self._writer.close()
            raise
        self._is_warm = threading.Event()
        self._problem: str | None = None

    def close(self) -> None:
        """Close the gallery."""
        self._reader.close()
        self._writer.close()

    def warm_up(self) -> None:
        """Load the gallery into memory and compile what searches need; a problem is told to those who ask."""
        try:
            compile_searches(self._reader, self._model())
            self._is_warm.set()
        except Exception as error:
            logger.error("the gallery cannot be loaded: %s", error)
            self._problem = str(error).replace(self.path, "the gallery")

    def check(self) -> None:
        """Raise unless questions can be answered now."""
        if self._problem is not None:
            raise GalleryError(self._problem)
        if not self._is_warm.is_set():
            raise RefusedError(503, "the service is starting; ask again when /readyz says so.", retry_after=1)
        self._reader.check()

    def is_ready(self) -> bool:
        """Return whether questions can be answered now."""
        try:
            self.check()
        except Exception:  # of whatever kind: a question would not be answered
            return False
        return True

    def _model(self) -> Similarity:
        """Return the present model, with the number of jobs of the service."""
        model = self._reader.model
        model.n_jobs = self.n_jobs
        return model

    def describe(self) -> dict[str, Any]:
        """Return what a client must know of the gallery."""
        model, described = self._model(), self._reader.to_dict()
        names = getattr(model, "feature_names_in_", None)
        kinds = [NUMBER] * model.n_features_in_ if model.columns_ is None else [own.kind for own in model.columns_.columns]
        return {
            "features": [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names],
            "kinds": kinds,
            "takes_missing": model._takes_missing(),
            "has_names": names is not None,
            "threshold": number(model.threshold_),
            "can_explain": hasattr(model, "explain_pair") and described["has_vectors"],
            "metadata": described["metadata"],
            "calibration": described["calibration"],
            "n_samples": described["n_samples"],
            "model": described["model"],
            "fingerprint": described["fingerprint"],
            "n_identities": described["n_identities"],
        }

    def verify(self, ids: Sequence[str], samples: Sequence[Sequence[Cell]]) -> dict[str, Any]:
        """Decide about claims."""
        found = self._reader.verify(list(ids), _matrix(self._model(), samples))
        results = [
            {
                "id": str(found.id[row]),
                "score": number(found.score[row]),
                "threshold": number(found.threshold[row]),
                "decision": "accepted" if found.accepted[row] else "rejected",
                "probability": number(found.probability[row]),
            }
            for row in range(len(found))
        ]
        return {
            "results": results,
            "expected_fpir": number(found.expected_fpir),
            "fingerprint": found.fingerprint,
            "n_identities": found.n_enrolled,
        }

    def identify(
        self, samples: Sequence[Sequence[Cell]], k: int, max_fpir: float | None, where: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Search for the best identities.

        Without a rate, that of the calibration decides; if the gallery is not calibrated, or has outgrown its calibration,
        there is no decision.
        """
        X = _matrix(self._model(), samples)
        rate = self._reader.max_fpir if max_fpir is None else max_fpir
        promise = "no decision: the gallery is not calibrated for identities that are not enrolled."
        if rate is not None:
            try:
                found = self._reader.identify(X, k=k, where=where, max_fpir=rate, keep_below=True)
                return _ranked(found, found.promise or "")
            except ValueError as error:
                if max_fpir is not None or isinstance(error, GalleryError):
                    raise
                promise = f"no decision: {error}"
        return _ranked(self._reader.identify(X, k=k, where=where), promise)

    def explain(self, id: str, sample: Sequence[Cell]) -> dict[str, Any]:
        """Explain a score by the contributions of features, without the values of the enrolled sample.

        The decision is that of `verify`, by the score with all samples of the identity; there is none if the threshold of the
        model is for scores that become one in another way.
        """
        model = self._model()
        found = self._reader.explain(id, _matrix(model, [sample])[0])
        order = found.order()
        listed, rest = order[:N_EXPLAINED], order[N_EXPLAINED:]
        columns = input_columns(model)
        try:
            decided = self.verify([id], [sample])
        except (GalleryError, NotEnrolledError):
            raise
        except ValueError:
            decided = {
                "results": [{"score": None, "threshold": None, "decision": "undecided"}],
                "expected_fpir": None,
                **self.size(),
            }
        (result,) = decided["results"]
        return {
            "id": id,
            "score": result["score"],
            "threshold": result["threshold"],
            "decision": result["decision"],
            "explained_score": number(found.score),
            "base": number(found.base),
            "contributions": [
                {
                    "feature": found.feature_names[j],
                    "value": _value(sample, columns, j),
                    "contribution": number(found.contributions[j]),
                }
                for j in listed.tolist()
            ],
            "n_others": len(rest),
            "others": number(found.contributions[rest].sum()),
            "expected_fpir": decided["expected_fpir"],
            "fingerprint": decided["fingerprint"],
            "n_identities": decided["n_identities"],
        }

    def subjects(self, prefix: str, after: str, limit: int) -> dict[str, Any]:
        """List ids."""
        found = self._reader.search_ids(prefix, after=after, limit=limit)
        return {"ids": found, "next": found[-1] if len(found) == limit else None, **self.size()}

    def subject(self, id: str) -> dict[str, Any]:
        """Say what is enrolled of an identity; its samples are not shown."""
        found = self._reader.subject(id)
        times = [f"{time}Z" for time in found.times.astype(str).tolist()]
        return {
            "id": found.id,
            "n_samples": found.n_samples,
            "first": times[0] if times else None,
            "last": times[-1] if times else None,
            "metadata": found.metadata,
            "hash": found.hash,
            **self.size(),
        }

    def enrol(
        self,
        id: str,
        samples: Sequence[Sequence[Cell]],
        *,
        metadata: Mapping[str, Any] | None,
        time: datetime | None,
        on_duplicate: str,
        request: str,
    ) -> dict[str, Any]:
        """Enrol samples of an identity, once per request."""
        X = _matrix(self._model(), samples)
        columns = {name: [value] * len(X) for name, value in metadata.items()} if metadata else None
        how = {"report": "warn"}.get(on_duplicate, on_duplicate)
        done = self._writer.enroll([id] * len(X), X, metadata=columns, time=time, on_duplicate=how, request=request)
        return {
            "id": id,
            "decision": "enrolled",
            "n_samples": done.n_samples,
            "is_new": bool(done.n_new),
            "n_dropped": done.n_dropped,
            "is_repeated": done.is_repeated,
            "duplicates": [{"row": d.row, "other": d.other, "score": number(d.score)} for d in done.duplicates],
            **self.size(),
        }

    def remove(self, id: str) -> dict[str, Any]:
        """Remove an identity."""
        n_samples = self._writer.remove(id)
        return {"id": id, "decision": "removed", "n_samples": n_samples, **self.size()}

    def size(self) -> dict[str, Any]:
        """Return the number of identities, and the fingerprint of the model."""
        return {"n_identities": len(self._reader), "fingerprint": self._reader.fingerprint}

    def hashes(self, ids: Sequence[str]) -> list[str]:
        """Return what stands for identities in the audit."""
        return self._reader.hashes(list(dict.fromkeys(ids)))


def number(value: Any) -> float | None:
    """Return a number as JSON can hold it: None if it is infinite or missing."""
    return float(value) if math.isfinite(value) else None


def _value(sample: Sequence[Cell], columns: Sequence[int | None] | None, feature: int) -> Cell:
    """Return the value of a feature of an explanation in a sample; None if a representation made it of others."""
    place = None if columns is None else columns[feature]
    value = None if place is None else sample[place]
    return number(value) if isinstance(value, float) else value


def _matrix(model: Similarity, samples: Sequence[Sequence[Cell]]) -> Any:
    """Return samples as an array that the model takes, NaN or None where a value is missing."""
    if len({len(sample) for sample in samples}) > 1:
        raise ValueError("the samples have different numbers of values; give one per feature.")
    columns = getattr(model, "columns_", None)
    if columns is None:
        odd = next((cell for sample in samples for cell in sample if isinstance(cell, str | bool)), None)
        if odd is not None:
            raise ValueError(f"a sample has the value {odd!r:.60}, but the model was fitted on numbers; give numbers.")
        return np.asarray(samples, dtype=np.float64)
    cells = np.array(samples, dtype=object)
    for column in range(min(len(columns.columns), cells.shape[1])):
        if columns.columns[column].kind == DATE:
            cells[:, column] = [_date(cell) for cell in cells[:, column]]
    return cells


def _date(cell: Cell) -> Any:
    if not isinstance(cell, str):
        return cell
    try:
        return datetime.fromisoformat(cell)
    except ValueError:
        raise ValueError(f"a sample has the value {cell!r:.60} for a date; write it as 2020-01-31.") from None


def _ranked(found: Candidates, promise: str) -> dict[str, Any]:
    """Return the candidates of each query, and what was decided about it."""
    results: list[dict[str, Any]] = [{"candidates": []} for _ in range(found.n_queries)]
    for row in range(len(found)):
        score = float(found.score[row])
        results[found.query[row]]["candidates"].append(
            {
                "rank": int(found.rank[row]),
                "id": str(found.id[row]),
                "score": number(score),
                "decision": _decision(found, score, "candidate", "below"),
                "probability": number(found.probability[row]),
                "expected_false_matches": number(found.expected_false_matches[row]),
            }
        )
    for result in results:
        best = max((candidate["score"] for candidate in result["candidates"]), default=-math.inf)
        result["decision"] = _decision(found, best, "candidate", "unknown")
    return {
        "results": results,
        "threshold": None if found.threshold is None else number(found.threshold),
        "promise": promise,
        "expected_fpir": number(found.expected_fpir),
        "n_searched": found.n_identities,
        "fingerprint": found.fingerprint,
        "n_identities": found.n_enrolled,
    }


def _decision(found: Candidates, score: float | None, above: str, below: str) -> str:
    if found.threshold is None:
        return "undecided"
    return above if score is not None and score >= found.threshold else below
