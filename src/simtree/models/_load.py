"""`load`: read a fitted model from a model file."""

from __future__ import annotations

import os
from pathlib import Path

from simtree.io._archive import read_document
from simtree.models._base import Similarity
from simtree.models._persistence import model_from_state


def load(path: str | os.PathLike[str]) -> Similarity:
    """Read a model written by the `save` method of an estimator.

    A model file contains data only: nothing in it is executed, and its contents are validated. On the same machine the scores
    of the loaded model are identical to those of the saved one, bit for bit.

    Parameters
    ----------
    path : str or path-like
        Path of the model file.

    Returns
    -------
    Similarity
        The fitted model, of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is corrupt, or was written by a newer version of simtree.

    Examples
    --------
    >>> import tempfile, simtree
    >>> model = simtree.DistanceSimilarity(metric="euclidean").fit([[0.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/baseline.simtree")
    ...     simtree.load(f"{folder}/baseline.simtree")
    DistanceSimilarity(metric='euclidean')
    """
    model: Similarity = model_from_state(read_document(Path(path)))
    return model
