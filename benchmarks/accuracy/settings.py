"""Settings of gradient boosting that `accuracy.tune` has found, by problem and library, in a JSON file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from accuracy.peers import Training

FILE = Path(__file__).resolve().parents[2] / "docs" / "results" / "boosting_settings.json"


@dataclass(frozen=True)
class Setting:
    """Learning rate and size of the trees: the number of leaves, or the depth for CatBoost."""

    learning_rate: float
    size: int


# Learning rates, and sizes of trees by library, that are searched.
RATES = (0.1, 0.03)
SIZES = {"LightGBM": (63, 15), "XGBoost": (63, 15), "CatBoost": (6, 4), "simtree": (63, 15)}


def first_setting(library: str) -> Setting:
    """Return the setting of quick runs, which may be of problems without a search."""
    return Setting(RATES[0], SIZES[library][0])


@lru_cache(maxsize=1)
def found_settings(file: Path = FILE) -> dict[str, Any]:
    """Return the content of the file: by problem, how the search was done, and what it found by library."""
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def setting_for(training: Training, library: str) -> Setting:
    """Return the setting that was found for a problem; a run of reduced size may do without a search."""
    found = found_settings().get(training.problem, {}).get("libraries", {}).get(library)
    if found is not None:
        return Setting(**found["setting"])
    if training.share < 1.0:
        return first_setting(library)
    raise ValueError(
        f"{FILE.name} has no setting of {library} for {training.problem!r}; find it with: python benchmarks/accuracy/tune.py "
        f"--problems {training.problem}"
    )
