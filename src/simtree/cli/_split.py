"""``simtree split``: parts of a table that share no identity, to train, tune and test on."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import numpy as np
import typer
from numpy.typing import NDArray
from typer.core import TyperCommand

from simtree._utils.files import opened_atomically
from simtree.cli._common import Data, Json, Label, Seed, check_writable, friendly_errors, show, show_json, table
from simtree.cli._reading import head_of_text, read_samples
from simtree.cli._tables import Table
from simtree.cli._text_files import STANDARD_INPUT, file_kind, open_bytes, pack_bytes, records, separator_of
from simtree.pairs._splitting import split_identities

PART = re.compile(r"([A-Za-z0-9_-]+):(\S+)")
# Writes the samples of each part, given as row numbers, into one of the open files.
Writer = Callable[[Path, Table, list[NDArray[np.int64]], list[BinaryIO]], None]


class SplitCommand(TyperCommand):
    """The command, with an option ``--into`` that takes all parts that follow it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the values of ``--into``, for an option of the parser takes one."""
        joined: list[str] = []
        in_parts = False
        for argument in args:
            is_part = PART.fullmatch(argument.split(",")[0]) is not None
            if in_parts and is_part and joined[-1] != "--into":
                joined[-1] += f",{argument}"
            else:
                in_parts = argument == "--into" or (in_parts and is_part)
                joined.append(argument)
        return super().parse_args(ctx, joined)


def split(
    data: Data,
    label: Label,
    into: Annotated[
        str,
        typer.Option(
            "--into",
            metavar="NAME:SHARE ...",
            help="Names of the parts, and the share of the identities that each gets.",
            show_default=False,
        ),
    ],
    out_dir: Annotated[
        Path | None,
        typer.Option("--out-dir", metavar="DIR", help="Folder to write to; by default that of DATA.", file_okay=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Split a table into parts that share no identity: one to fit, one to calibrate, one to evaluate on.

    Writes DATA.NAME.EXT for each part, in the format of DATA; rows stay as they are, and in their order.
    """
    with friendly_errors():
        shares = _parts(into)
        if data == STANDARD_INPUT:
            raise typer.BadParameter("the parts are named after DATA, which cannot be standard input; give a file.")
        found = read_samples(data, [label])
        y = found.labels(label, "--label").astype(str)
        folder = data.parent if out_dir is None else out_dir
        files = {name: folder / _name_of_part(data, name) for name in shares}
        there = [file for file in files.values() if file.exists()]
        if there and not force:
            raise ValueError(f"{there[0]} exists; give --force to overwrite it, or another folder with --out-dir.")
        for file in files.values():
            check_writable("--out-dir", folder, file)
        try:
            rows = split_identities(y, shares, random_state=seed)
        except ValueError as error:
            raise ValueError(f"--into {into}: {error}") from None
        with ExitStack() as stack:
            # All of them are moved into place, one after the other, when the last one is written.
            streams = [stack.enter_context(opened_atomically(file)) for file in files.values()]
            _WRITERS[file_kind(data)](data, found, list(rows.values()), streams)
    parts = [
        {"name": name, "file": str(files[name]), "n_identities": len(np.unique(y[rows[name]])), "n_rows": len(rows[name])}
        for name in shares
    ]
    used = np.concatenate(list(rows.values()))
    left = {"n_identities": len(np.unique(y)) - len(np.unique(y[used])), "n_rows": len(y) - len(used)}
    result = {"data": str(data), "label": label, "seed": seed, "parts": parts, "left_out": left}
    show_json(result) if as_json else show(_lines(result))


def _parts(into: str) -> dict[str, float]:
    shares: dict[str, float] = {}
    for part in into.split(","):
        found = PART.fullmatch(part)
        try:
            if found is None:
                raise ValueError
            name, share = found[1], float(found[2])
        except ValueError:
            raise typer.BadParameter(
                f"--into {part!r} is not NAME:SHARE; give a name of letters, digits, - and _ and a share, such as train:0.4."
            ) from None
        if name in shares:
            raise typer.BadParameter(f"--into names the part {name!r} twice; give each part a name of its own.")
        shares[name] = share
    return shares


def _name_of_part(data: Path, name: str) -> str:
    """Return the name of the file of a part: data.train.csv.gz for data.csv.gz."""
    start, _, _ = data.name.lower().rpartition(f".{file_kind(data)}")
    return f"{data.name[: len(start)]}.{name}{data.name[len(start) :]}"


def _write_text(data: Path, found: Table, rows: list[NDArray[np.int64]], streams: list[BinaryIO]) -> None:
    """Write the rows byte by byte as they are, each part under the first line of the table."""
    part_of = np.full(len(found), -1)
    for part, own in enumerate(rows):
        part_of[own] = part
    number = -1
    with open_bytes(data) as source, ExitStack() as stack:
        targets = [stack.enter_context(pack_bytes(data, stream)) for stream in streams]
        for number, record in enumerate(records(source, separator_of(head_of_text(data)))):
            if number == 0:
                for target in targets:
                    target.write(record)
            elif number <= len(found) and part_of[number - 1] >= 0:
                targets[part_of[number - 1]].write(record)
    if number != len(found):
        raise ValueError(f"{found.name} has {number} rows of text, but {len(found)} as a table; convert it to Parquet first.")


def _write_arrow(data: Path, found: Table, rows: list[NDArray[np.int64]], streams: list[BinaryIO]) -> None:
    from pyarrow import feather, parquet

    is_parquet = file_kind(data) == "parquet"
    whole = parquet.read_table(data) if is_parquet else feather.read_table(data)
    for own, stream in zip(rows, streams, strict=True):
        part = whole.take(own)
        parquet.write_table(part, stream) if is_parquet else feather.write_feather(part, stream)


def _write_npz(data: Path, found: Table, rows: list[NDArray[np.int64]], streams: list[BinaryIO]) -> None:
    with zipfile.ZipFile(data) as archive:
        packed = any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist())
    with np.load(data, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    save: Any = np.savez_compressed if packed else np.savez
    for own, stream in zip(rows, streams, strict=True):
        save(stream, **{name: array[own] for name, array in arrays.items()})


def _write_npy(data: Path, found: Table, rows: list[NDArray[np.int64]], streams: list[BinaryIO]) -> None:
    array = np.load(data, allow_pickle=False)
    for own, stream in zip(rows, streams, strict=True):
        np.save(stream, array[own])


_WRITERS: dict[str, Writer] = {
    "csv": _write_text,
    "tsv": _write_text,
    "parquet": _write_arrow,
    "feather": _write_arrow,
    "npz": _write_npz,
    "npy": _write_npy,
}


def _lines(result: dict[str, Any]) -> Any:
    left = result["left_out"]["n_identities"]
    rest = f", {left:,} of them in no part" if left else ""
    n_identities = sum(part["n_identities"] for part in result["parts"]) + left
    rows = table(
        f"{result['data']}: {n_identities:,} values of {result['label']}{rest}", "part", "file", ">identities", ">rows"
    )
    for part in result["parts"]:
        rows.add_row(part["name"], part["file"], f"{part['n_identities']:,}", f"{part['n_rows']:,}")
    return rows
