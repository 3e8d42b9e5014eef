"""The tables of a gallery, which are the same in every store.

========  ============================================================================================================
setting   parameters of the gallery by name, counters, and enrolments that were asked for under a name, as JSON
model     the bytes of the model that scores, and its fingerprint
identity  identities by number, which is never given twice; the key of their hashes in the audit
metadata  values by identity and name, in a form whose texts are equal if the values are
block     prepared samples of several identities, in one piece: whose they are, their numbers, and from when they are
vectors   the original samples of a block, unless they are not kept or are the prepared ones
strangers what the searches for people who are not enrolled found (`Gallery.calibrate`)
audit     what was done, when and by which model; rows can be added only
========  ============================================================================================================
"""

from __future__ import annotations

from simtree.gallery._store import Connection

#: Raised whenever tables or what they hold change, so that an older simtree refuses the gallery. 2: settings and metadata are
#: text, and numbers of blocks come from a counter, so that they mean the same in every store.
VERSION = 2

#: Columns of each table, without the numbers of the audit, which a store gives.
COLUMNS = {
    "setting": ("name", "value"),
    "model": ("fingerprint", "content"),
    "identity": ("number", "id", "audit_key"),
    "metadata": ("name", "number", "value"),
    "block": ("number", "n_rows", "checksum", "owners", "samples", "times", "prepared"),
    "vectors": ("number", "checksum", "vectors"),
    "strangers": ("content", "maxima", "scores", "weights"),
    "audit": ("time", "action", "model", "n_samples", "subjects"),
}
# Tables whose rows are megabytes each, which are copied one by one.
LARGE = ("block", "vectors")


def copy_tables(source: Connection, target: Connection) -> None:
    """Copy the content of all tables to those of a gallery that has none."""
    for table, columns in COLUMNS.items():
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        insert = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        if table in LARGE:
            for key in source.execute(f"SELECT number FROM {table} ORDER BY number").fetchall():
                row = source.execute(f"SELECT {names} FROM {table} WHERE number = ?", key).fetchone()
                target.execute(insert, row)
            continue
        order = "number" if table in ("identity", "audit") else columns[0]
        target.executemany(insert, source.execute(f"SELECT {names} FROM {table} ORDER BY {order}"))
