"""Check the promise about strangers in galleries: docs/results/open_set.json, and a table of docs/gallery.md.

    python benchmarks/bench_open_set.py [--repeats 300]    faces and a simulation, minutes; lists broken promises
    python benchmarks/bench_open_set.py --page             writes only the table, from the JSON file

A population of people is fixed: test people of LFW, whose descriptors are compared by their whitened cosine (the whitening is
learned from other people), or simulated ones, some of whom are like everybody. A repeat draws a gallery and strangers from the
rest of the population, with replacement, so that they are independent draws; calibrates a threshold with them, by the code of
`Gallery.calibrate`; and counts which share of the rest exceeds it. That share is the true rate of alarms, without an error of
its own. "grown" galleries are calibrated with half of the identities, before the others are enrolled; what is promised then
assumes that the others raise as many alarms as those before, which is not so in each draw.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simtree import DistanceSimilarity, WithinClassWhitening
from simtree._utils.files import write_atomically
from simtree.gallery._strangers import Size, Strangers, n_people_for

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "docs" / "results" / "open_set.json", ROOT / "docs" / "gallery.md"
BEGIN, END = "<!-- begin: written by benchmarks/bench_open_set.py -->", "<!-- end -->"
CONFIDENCE, SEED = 0.95, 0
# Strangers to calibrate with, as a multiple of the fewest that a rate can be promised with.
MULTIPLES = (1, 3)
# What a promise about a gallery that has grown rests on.
ASSUMES = "rests on the assumption that those who were enrolled later are like those before"


@dataclass(frozen=True)
class Study:
    """A population, and what is drawn from it.

    Parameters
    ----------
    name : str
        Name of the population.
    highest : ndarray of shape (n_people, n_people)
        Highest score of any sample of one person with any sample of another one.
    sizes : tuple of int
        Numbers of identities of galleries.
    targets : tuple of float
        Rates to promise.
    """

    name: str
    highest: np.ndarray
    sizes: tuple[int, ...]
    targets: tuple[float, ...]


def faces(n_people: int | None = None) -> Study:
    """Return the test people of LFW; the whitening is learned from the others, of whom there are 60 %."""
    with np.load(Path(os.environ.get("SIMTREE_DATA", ".")) / "lfw_dlib128.npz", allow_pickle=False) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"]
    people = np.random.default_rng(SEED).permutation(np.unique(y))
    n_known = round(0.6 * len(people))
    known = np.isin(y, people[:n_known])
    model = DistanceSimilarity(metric="cosine", representation=WithinClassWhitening(random_state=SEED)).fit(X[known], y[known])
    chosen = np.flatnonzero(np.isin(y, people[n_known:][:n_people]))
    chosen = chosen[np.argsort(y[chosen], kind="stable")]
    return Study("LFW", highest_scores(model.pairwise_score(X[chosen]), y[chosen]), (100, 300, 1000), (0.02, 0.05))


def simulated(n_people: int = 5000, sizes: tuple[int, ...] = (3000,)) -> Study:
    """Return people with one sample each in 24 dimensions; every tenth is near the centre, and alike to many."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n_people, 24)).astype(np.float32)
    X[:, 0] += np.where(rng.random(n_people) < 0.1, 6.0, 0.0)
    X += 0.5 * rng.standard_normal(X.shape).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Study("simulation", X @ X.T, sizes, (0.01,))


def highest_scores(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the highest scores of all pairs of people, whose samples are in their order."""
    starts = np.flatnonzero(np.diff(y, prepend=y[:1] - 1))
    return np.maximum.reduceat(np.maximum.reduceat(scores, starts, axis=0), starts, axis=1).astype(np.float32)


def one_repeat(study: Study, n_enrolled: int, target: float, n_strangers: int, grown: bool, seed: int) -> float | None:
    """Return the true rate of a calibrated threshold; None if it is refused."""
    rng = np.random.default_rng([seed, n_enrolled, n_strangers])
    people = rng.permutation(len(study.highest))
    enrolled, others = people[:n_enrolled], people[n_enrolled:]
    before = enrolled[: n_enrolled // 2] if grown else enrolled
    drawn = others[rng.integers(0, len(others), n_strangers)]
    # Of all people at once, by rows: the matrix is symmetric. In double precision, in which thresholds are just above a score.
    of_all = study.highest[before].max(axis=0).astype(np.float64)
    maxima = of_all[drawn]
    size, later = (Size(n, n, n, n) for n in (len(before), n_enrolled))
    found = Strangers.of(maxima[:, None], np.arange(n_strangers), target, CONFIDENCE, size)
    try:
        threshold = found.threshold(target, later)
    except ValueError:
        return None
    if grown:
        of_all = np.maximum(of_all, study.highest[enrolled[len(before) :]].max(axis=0))
    return float(np.mean(of_all[others] >= threshold))


def run(studies: list[Study], n_repeats: int) -> list[dict[str, Any]]:
    """Return one row per population, size, target, number of strangers, and whether the gallery has grown."""
    rows = []
    for study in studies:
        for n_enrolled in study.sizes:
            for target in study.targets:
                for multiple, grown in [*((multiple, False) for multiple in MULTIPLES), (2 * MULTIPLES[0], True)]:
                    n_strangers = multiple * n_people_for(target, CONFIDENCE) + (multiple if grown else 0)
                    rates = [one_repeat(study, n_enrolled, target, n_strangers, grown, seed) for seed in range(n_repeats)]
                    kept = np.array([rate for rate in rates if rate is not None])
                    rows.append(
                        {
                            "population": study.name,
                            "n_enrolled": n_enrolled,
                            "target": target,
                            "n_strangers": n_strangers,
                            "grown": grown,
                            "repeats": len(kept),
                            "refused": len(rates) - len(kept),
                            "exceeded": int(np.count_nonzero(kept > target)),
                            "mean_fpir": float(kept.mean()) if len(kept) else None,
                        }
                    )
                    print(line(rows[-1]), flush=True)
    return rows


def allowed(repeats: int) -> float:
    """Return the number of repeats that may exceed the rate: 5 % and two standard errors."""
    share = 1.0 - CONFIDENCE
    return repeats * share + 2.0 * float(np.sqrt(repeats * share * (1.0 - share)))


def pooled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of all sizes together; galleries that have grown are apart, because their promise has an assumption."""
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        kind = (row["population"], row["target"], row["n_strangers"], row["grown"])
        whole = sums.setdefault(kind, {**row, "n_enrolled": 0, "repeats": 0, "exceeded": 0})
        whole["repeats"] += row["repeats"]
        whole["exceeded"] += row["exceeded"]
    return list(sums.values())


def above(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that exceed their rate more often than 5 % and two standard errors."""
    return [row for row in rows if row["exceeded"] > allowed(row["repeats"])]


def broken(rows: list[dict[str, Any]]) -> list[str]:
    """Return what breaks the promise, one row or all sizes together; those of grown galleries with what theirs rests on."""
    return [line(row) + (f" {ASSUMES}" if row["grown"] else "") for row in above([*rows, *pooled(rows)])]


def line(row: dict[str, Any]) -> str:
    """Return a row as a line of a table."""
    how = "grown from half" if row["grown"] else "as calibrated"
    mean = "" if row["mean_fpir"] is None else f"{row['mean_fpir']:.4f}"
    share = f"{row['exceeded']} of {row['repeats']} ({row['exceeded'] / max(1, row['repeats']):.1%})"
    size = f"{row['n_enrolled']:,}" if row["n_enrolled"] else "all sizes"
    names = (row["population"], size, how, f"{row['target']:g}", row["n_strangers"], mean, share)
    return "| " + " | ".join(map(str, names)) + " |"


def _counted(rows: list[dict[str, Any]], what: str) -> str:
    """Return how many of some rows are above the limit."""
    number = len(above(rows))
    return f"{number} of the {len(rows)} rows {what} {'is' if number == 1 else 'are'}"


def _named(row: dict[str, Any]) -> str:
    return f"{row['population']} with {row['n_enrolled']:,} at {row['target']:g}: {row['exceeded']} of {row['repeats']}"


def table(stored: dict[str, Any]) -> str:
    """Return the table of the page."""
    head = "| population | enrolled | gallery | max_fpir | strangers | mean FPIR | exceeded |\n|---|---|---|---|---|---|---|"
    kinds = [[row for row in stored["rows"] if row["grown"] == grown] for grown in (False, True)]
    limit = f"above 5 % and two standard errors ({allowed(stored['repeats']):.1f} of {stored['repeats']})"
    whole = [f"{max(row['exceeded'] / row['repeats'] for row in pooled(kind)):.1%}" for kind in kinds]
    calibrated, grown = (_counted(kind, how) for kind, how in zip(kinds, ("as calibrated", "grown from half"), strict=True))
    named = "; ".join(map(_named, above(kinds[1])))
    note = (
        f"With the fewest strangers that a rate takes, 5 % of all draws exceed it. {calibrated} {limit}; all sizes together, "
        f"at most {whole[0]} exceed a rate. The promise of a gallery that has grown {ASSUMES}: {grown} above"
        f"{f' ({named})' if named else ''}; all sizes together, at most {whole[1]}."
    )
    return "\n".join([head, *map(line, stored["rows"]), "", note])


def write_page(stored: dict[str, Any], page: Path = PAGE) -> None:
    """Write the table into the page, between its marks."""
    before, rest = page.read_text().split(BEGIN)
    write_atomically(page, f"{before}{BEGIN}\n{table(stored)}\n{END}{rest.split(END, 1)[1]}")


def main() -> None:
    """Run the studies, write the results and the table, and fail if a promise that has no assumption is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--page", action="store_true", help="write only the table, from the JSON file")
    options = parser.parse_args()
    if options.repeats < 1:
        sys.exit("--repeats must be at least 1.")
    if not options.page:
        rows = run([faces(), simulated()], options.repeats)
        stored = {"confidence": CONFIDENCE, "repeats": options.repeats, "rows": rows}
        write_atomically(RESULTS, json.dumps(stored, indent=1) + "\n")
    stored = json.loads(RESULTS.read_text())
    write_page(stored)
    found = broken(stored["rows"])
    if found:
        print("Broken promises:\n" + "\n".join(found))
    if any(not said.endswith(ASSUMES) for said in found):
        sys.exit("A promise without an assumption is broken.")


if __name__ == "__main__":
    main()
