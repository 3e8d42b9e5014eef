"""Simulate the coverage of intervals and the guarantee of thresholds: docs/results/coverage.json and docs/intervals.md.

    python benchmarks/bench_coverage.py [--runs 500] [--jobs 2] [--docs docs]      simulates, half an hour on two cores
    python benchmarks/bench_coverage.py --page                                      generates only the page from the JSON file

The distributions of the scores are in benchmarks/identity_effects.py.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binomtest

from identity_effects import DISTRIBUTIONS
from simtree._utils.files import write_atomically
from simtree.evaluation._intervals import tally_pairs
from simtree.evaluation._thresholds import Goal, choose_threshold
from simtree.metrics import eer, roc_curve, tpr_at_fpr
from simtree.pairs._sources import IndexPairs

ROOT = Path(__file__).parents[1]
CONFIDENCE, RATES, N_SAMPLES, N_BOOTSTRAPS = 0.95, (0.05, 0.01), 4, 200
N_IDENTITIES = (10, 20, 50, 100)
# Distribution, number of identities and target, with the minimum number of identities for a target and with more.
TARGETS = (
    *(
        (distribution, n, fpr)
        for distribution in ("mild", "strong", "wolves")
        for n, fpr in ((25, 0.05), (50, 0.05), (25, 0.01), (100, 0.01))
    ),
    ("strong", 78, 0.001),
)


def one_coverage(distribution: str, n_identities: int, seed: int) -> dict[str, bool]:
    """Return which intervals contain the true metrics, for one draw of identities."""
    truth = DISTRIBUTIONS[distribution]
    scores, same, u, v = truth.sample(n_identities, N_SAMPLES, np.random.default_rng([seed, n_identities]))
    thresholds = [truth.threshold(rate) for rate in RATES]
    tallies = tally_pairs(scores, same, u, v, at=thresholds, n_bootstraps=N_BOOTSTRAPS, random_state=seed)
    roc = roc_curve(scores, same)
    fpr, tpr = tallies.rate_intervals(CONFIDENCE)
    values = [roc.auc(), eer(roc).value, *tpr_at_fpr(roc, list(RATES))]
    ends = tallies.bootstrap_intervals(values, RATES, CONFIDENCE)
    covered = {
        "AUC, influence": _contains(tallies.auc_interval(roc.auc(), CONFIDENCE), truth.auc()),
        "AUC, bootstrap": _contains(ends[0], truth.auc()),
    }
    for rate, threshold, end in zip(RATES, thresholds, ends[2:], strict=True):
        at = int(np.flatnonzero(tallies.same.thresholds == threshold)[0])
        covered[f"FPR {rate:g} at its threshold, influence"] = _contains(fpr[at], rate)
        covered[f"TPR at the threshold of FPR {rate:g}, influence"] = _contains(tpr[at], truth.tpr(threshold))
        covered[f"TPR at FPR {rate:g}, bootstrap"] = _contains(end, truth.tpr(threshold))
        for name, tally, true in (
            (f"FPR {rate:g} at its threshold, binomial", tallies.different, rate),
            (f"TPR at the threshold of FPR {rate:g}, binomial", tallies.same, truth.tpr(threshold)),
        ):
            covered[name] = _contains(
                binomtest(int(tally.totals[at]), tally.n_pairs).proportion_ci(CONFIDENCE, method="wilson"), true
            )
    return covered


def one_threshold(distribution: str, n_identities: int, max_fpr: float, seed: int) -> dict[str, float | None]:
    """Return the true FPR of the threshold chosen on one draw of identities; None if it was refused."""
    truth = DISTRIBUTIONS[distribution]
    scores, same, u, v = truth.sample(n_identities, N_SAMPLES, np.random.default_rng([seed, n_identities, 1]))
    numbers = np.arange(len(scores), dtype=np.int32)
    pairs = IndexPairs(2 * numbers, 2 * numbers + 1, same)
    found = {}
    for name, units in (("identities", np.column_stack([u, v]).ravel()), ("pairs", np.arange(2 * len(scores)))):
        try:
            report = choose_threshold(
                lambda first, _: scores[first // 2], pairs, units, Goal(max_fpr=max_fpr), n_units=len(np.unique(units))
            )
        except ValueError:
            found[name] = None
        else:
            found[name] = truth.fpr(report.threshold)
    return found


def _contains(ends: tuple[float, float] | np.ndarray, true: float) -> bool:
    low, high = ends
    return bool(low <= true <= high)


def simulate(runs: int, jobs: int) -> dict[str, object]:
    """Return the proportions of intervals that contain the truth, and of thresholds that exceed their target."""
    coverage, thresholds = [], []
    for distribution in DISTRIBUTIONS:
        for n_identities in N_IDENTITIES:
            runs_covered = Parallel(n_jobs=jobs)(
                delayed(one_coverage)(distribution, n_identities, seed) for seed in range(runs)
            )
            shares = {name: float(np.mean([one[name] for one in runs_covered])) for name in runs_covered[0]}
            coverage.append({"distribution": distribution, "n_identities": n_identities, "covered": shares})
            print(distribution, n_identities, shares, file=sys.stderr, flush=True)
    for distribution, n_identities, max_fpr in TARGETS:
        found = Parallel(n_jobs=jobs)(delayed(one_threshold)(distribution, n_identities, max_fpr, seed) for seed in range(runs))
        row: dict[str, object] = {"distribution": distribution, "n_identities": n_identities, "max_fpr": max_fpr}
        for name in found[0]:
            chosen = np.array([one[name] for one in found if one[name] is not None])
            row[name] = {
                "exceeded": float(np.sum(chosen > max_fpr)) / runs,
                "refused": 1.0 - len(chosen) / runs,
                "median_fpr": float(np.median(chosen)) if len(chosen) else None,
            }
        thresholds.append(row)
        print(row, file=sys.stderr, flush=True)
    versions = {name: metadata.version(name) for name in ("simtree", "numpy", "scipy", "scikit-learn")}
    settings = {"runs": runs, "samples": N_SAMPLES, "n_bootstraps": N_BOOTSTRAPS, "confidence": CONFIDENCE}
    header = {"settings": settings, "versions": versions, "python": platform.python_version()}
    return {**header, "coverage": coverage, "thresholds": thresholds}


def make_page(result: dict[str, object]) -> str:
    """Return the page as Markdown."""
    settings = result["settings"]
    rows = [
        f"| {name} | {distribution.identities:g} | {distribution.pairs:g} | {distribution.goats:g} | {_wolves(distribution)} |"
        for name, distribution in DISTRIBUTIONS.items()
    ]
    known = 196 * (CONFIDENCE * (1 - CONFIDENCE) / settings["runs"]) ** 0.5
    parts = [HEAD.format(**settings, distributions="\n".join(rows), known=known)]
    names = list(result["coverage"][0]["covered"])
    for distribution in DISTRIBUTIONS:
        rows = [row for row in result["coverage"] if row["distribution"] == distribution]
        sizes = " | ".join(f"{row['n_identities']} identities" for row in rows)
        table = [f"| proportion of intervals that contain the true value | {sizes} |"]
        table.append("|---" * (1 + len(rows)) + "|")
        for name in names:
            shares = [f"{100 * row['covered'][name]:.1f} %" for row in rows]
            table.append(f"| {name} | {' | '.join(shares)} |")
        parts.append(f"### Distribution: {distribution}\n\n" + "\n".join(table))
    parts.append(_summary(result))
    parts.append(THRESHOLDS.format(**settings))
    table = [
        "| distribution | identities | target | exceeded | refused | median FPR / target | exceeded (independent pairs) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["thresholds"]:
        by_identity, naive = row["identities"], row["pairs"]
        ratio = "" if by_identity["median_fpr"] is None else f"{by_identity['median_fpr'] / row['max_fpr']:.2f}"
        table.append(
            f"| {row['distribution']} | {row['n_identities']} | {row['max_fpr']:g} | {100 * by_identity['exceeded']:.1f} % | "
            f"{100 * by_identity['refused']:.1f} % | {ratio} | {100 * naive['exceeded']:.1f} % |"
        )
    parts.append("\n".join(table))
    parts.append(TAIL)
    versions = ", ".join(f"{package} {version}" for package, version in result["versions"].items())
    parts.append(f"*Generated with {versions}.*")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def outside(result: dict[str, object]) -> list[str]:
    """Return metrics with a coverage outside 92 to 98 %, for mild and strong effects and at least 50 identities."""
    return [
        f"{name} ({row['distribution']}, {row['n_identities']} identities: {100 * share:.1f} %)"
        for row in result["coverage"]
        if row["distribution"] in ("mild", "strong") and row["n_identities"] >= 50
        for name, share in row["covered"].items()
        if "binomial" not in name and not 0.92 <= share <= 0.98
    ]


def _summary(result: dict[str, object]) -> str:
    exceptions = "; ".join(outside(result))
    but = f", except for: {exceptions}" if exceptions else ""
    return f"**With at least 50 identities**, and mild or strong effects, the coverage of both intervals is 92 to 98 %{but}."


def _wolves(distribution: object) -> str:
    return f"{100 * distribution.wolves:g} %, shifted by {distribution.shift:g}" if distribution.wolves else "none"


HEAD = """# Coverage of intervals, and the guarantee of thresholds

Pairs share identities. An identity that is mistaken for many others causes many false positives at once, so 100,000 pairs of 50
identities carry less information than 100,000 independent pairs. `simtree.evaluation` has two kinds of intervals that account
for it:

- **by influence**: the variance of a rate, or of the AUC, is the sum of the squared influences of the *identities*, minus the
  contributions of single pairs of identities that it counts twice; the interval is Wilson's with an effective number of pairs
  and Student's quantile, with fewer degrees of freedom if few identities dominate. It is also valid without a single error:
  then the effective number is the number of pairs of identities (rule of three);
- **by bootstrap**: identities are drawn with replacement, and the counts of pairs of identities are weighted, so that no pair
  is scored again. It also covers metrics at a threshold that is estimated from the data, such as the TPR at an FPR.

`unit="samples"` of `evaluate` uses samples instead of identities, for classes that are fixed (such as ten digits).

`python benchmarks/bench_coverage.py` simulated all results on this page: {runs} draws of new identities with {samples} samples
each, all pairs of them, a confidence level of {confidence}, and {n_bootstraps} bootstrap draws. The scores have normal effects
of identities, of pairs of identities and of same pairs, in addition to effects of samples and noise (which have a standard
deviation of 1 per pair), so that the true values are known. The table has the standard deviations of the effects; wolves, as
they are called in biometrics, are identities that are mistaken for many others:

| distribution | identities | pairs of identities | same pairs | wolves |
|---|---|---|---|---|
{distributions}

## Coverage

With {runs} runs a coverage of 95 % is estimated to within {known:.1f} %."""

THRESHOLDS = """
## The guarantee

`calibrate_threshold(X, y, max_fpr=..., confidence=0.95)` on {runs} draws of identities: how often the *true* FPR of the
threshold, for all identities of the distribution, exceeds the target (5 % is allowed), how often the threshold was refused, and
the true FPR relative to the target. In the last column pairs are treated as independent, as in a binomial bound."""

TAIL = """
## Assumptions

- New identities come from the same population as the data, and the model was not trained on the data.
- With fewer than 50 identities intervals are somewhat too narrow, most of all for rates that few identities dominate, as the
  tables show.
- No bound can account for identities that are not in the data. With 5 % wolves, 25 identities include no wolf in 28 % of all
  draws, and 50 identities in 8 %; then the observed scores carry no information about wolves, and the guarantee fails as the
  table shows. If a few identities may cause most false positives, use enough identities to include some of them: at least three
  times the inverse of their share.
"""


def main() -> None:
    """Run the simulation and generate the page, or only the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    parser.add_argument("--page", action="store_true", help="only generate the page from existing results")
    arguments = parser.parse_args()
    file = arguments.docs / "results" / "coverage.json"
    if not arguments.page:
        write_atomically(file, json.dumps(simulate(arguments.runs, arguments.jobs), indent=1) + "\n")
    write_atomically(arguments.docs / "intervals.md", make_page(json.loads(file.read_text())))


if __name__ == "__main__":
    main()
