"""``simtree enroll`` and ``simtree remove``: identities come into a gallery, and leave it."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from simtree._utils.validation import count
from simtree.cli._common import Data, Json, Label, friendly_errors, say, show, show_json, waiting_for
from simtree.cli._galleries import GalleryAddress, ids_of, opened_gallery, read_for_enrolment, stream_rows, times_of
from simtree.cli._models import load_model
from simtree.cli._protocol import FUSION_NAMES, FusionName
from simtree.cli._reading import check_there
from simtree.gallery import Enrolment, Gallery
from simtree.gallery._address import parse_address, shown
from simtree.gallery._creation import checked_settings, create_enrolled
from simtree.gallery._maintenance import TIMEOUT
from simtree.gallery._stores import exists
from simtree.models import Similarity


class OnDuplicate(enum.StrEnum):
    """What to do if a sample matches another identity."""

    ignore = "ignore"
    warn = "warn"
    refuse = "raise"


def enroll(
    gallery: Annotated[
        str,
        typer.Argument(
            metavar="GALLERY",
            help="Gallery file, or an address postgresql://user@host/database?schema=name; a new one is made with --model.",
            show_default=False,
        ),
    ],
    data: Data,
    label: Label,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL", help="Model file for a new gallery, which then holds it.")
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="COLS", help="Columns to filter by in `simtree identify --where`, with commas."),
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="COL", help="Column with the time of each sample; now by default.")
    ] = None,
    on_duplicate: Annotated[
        OnDuplicate,
        typer.Option("--on-duplicate", metavar="ignore/warn/raise", help="What to do if a row matches another identity."),
    ] = OnDuplicate.ignore,
    fusion: Annotated[
        FusionName | None,
        typer.Option(
            "--fusion",
            metavar=FUSION_NAMES,
            help="For a new gallery: how the scores with several samples of an identity become one; max by default.",
        ),
    ] = None,
    n_best: Annotated[
        int | None,
        typer.Option(
            "--n-best", metavar="N", min=1, help="For a new gallery with --fusion top_mean: how many scores are averaged; 3."
        ),
    ] = None,
    max_samples: Annotated[
        int | None,
        typer.Option("--max-samples", metavar="N", min=1, help="For a new gallery: keep only the newest N rows per identity."),
    ] = None,
    no_vectors: Annotated[
        bool, typer.Option("--no-vectors", help="For a new gallery: do not keep samples; it cannot change its model then.")
    ] = False,
    float32: Annotated[
        bool, typer.Option("--float32", help="For a new gallery: round samples to seven digits, in half the space.")
    ] = False,
    audit_searches: Annotated[
        bool, typer.Option("--audit-searches", help="For a new gallery: the audit also records searches.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Enrol the rows of a table: all of them, or none if something is wrong.

    What was enrolled survives a crash of the program and of the machine. Other programs may search the gallery meanwhile.
    """
    options = {
        "fusion": None if fusion is None else fusion.value,
        "n_best": n_best,
        "max_samples": max_samples,
        "keep_vectors": False if no_vectors else None,
        "dtype": "float32" if float32 else None,
        "audit_searches": audit_searches or None,
    }
    with friendly_errors(interrupted="Interrupted. Nothing was enrolled."):
        is_new = not exists(parse_address(gallery), TIMEOUT)
        check_there(data)
        given = {name: value for name, value in options.items() if value is not None}
        source = Source(data, label, metadata or [], time, on_duplicate.value)
        done = (_made if is_new else _added)(gallery, model, given, source)
        with opened_gallery(gallery, readonly=True) as opened:
            size = opened.to_dict()
    result = {
        "gallery": shown(gallery),
        "data": str(data),
        "new_gallery": is_new,
        **{name: value for name, value in vars(done).items() if name != "duplicates"},
        "duplicates": [duplicate._asdict() for duplicate in done.duplicates],
        "n_identities_in_gallery": size["n_identities"],
        "n_samples_in_gallery": size["n_samples"],
    }
    show_json(result) if as_json else show(_sentence(result))


class Source(NamedTuple):
    """A table to enrol from."""

    data: Path
    label: str
    metadata: list[str]
    time: str | None
    on_duplicate: str

    def read(self, model: Similarity, dtype: str) -> dict[str, Any]:
        """Return what `Gallery.enroll` takes."""
        with waiting_for("reading"):
            found, names, X = read_for_enrolment(self.data, model, dtype, self.label, self.time, self.metadata)
        return {
            "ids": ids_of(found, self.label),
            "X": X,
            "metadata": {name: found.frame[name].tolist() for name in names} or None,
            "time": None if self.time is None else times_of(found, self.time),
            "on_duplicate": self.on_duplicate,
        }


def _made(path: str, model: Path | None, options: dict[str, Any], source: Source) -> Enrolment:
    """Make a gallery together with its first samples, so that it is there with them or not at all."""
    if model is None:
        raise ValueError(f"there is no gallery {shown(path)}; give --model MODEL to make it, or the name of one that exists.")
    learned = load_model(model)
    settings = checked_settings(learned, **options)
    given = source.read(learned, settings.dtype)
    with _enrolling():
        return create_enrolled(parse_address(path), learned, settings, **given, timeout=TIMEOUT)


def _added(path: str, model: Path | None, options: dict[str, Any], source: Source) -> Enrolment:
    """Enrol in a gallery that exists."""
    if options:
        raise ValueError(
            f"{shown(path)} exists, and --fusion, --n-best, --max-samples, --no-vectors, --float32 and --audit-searches are "
            "for a new gallery; leave them out."
        )
    with opened_gallery(path) if model is None else Gallery.open(path, model=load_model(model)) as gallery:
        given = source.read(gallery.model, gallery.to_dict()["dtype"])
        with _enrolling():
            return gallery.enroll(**given)


@contextmanager
def _enrolling() -> Iterator[None]:
    """Show that something is being enrolled, and print warnings afterwards."""
    with waiting_for("enrolling"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        say(f"Warning: {warning.message}")


def _sentence(result: dict[str, Any]) -> str:
    of_whom = count(result["n_identities"], "identity", "identities")
    dropped = f" Dropped: {count(result['n_dropped'], 'older sample')}." if result["n_dropped"] else ""
    return (
        f"Enrolled: {count(result['n_samples'], 'sample')} of {of_whom}, {result['n_new']:,} of them new.{dropped} "
        f"{result['gallery']} holds {count(result['n_samples_in_gallery'], 'sample')} of "
        f"{count(result['n_identities_in_gallery'], 'identity', 'identities')}."
    )


def remove(
    gallery: GalleryAddress,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="Identities to remove.", show_default=False)
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="TABLE", help="Table with identities to remove; - for CSV from standard input."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="COL", help="With --from: column with the identities.")
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Also write the file anew, so that nothing of them is left in it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove identities with all their samples and metadata; nobody can find them any more.

    Their bytes leave the file with --compact, or later with `simtree gallery compact`.
    """
    interrupted = "Interrupted. Nothing was removed, or everything and not yet erased."
    if (source is None) != (label is None):
        raise typer.BadParameter("--from TABLE and --label COL go together; give both, or neither.")
    if not ids and source is None:
        raise typer.BadParameter("give the identities to remove, or --from TABLE and --label COL.")
    with friendly_errors(interrupted), opened_gallery(gallery) as opened:
        names = list(dict.fromkeys([*(ids or []), *_listed(source, label)]))
        n_samples = opened.remove(names)
        if compact:
            with waiting_for("erasing"):
                opened.compact()
        n_left, not_erased = len(opened), opened.to_dict()["n_samples_not_erased"]
    result = {
        "gallery": shown(gallery),
        "n_removed": len(names),
        "n_samples": n_samples,
        "erased": not not_erased,
        "n_identities_in_gallery": n_left,
    }
    if as_json:
        show_json(result)
        return
    name = result["gallery"]
    erased = "Their bytes are erased." if result["erased"] else f"Not yet erased: run simtree gallery compact {name}"
    show(
        f"Removed: {count(len(names), 'identity', 'identities')} with {count(n_samples, 'sample')}. {name} holds "
        f"{count(n_left, 'identity', 'identities')}. {erased}"
    )


def _listed(source: Path | None, label: str | None) -> Iterator[str]:
    """Yield the identities in a column of a table."""
    if source is not None and label is not None:
        for part in stream_rows(source, as_text=True):
            yield from ids_of(part, label)
