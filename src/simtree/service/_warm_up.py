"""What is compiled before a service is ready: everything that a request may need."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.gallery import Gallery
from simtree.gallery._blocks import Form
from simtree.gallery._search import best_identities, score_claims
from simtree.models import Similarity
from simtree.models._search import TopK

# Number of candidates that are searched for, as by default in a request.
N_CANDIDATES = 10

logger = logging.getLogger("simtree.service")


def compile_searches(gallery: Gallery, model: Similarity) -> None:
    """Load a gallery into memory, and search, compare and explain samples that nobody has, without a row in its audit.

    Parameters
    ----------
    gallery : Gallery
        The gallery.
    model : Similarity
        Its model.
    """
    with gallery._session.searching() as (_, state):
        templates, fusion, form = state.snapshot.templates, state.fusion, state.form
    now = np.zeros(1)
    for samples in _samples(model, form):
        prepared = model._prepare(samples)
        if len(templates):
            # Among the templates, for their number decides how a search is done.
            best_identities(model, fusion, prepared, templates, min(N_CANDIDATES, len(templates)), times=now)
            score_claims(model, fusion, prepared, np.zeros(1, dtype=np.int64), templates, times=now)
        else:
            model._offer_rows(prepared, prepared, 0, TopK(1, 1, -np.inf))
            model._scorer(prepared)(np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32))
    if hasattr(model, "explain_pair") and form.has_vectors:
        columns = getattr(model, "columns_", None)
        # Of a table, samples are explained as they are given, not as they are stored.
        rows = _samples(model, form) if columns is None else [np.full((1, len(columns.columns)), None)]
        try:
            for (sample,) in rows:
                model.explain_pair(sample, sample)
        except ValueError as error:  # every request for an explanation is refused, or the table may not have missing cells
            logger.info("explanations are not compiled: %s", error)


def _samples(model: Similarity, form: Form) -> list[NDArray[Any]]:
    """Return samples as the gallery stores them: all zero, and once with a missing value if the model takes these.

    Zeros are known to be taken: with them the form of a gallery is found when it is opened.
    """
    zeros = np.zeros((1, form.n_features), dtype=form.dtype)
    columns = getattr(model, "columns_", None)
    n_numbers = form.n_features - (0 if columns is None else len(columns.categories))
    if not n_numbers or not model._takes_missing():
        return [zeros]
    missing = zeros.copy()
    missing[0, 0] = np.nan
    return [zeros, missing]
