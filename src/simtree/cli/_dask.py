"""The option ``--dask``: a cluster to work on, and Parquet folders whose rows stay there."""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from simtree._utils.validation import count
from simtree.cli._common import say
from simtree.cli._models import samples_of
from simtree.cli._reading import check_there, is_parquet_folder, parquet_files, read_samples
from simtree.cli._tables import Table
from simtree.gallery import Candidates, Gallery
from simtree.pairs._table import TableColumns

SECONDS_TO_CONNECT = 20


def _check_address(where: str | None) -> str | None:
    if where is not None and not re.fullmatch(r"local:[1-9]\d*|[a-z]+://\S+", where):
        raise typer.BadParameter(
            f"{where!r} is neither the address of a Dask scheduler, such as tcp://10.0.0.1:8786, nor local:4."
        )
    return where


Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        callback=_check_address,
        help="Work on a Dask cluster: the address of its scheduler, such as tcp://10.0.0.1:8786, or local:4 for four "
        "processes on this machine.",
    ),
]


@contextmanager
def opened_cluster(where: str | None) -> Iterator[Any]:
    """Yield a client of the cluster, or None without one."""
    if where is None:
        yield None
        return
    if importlib.util.find_spec("distributed") is None:
        raise ImportError('--dask needs Dask; install it with: pip install "simtree[dask]"')
    from distributed import Client, LocalCluster

    if where.startswith("local:"):
        n_workers = int(where.removeprefix("local:"))
        options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.ERROR}
        with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(where, timeout=SECONDS_TO_CONNECT)
    except (OSError, TimeoutError):
        raise OSError(f"--dask {where}: no Dask scheduler answers there; is it running, and can it be reached?") from None
    with client:
        n_workers = len(client.nthreads())
        if not n_workers:
            raise OSError(f"--dask {where}: the cluster has no workers; start some with: dask worker {where}")
        say(f"Working on {count(n_workers, 'worker')} of {where}")
        yield client


class ClusterTable:
    """A Parquet folder of which only some columns are read here; features stay on the cluster.

    Parameters
    ----------
    path : Path
        The folder.
    columns : list of str
        Columns that are read here.
    """

    def __init__(self, path: Path, columns: list[str]) -> None:
        import dask.dataframe as dd

        check_there(path)
        self.frame = dd.read_parquet([str(file) for file in parquet_files(path)])
        #: The names of all columns, without rows.
        self.head = Table(path, self.frame._meta)
        kept = [self.head.check_column(name, "an option") for name in columns]
        self.here = Table(path, self.frame[kept].compute())

    def features(self, names: list[str]) -> Any:
        """Return columns with features, on the cluster."""
        for name in names:
            if self.frame._meta[name].dtype.kind not in "biufmM":
                raise ValueError(
                    f"{self.head.name}: column {name!r} is not of numbers, booleans or dates, which a folder on a cluster must "
                    "be; leave --dask out, or leave the column out with --drop."
                )
        return self.frame[names]


def columns_of(client: Any, X: Any, chosen: list[str]) -> TableColumns:
    """Return the columns of a table, which may be on a cluster."""
    if client is None or not hasattr(X, "dask"):
        return TableColumns.of(X, chosen)
    from simtree.dask._cluster import Cluster
    from simtree.dask._inputs import samples_on

    return TableColumns.of(samples_on(Cluster(client), X), chosen)


def read_for(client: Any, path: Path, columns: list[str], text: list[str] | None = None) -> tuple[Table, ClusterTable | None]:
    """Return a table, with some columns as text; of a Parquet folder and with a cluster only some columns, and the folder."""
    if client is None or not is_parquet_folder(path):
        return read_samples(path, text or []), None
    folder = ClusterTable(path, columns)
    return folder.here, folder


def samples_for(model: Any, found: Table, folder: ClusterTable | None, others: list[str]) -> Any:
    """Return the columns that a model needs; those of a folder stay on the cluster."""
    if folder is None:
        return samples_of(model, found, others)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError("the model was fitted without feature names, by which columns of a folder are found; give a file.")
    return folder.features([folder.head.check_column(str(name), "the model") for name in names])


def scorer_for(client: Any, model: Any, samples: Any) -> Any:
    """Return a function that scores pairs of row numbers, here or on a cluster."""
    if client is None:
        return lambda rows: model.pair_score(rows, samples)
    from simtree.dask._fit import scorer_on

    score = scorer_on(model, samples, client)

    def scored(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = score(*np.ascontiguousarray(rows.T, dtype=np.int32))
        return found

    return scored


def searching(gallery: Gallery, client: Any, **options: Any) -> Callable[[Any], Candidates]:
    """Return a function that identifies samples, here or on a cluster."""
    if client is None:
        return partial(gallery.identify, **options)
    from simtree.dask import ClusterSearch

    return partial(ClusterSearch(client).identify, gallery, **options)
