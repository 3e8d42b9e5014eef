"""``simtree keys``: who may ask a service, and for what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simtree.cli._common import Json, friendly_errors, say, show, show_json, table

app = typer.Typer(help="Make, list and remove keys for `simtree serve`.", no_args_is_help=True)
KeysFile = Annotated[Path, typer.Option("--keys", metavar="FILE", help="File of keys.", show_default=False)]


@app.command("add")
def add(
    keys: KeysFile,
    scope: Annotated[
        list[str],
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="What the key allows: verify, identify, enrol, metrics, or admin: all of them, removal and the audit. May be "
            "given several times.",
            show_default=False,
        ),
    ],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Whose key it is.")] = "",
    as_json: Json = False,
) -> None:
    """Make a key and print it, once: the file holds only a hash of its secret. The file is made if there is none."""
    from simtree.service._keys import add_key

    with friendly_errors():
        key, token = add_key(keys, scope, note)
    if as_json:
        show_json({"key": token, "id": key.id, "scopes": list(key.scopes), "note": key.note})
        return
    say(f"Added to {keys}: {key.id} for {', '.join(key.scopes)}. Keep the key; it cannot be shown again.")
    typer.echo(token)


@app.command("list")
def list_keys(keys: KeysFile, as_json: Json = False) -> None:
    """List the keys of a file, without their secrets."""
    from simtree.service._keys import read_keys

    with friendly_errors():
        found = read_keys(keys).values()
    if as_json:
        show_json([{"id": key.id, "scopes": list(key.scopes), "note": key.note, "created": key.created} for key in found])
        return
    rows = table(str(keys), "id", "scopes", "note", "created")
    for key in found:
        rows.add_row(key.id, ", ".join(key.scopes), key.note, key.created)
    show(rows)


@app.command("remove")
def remove(
    keys: KeysFile,
    id: Annotated[str, typer.Argument(metavar="ID", help="First part of the key, before the dot.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Remove a key; a running service refuses it within two seconds."""
    from simtree.service._keys import remove_key

    with friendly_errors():
        key = remove_key(keys, id)
    show_json({"id": key.id, "removed": True}) if as_json else show(f"Removed: {key.id} ({', '.join(key.scopes)})")
