"""What a process knows of an open gallery: its settings, its model, what strangers' searches found, and its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from simtree._utils.validation import check_choice, check_integer
from simtree.evaluation._model_fusion import ModelFusion, resolve_fusion
from simtree.evaluation._templates import FUSIONS, LEARNED, TOP_MEAN
from simtree.gallery import _identities as identities
from simtree.gallery._blocks import Form, count_rows
from simtree.gallery._errors import DamagedContentError
from simtree.gallery._model import fingerprint, form_of, model_bytes, model_from_bytes
from simtree.gallery._snapshot import Snapshot
from simtree.gallery._store import Connection, get_setting, get_settings, increase, put_setting
from simtree.gallery._strangers import Size, Strangers
from simtree.metrics import FloatArray
from simtree.models import Similarity


@dataclass(frozen=True)
class Settings:
    """Parameters of a gallery that do not change.

    Parameters
    ----------
    fusion : str
        Name of how the scores with the samples of an identity become one.
    n_best : int
        Number of samples that ``"top_mean"`` averages over.
    dtype : str
        Type of samples.
    keeps_vectors : bool
        Whether original samples are kept.
    max_samples : int or None
        Maximum number of samples per identity.
    audits_searches : bool
        Whether searches are audited.
    """

    fusion: str
    n_best: int
    dtype: str
    keeps_vectors: bool
    max_samples: int | None
    audits_searches: bool

    def write(self, connection: Connection) -> None:
        """Write the settings into a new gallery."""
        named = {
            "fusion": self.fusion,
            "n_best": self.n_best,
            "dtype": self.dtype,
            "keep_vectors": int(self.keeps_vectors),
            "max_samples": self.max_samples,
            "audit_searches": int(self.audits_searches),
        }
        for name, value in named.items():
            put_setting(connection, name, value)

    @classmethod
    def read(cls, connection: Connection) -> Settings:
        """Return the settings of a gallery."""
        try:
            named = get_settings(connection)
            return cls(
                check_choice("fusion", named["fusion"], FUSIONS),
                check_integer("n_best", named["n_best"], 1),
                named["dtype"],
                bool(named["keep_vectors"]),
                named["max_samples"],
                bool(named["audit_searches"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedContentError(f"its settings cannot be read ({error})") from error


@dataclass(frozen=True)
class State:
    """A state of a gallery that was committed.

    Parameters
    ----------
    settings : Settings
        Its parameters.
    model : Similarity
        Its model.
    fingerprint : str
        Fingerprint of the model.
    model_version : int
        Raised whenever the model is written.
    form : Form
        What its rows are.
    size : Size
        How large it is.
    strangers : Strangers or None
        What searches for people who are not enrolled found.
    snapshot : Snapshot
        Its rows, if they have been asked for; otherwise those of an earlier state.
    """

    settings: Settings
    model: Similarity
    fingerprint: str
    model_version: int
    form: Form
    size: Size
    strangers: Strangers | None
    snapshot: Snapshot

    @property
    def fusion(self) -> ModelFusion:
        """How the scores with the samples of an identity become one; what was learned is in the model."""
        return resolve_fusion(self.model, self.settings.fusion, self.settings.n_best)

    @property
    def threshold(self) -> float:
        """The threshold of the model; raise if it is for other scores than those of the gallery."""
        report, settings = getattr(self.model, "threshold_report_", None), self.settings
        of_model = None if report is None or report.fusion is None else _said_of_fusion(report.fusion, report.n_best)
        own = _said_of_fusion(settings.fusion, settings.n_best)
        if of_model != own and (of_model is not None or settings.fusion == LEARNED):
            raise ValueError(
                f"the threshold of the model is for {of_model or 'pairs of samples'}, and the gallery has {own}; calibrate the "
                f"model with enrol= and {own}, and give it to re_enroll."
            )
        return float(self.model.threshold_)

    def max_rise(self, times: FloatArray) -> float:
        """Return by how much scores of searches at some times can exceed those of the calibration, because samples age."""
        return 0.0 if self.strangers is None else self.strangers.times.max_rise(self.fusion, times)

    def with_rows(self, connection: Connection) -> State:
        """Return the state with its rows; only new ones are read."""
        return replace(self, snapshot=self.snapshot.updated(connection, self.form))

    def to_dict(self) -> dict[str, Any]:
        """Return a description of the state that JSON can hold."""
        settings, strangers = self.settings, self.strangers
        calibrated = (
            {
                "max_fpir": strangers.max_fpir,
                "confidence": strangers.confidence,
                "n_strangers": len(strangers.maxima),
                "growth": strangers.growth(self.size),
            }
            if strangers is not None
            else None
        )
        return {
            "n_identities": self.size.n_identities,
            "n_samples": self.size.n_samples,
            "fusion": settings.fusion,
            "n_best": settings.n_best if settings.fusion == TOP_MEAN else None,
            "max_samples": settings.max_samples,
            "dtype": settings.dtype,
            "has_vectors": self.form.has_vectors,
            "audit_searches": settings.audits_searches,
            "model": type(self.model).__name__,
            "fingerprint": self.fingerprint,
            "calibration": calibrated,
        }


def _said_of_fusion(fusion: str, n_best: int | None) -> str:
    """Return all parameters of a fusion, as they are given in Python."""
    return f"fusion={fusion!r}" + (f", n_best={n_best}" if fusion == TOP_MEAN else "")


def read_state(connection: Connection, known: State | None) -> State:
    """Return the state of a gallery; the model is read only if it is another than that of the known state."""
    version = int(get_setting(connection, "model_version"))
    size, strangers = read_size(connection), Strangers.read(connection)
    if known is not None and known.model_version == version:
        return replace(known, size=size, strangers=strangers)
    settings = Settings.read(connection)
    mark, content = connection.execute("SELECT fingerprint, content FROM model").fetchone()
    model = model_from_bytes(content)
    form = form_of(model, settings.dtype, settings.keeps_vectors)
    same_rows = known is not None and known.fingerprint == mark
    snapshot = known.snapshot if known is not None and same_rows else Snapshot.empty(form)
    return State(settings, model, mark, version, form, size, strangers, snapshot)


def read_size(connection: Connection) -> Size:
    """Return how large a gallery is."""
    names = ("n_identities_added", "n_samples_added", "n_templates_changed")
    counters = (int(get_setting(connection, name) or 0) for name in names)
    return Size(identities.count_identities(connection), count_rows(connection), *counters)


def write_model(connection: Connection, model: Similarity) -> str:
    """Write a model into a gallery, instead of an earlier one; return its fingerprint."""
    mark = fingerprint(model)
    connection.execute("DELETE FROM model")
    connection.execute("INSERT INTO model VALUES (?, ?)", (mark, model_bytes(model)))
    increase(connection, "model_version", 1)
    return mark
