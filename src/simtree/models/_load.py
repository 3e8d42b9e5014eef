"""`load`: a model file back to a fitted model."""

from __future__ import annotations

import os
from pathlib import Path

from simtree.io._archive import read_document
from simtree.models._base import Similarity
from simtree.models._persistence import model_from_state


def load(path: str | os.PathLike[str]) -> Similarity:
    """Read a model that `save` wrote.

    A file is data: nothing in it is run, and what is not as it must be is refused. The model scores as the saved one did, bit
    for bit on the same machine.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    SimilarityTree, SimilarityForest, GaussianSimilarity, DistanceSimilarity, VotingSimilarity or AutoSimilarity

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, or was written by a newer simtree.

    Examples
    --------
    >>> import tempfile, simtree
    >>> model = simtree.DistanceSimilarity(metric="euclidean").fit([[0.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/plain.simtree")
    ...     simtree.load(f"{folder}/plain.simtree")
    DistanceSimilarity(metric='euclidean')
    """
    model: Similarity = model_from_state(read_document(Path(path)))
    return model
