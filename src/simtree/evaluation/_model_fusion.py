"""Fusions by name, for a model: those of scores, the one that the model has learned, and the closed form if it has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simtree._utils.validation import check_choice
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._templates import FUSIONS, LEARNED, LIKELIHOOD_RATIO, N_BEST, Fusion, ScoreFusion


@dataclass(frozen=True)
class LikelihoodRatio:
    """The fusion that a Gaussian model has in closed form: it takes samples, not scores."""

    name: str = LIKELIHOOD_RATIO
    needs_time: bool = False


ModelFusion = ScoreFusion | LikelihoodRatio


def resolve_fusion(model: Any, fusion: Any, n_best: int | None = None) -> ModelFusion:
    """Return the fusion of a name for a model; raise if the model does not have it.

    Parameters
    ----------
    model : object
        A similarity, or any object with ``pair_score``.
    fusion : str or LearnedFusion
        Name, or a fusion that was learned elsewhere.
    n_best : int or None
        Number of scores that ``"top_mean"`` averages over; None for 3.

    Returns
    -------
    ScoreFusion or LikelihoodRatio
        The fusion.
    """
    if isinstance(fusion, LearnedFusion):
        return fusion
    check_choice("fusion", fusion, FUSIONS)
    if fusion == LEARNED:
        if not hasattr(model, "learned_fusion_"):
            raise ValueError("fusion='learned' has not been learned; call fit_fusion of the model first (simtree fit-fusion).")
        learned: LearnedFusion = model.learned_fusion_
        return learned
    if fusion == LIKELIHOOD_RATIO:
        if not getattr(model, "_has_closed_form", False):
            raise no_closed_form(model)
        return LikelihoodRatio()
    return Fusion(fusion, N_BEST if n_best is None else n_best)


def no_closed_form(model: Any) -> ValueError:
    """Return the error that a model has no closed form."""
    return ValueError(
        f"fusion='likelihood_ratio' has a closed form for GaussianSimilarity only, not for {type(model).__name__}; "
        "choose another fusion, such as 'mean'."
    )
