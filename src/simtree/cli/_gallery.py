"""``simtree gallery``: look at a gallery, calibrate it for strangers, and look after its store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from simtree._utils.validation import count
from simtree.cli._common import (
    Confidence,
    Data,
    Jobs,
    Json,
    Label,
    Model,
    file_size,
    friendly_errors,
    opened_output,
    scoring_bar,
    show,
    show_json,
    table,
    waiting_for,
)
from simtree.cli._galleries import (
    GalleryAddress,
    Out,
    Time,
    check_gallery,
    gallery_samples,
    ids_of,
    opened_gallery,
    read_rows,
    times_of,
)
from simtree.cli._models import load_model, parallel_jobs
from simtree.gallery import Gallery
from simtree.gallery._address import shown

app = typer.Typer(
    help="Look at a gallery, calibrate it for strangers, and look after its file or schema.", no_args_is_help=True
)


@app.command("show")
def show_gallery(gallery: GalleryAddress, as_json: Json = False) -> None:
    """Show what is in a gallery: its size, its parameters, its model and what is promised about strangers."""
    with friendly_errors(), opened_gallery(gallery, readonly=True) as opened:
        described = opened.to_dict()
    show_json(described) if as_json else show(_rows(described))


def _rows(described: dict[str, Any]) -> Any:
    rows = table(f"{described['gallery']}: {file_size(described['bytes'])}", "property", "value")
    rows.add_row("identities", f"{described['n_identities']:,}")
    rows.add_row("samples", f"{described['n_samples']:,}, as {described['dtype']}")
    if described["max_samples"] is not None:
        rows.add_row("samples per identity", f"at most {described['max_samples']:,}, the newest")
    best = f" of {described['n_best']}" if described["n_best"] else ""
    rows.add_row("fusion", f"{described['fusion']}{best}")
    rows.add_row("metadata", ", ".join(described["metadata"]) or "none")
    rows.add_row("model", f"{described['model']}, fingerprint {described['fingerprint'][:12]}")
    rows.add_row("other models", "possible" if described["has_vectors"] else "impossible: the samples were not kept")
    calibration = described["calibration"]
    if calibration is None:
        rows.add_row("strangers", "not calibrated; see `simtree gallery calibrate`")
    else:
        grown = f"; it has grown {calibration['growth']:.3g}-fold since" if calibration["growth"] > 1.0 else ""
        identities = count(calibration["n_strangers"], "identity", "identities")
        rows.add_row("strangers", f"calibrated for FPIR <= {calibration['max_fpir']:g} with {identities}{grown}")
    left = described["n_samples_not_erased"]
    rows.add_row("not yet erased", f"{count(left, 'sample')}; run `simtree gallery compact`" if left else "nothing")
    rows.add_row("searches are audited", "yes" if described["audit_searches"] else "no")
    return rows


@app.command("calibrate")
def calibrate(
    gallery: GalleryAddress,
    data: Data,
    label: Label,
    max_fpir: Annotated[
        float,
        typer.Option("--max-fpir", metavar="RATE", help="Highest share of strangers who may have a candidate."),
    ] = 0.05,
    confidence: Confidence = 0.95,
    time: Time = None,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Search for people who are not enrolled, so that `simtree identify --max-fpir` can say "unknown".

    It takes 59 people for a rate of 5 % and 299 for 1 %; with fewer, nothing is written, and the message says how many are
    needed. When the gallery grows, the allowed rate shrinks in proportion until it is calibrated again.
    """
    with (
        friendly_errors(interrupted="Interrupted. The gallery was not calibrated."),
        opened_gallery(gallery) as opened,
        parallel_jobs(opened.model, n_jobs),
    ):
        found = read_rows(data, label, opened.model)
        X, taken = gallery_samples(opened, found, [label, time]), None if time is None else times_of(found, time)
        with scoring_bar("searching", None):
            promise = opened.calibrate(X, ids_of(found, label), max_fpir=max_fpir, confidence=confidence, time=taken)
        described = opened.to_dict()
    result = {"gallery": shown(gallery), "data": str(data), "promise": promise, **described["calibration"]}
    show_json(result) if as_json else show(f"Calibrated: {promise}.")


@app.command("backup")
def backup(
    gallery: GalleryAddress,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="File or address to make, which must not exist.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Copy a gallery to a new file or PostgreSQL address, while others may go on using it.

    Other ways to copy a file lose what is in its log. A gallery that has outgrown its file moves to PostgreSQL in this way.
    """
    with friendly_errors(), opened_gallery(gallery, readonly=True) as opened:
        with waiting_for("copying"):
            opened.backup(target)
        with opened_gallery(target, readonly=True) as copy:
            n_bytes = copy.to_dict()["bytes"]
    result = {"gallery": shown(gallery), "backup": shown(target), "bytes": n_bytes}
    show_json(result) if as_json else show(f"Written: {shown(target)}, {file_size(n_bytes)}")


@app.command("upgrade")
def upgrade(
    gallery: GalleryAddress,
    backup: Annotated[
        Path | None,
        typer.Option(
            "--backup", metavar="FILE", help="File to copy it to first; by default a name beside it with its version."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Upgrade a gallery that an older simtree has written, after a backup; older programs cannot use it afterwards."""
    with friendly_errors(interrupted="Interrupted. The gallery was not upgraded."):
        check_gallery(gallery)
        with waiting_for("upgrading"):
            copy = Gallery.upgrade(gallery, backup=backup)
    result = {"gallery": shown(gallery), "upgraded": copy is not None, "backup": None if copy is None else str(copy)}
    if as_json:
        show_json(result)
    elif copy is None:
        show(f"{shown(gallery)} has the present version; nothing was done.")
    else:
        show(f"Upgraded: {shown(gallery)}. As it was before: {copy}")


@app.command("re-enroll")
def re_enroll(gallery: GalleryAddress, model: Model, as_json: Json = False) -> None:
    """Change to another model, which prepares all samples again; the calibration is void then.

    Others see the change as a whole. A model that gives the same scores only brings its thresholds and probabilities.
    """
    with friendly_errors(interrupted="Interrupted. The gallery has its old model."):
        learned = load_model(model)
        with opened_gallery(gallery) as opened:
            before = opened.fingerprint
            with waiting_for("preparing all samples"):
                opened.re_enroll(learned)
            described = opened.to_dict()
    result = {
        "gallery": shown(gallery),
        "model": str(model),
        "fingerprint": described["fingerprint"],
        "same_scores": described["fingerprint"] == before,
        "calibrated": described["calibration"] is not None,
    }
    if as_json:
        show_json(result)
    elif result["same_scores"]:
        show(f"Updated: {shown(gallery)} has the thresholds and probabilities of {model}, and the same scores as before.")
    else:
        done = f"Changed: {shown(gallery)} has the model of {model}, for {count(described['n_samples'], 'sample')}."
        show(f"{done} Calibrate it again before you use --max-fpir.")


@app.command("compact")
def compact(
    gallery: GalleryAddress,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="How long to wait for other programs.")
    ] = 30.0,
    as_json: Json = False,
) -> None:
    """Write everything anew, so that nothing of what was removed is left in the file and its log, or in the tables.

    In PostgreSQL readers wait meanwhile; the write-ahead log and the backups of the server are its operator's.
    """
    with (
        friendly_errors(interrupted="Interrupted. What was removed may not be erased yet."),
        opened_gallery(gallery) as opened,
    ):
        before = opened.to_dict()["bytes"]
        with waiting_for("erasing"):
            opened.compact(timeout=timeout)
        described = opened.to_dict()
        after = described["bytes"]
    result = {"gallery": shown(gallery), "bytes_before": before, "bytes": after, "erased": True}
    left = "backups are" if described["store"] == "sqlite" else "the server's write-ahead log and backups are"
    show_json(result) if as_json else show(
        f"Compacted: {shown(gallery)}, {file_size(after)}. Nothing of what was removed is left in it; {left} not touched."
    )


@app.command("audit")
def audit(
    gallery: GalleryAddress,
    subject: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Only entries about this identity, which must be enrolled.")
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Print what was done with a gallery, when (in UTC) and by which model, as CSV; identities appear as keyed hashes."""
    with friendly_errors():
        with opened_gallery(gallery, readonly=True) as opened:
            trail = opened.audit(subject).to_frame()
        trail["time"] = trail["time"].dt.strftime("%Y-%m-%dT%H:%M:%S.%f").str[:-3] + "Z"
        if not as_json:
            with opened_output(out) as stream:
                stream.write(trail.to_csv(index=False, lineterminator="\n").encode())
    if as_json:
        show_json({"gallery": shown(gallery), "entries": trail.to_dict("records")})
