"""Simulate the coverage of intervals for unequal people: docs/results/coverage.json and docs/intervals.md.

    python benchmarks/bench_coverage.py [--runs 1000] [--people 20 60 200] [--jobs 2] [--docs docs]
    python benchmarks/bench_coverage.py --page                      generates only the page from the JSON file

The populations are in benchmarks/populations.py. Each row is stored when it is done, and rows that the file already has with
this number of runs are not simulated again: delete it to start anew.
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

from populations import BENIGN, POPULATIONS
from simtree._utils.files import write_atomically
from simtree.evaluation._intervals import tally_pairs
from simtree.evaluation._reliability import OF_SEARCHES, find_doubts
from simtree.evaluation._searching import SearchCounts
from simtree.metrics import Searches, eer, fnir_at_fpir, roc_curve, tpr_at_fpr
from simtree.pairs._sampling import PairSampler

ROOT = Path(__file__).parents[1]
CONFIDENCE, RATES, FPIR, N_PEOPLE = 0.95, (0.05, 0.01), 0.1, (20, 60, 200)
# Coverage asked for, and the largest share of benign runs with a warning.
LOW, HIGH, MAX_WARNED = 0.92, 0.98, 0.1


def one_run(name: str, n_people: int, seed: int) -> dict[str, object]:
    """Return the ends of all intervals of one draw of people, whether there was a warning, and the result of searches."""
    population = POPULATIONS[name]
    number = list(POPULATIONS).index(name)
    drawn = population.draw(n_people, np.random.default_rng([seed, n_people, number]))
    sampler = PairSampler(drawn.people)
    pairs = sampler.all_pairs()
    # In order of the scores, which all later sorting and searching is faster with.
    pairs = pairs.take(np.argsort(-drawn.scores[pairs.first, pairs.second]))
    scores = drawn.scores[pairs.first, pairs.second]
    thresholds = [population.threshold(rate) for rate in RATES]
    sessions = None if drawn.sessions is None else (drawn.sessions[pairs.first], drawn.sessions[pairs.second])
    tallies = tally_pairs(
        scores, pairs.same, drawn.people[pairs.first], drawn.people[pairs.second], at=thresholds, sessions=sessions
    )
    roc = roc_curve(scores, pairs.same)
    equal = eer(roc).value
    fpr, tpr = tallies.rate_intervals(CONFIDENCE)
    at_rates = tallies.tpr_intervals(tpr_at_fpr(roc, list(RATES)), RATES, CONFIDENCE)
    ends = {"AUC": tallies.auc_interval(roc.auc(), CONFIDENCE), "EER": tallies.eer_interval(equal, CONFIDENCE)}
    for rate, threshold, at_rate in zip(RATES, thresholds, at_rates, strict=True):
        at = int(np.flatnonzero(tallies.same.thresholds == threshold)[0])
        ends[f"FPR {rate:g} at its threshold"] = fpr[at]
        ends[f"TPR at the threshold of FPR {rate:g}"] = tpr[at]
        ends[f"TPR at FPR {rate:g}"] = at_rate
    members = sampler.members()
    search = SearchCounts(*members, pairs.take(pairs.same), scores[pairs.same], by_sample=False, by_identity=False)
    for block in sampler.iter_different(drawn.people, 1 << 20):
        search.add(block, drawn.scores[block.first, block.second])
    ends["rank 1"] = search.rank1_interval(CONFIDENCE)[1]
    ends[f"FNIR at FPIR {FPIR:g}"] = search.fnir_intervals([FPIR], CONFIDENCE)[0]
    doubts = [reason for reason in find_doubts(tallies, search, at, "identities") if reason != OF_SEARCHES]
    return {"ends": ends, "warned": bool(doubts), "searches": search.found()}


def truth_of(name: str, runs: list[dict[str, object]]) -> dict[str, float]:
    """Return the true metrics; those of searches, which depend on the size of the gallery, from the searches of all runs."""
    population = POPULATIONS[name]
    found = {"AUC": population.auc(), "EER": population.eer()}
    for rate in RATES:
        tpr = population.tpr(population.threshold(rate))
        found[f"FPR {rate:g} at its threshold"] = rate
        found[f"TPR at the threshold of FPR {rate:g}"] = found[f"TPR at FPR {rate:g}"] = tpr
    searched = Searches(*(np.concatenate(column) for column in zip(*(run["searches"] for run in runs), strict=True)))
    found["rank 1"] = float(np.mean(searched.ranks == 1))
    found[f"FNIR at FPIR {FPIR:g}"] = float(fnir_at_fpir(searched, FPIR))
    return found


def simulate(file: Path, n_people: int, runs: int, jobs: int) -> None:
    """Simulate the populations that a file does not have yet with a number of people, and store each row when it is done."""
    for name in POPULATIONS:
        rows = json.loads(file.read_text())["coverage"] if file.exists() else []
        if any((row["population"], row["n_people"], row["runs"]) == (name, n_people, runs) for row in rows):
            continue
        row = simulate_row(name, n_people, runs, jobs)
        rows = [*(other for other in rows if (other["population"], other["n_people"]) != (name, n_people)), row]
        rows.sort(key=lambda row: (row["n_people"], list(POPULATIONS).index(row["population"])))
        versions = {part: metadata.version(part) for part in ("simtree", "numpy", "scipy", "scikit-learn")}
        result = {"versions": versions, "python": platform.python_version(), "coverage": rows}
        write_atomically(file, json.dumps(result, indent=1) + "\n")
        shares = {metric: round(100 * value["covered"], 1) for metric, value in row["metrics"].items()}
        print(name, n_people, "warned", round(100 * row["warned"], 1), shares, file=sys.stderr, flush=True)


def simulate_row(name: str, n_people: int, runs: int, jobs: int) -> dict[str, object]:
    """Return coverage and warnings of one population with a number of people."""
    found = Parallel(n_jobs=jobs)(delayed(one_run)(name, n_people, seed) for seed in range(runs))
    truth = truth_of(name, found)
    warned = np.array([run["warned"] for run in found])
    covered = {}
    for metric, true in truth.items():
        low, high = np.array([run["ends"][metric] for run in found]).T
        inside = (low <= true) & (true <= high)
        covered[metric] = {
            "covered": float(inside.mean()),
            "covered_or_warned": float((inside | warned).mean()),
            "width": float(np.median(high - low)),
        }
    return {"population": name, "n_people": n_people, "runs": runs, "warned": float(warned.mean()), "metrics": covered}


def make_page(result: dict[str, object]) -> str:
    """Return the page as Markdown."""
    rows = result["coverage"]
    runs = ", ".join(f"{n_runs:,} with {n} people" for n, n_runs in sorted({(row["n_people"], row["runs"]) for row in rows}))
    parts = [HEAD.format(runs=runs)]
    metrics = list(rows[0]["metrics"])
    for n_people in sorted({row["n_people"] for row in rows}):
        table = [f"| {n_people} people | {' | '.join(metrics)} | warned |", "|---" * (len(metrics) + 2) + "|"]
        for row in rows:
            if row["n_people"] == n_people:
                cells = [_cell(row["metrics"][metric]) for metric in metrics]
                table.append(f"| {row['population']} | {' | '.join(cells)} | {100 * row['warned']:.0f} % |")
        parts.append("\n".join(table))
    parts.append(_summary(rows))
    parts.append(TAIL)
    versions = ", ".join(f"{package} {version}" for package, version in result["versions"].items())
    parts.append(f"*Generated with {versions}.*")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _cell(metric: dict[str, float]) -> str:
    covered, flagged = 100 * metric["covered"], 100 * metric["covered_or_warned"]
    return f"{covered:.1f}" if round(flagged, 1) == round(covered, 1) else f"{covered:.1f} ({flagged:.1f})"


def outside(rows: list[dict[str, object]]) -> tuple[list[str], list[str]]:
    """Return the cells that cover too little even with warnings, and those that cover more than asked for."""
    low, high = [], []
    for row in rows:
        for metric, found in row["metrics"].items():
            where = f"{row['population']}, {row['n_people']} people: {metric} {100 * found['covered_or_warned']:.1f} %"
            if found["covered_or_warned"] < LOW:
                low.append(where)
            elif found["covered"] > HIGH:
                high.append(where)
    return low, high


def _summary(rows: list[dict[str, object]]) -> str:
    low, high = outside(rows)
    n_cells = sum(len(row["metrics"]) for row in rows)
    warned = [row["warned"] for row in rows if row["population"] in BENIGN]
    lines = [
        f"Of {n_cells} cells, {n_cells - len(low) - len(high)} cover in 92 to 98 % of the runs or warn, {len(high)} cover in "
        f"more than 98 %, and {len(low)} in less than 92 % of the runs. Of the runs of the first four populations, "
        f"{100 * float(np.mean(warned)):.1f} % have a warning, and at most {100 * max(warned):.1f} % in one row. Below 92 %:"
    ]
    return "\n".join([*lines, "", *(f"- {where}" for where in low)])


HEAD = """# Coverage of intervals

Pairs share identities. An identity that is mistaken for many others causes many false positives at once, so 100,000 pairs of 50
identities carry less information than 100,000 independent pairs. The intervals of `simtree.evaluation` account for it:

- the variance of a metric is the sum of the squared *influences* of the identities, minus what pairs of identities contribute
  twice; for identification (rank 1, FNIR) it is that of leaving out one identity at a time, or that between eight small
  galleries into which the identities are divided at random (in the same way for the same rows in the same order), whichever is
  larger;
- the interval is Student's on the logit scale. Its end towards more errors is longer the larger the relative standard error is,
  because samples that show too few errors also show too little of how unequal people are; for the FPR, this error is also
  carried down from higher rates, where inequality is visible;
- the threshold of a TPR at an FPR, or of an FNIR at an FPIR, is estimated, too: the interval combines that of the rate at a
  threshold with that of the threshold. With few people the threshold of an FPIR may have no upper limit, and the FNIR may be 1.

[Decision 14](decisions/014-intervals-for-unequal-people.md) says what else was tried. Three options say what is estimated:

- `unit` is what is independent and would be drawn anew: `"identities"`, or `"samples"` of fixed classes (such as ten digits).
  It decides how wide the intervals are, and nothing else;
- `weighting` is what counts once: every pair of samples, or every pair of identities. It decides what is estimated;
- `sessions` adds a second kind of units: samples of one session share an effect across people, and the intervals are for new
  sessions, too. Rank 1 and FNIR do not account for sessions, and a warning says so.

`Evaluation.warnings` has the reasons to doubt an interval: few identities bring most pairs, some are mistaken for others far
more or far less often than most, or there are few identities or sessions.

## Coverage

`python benchmarks/bench_coverage.py` simulated all results on this page: {runs}, nominal coverage 95 %, all pairs of 4 samples
per person unless stated otherwise. The score of a different pair is the sum of the effects of both people, of the pair
(standard deviation 0.3), of both samples (0.3) and noise (0.5); same pairs have a mean of 3 and an effect of the person (0.5).
Rows are distributions of the effects of people: log-normal ones with their sigma, scaled to a standard deviation of 0.5; wolves
are mistaken for others (+2.5), goats score lower with themselves (-2); Zipf counts are 2 to 40 samples with probabilities
proportional to 1/n^2, growing counts increase with the effect of the person; sessions have an effect of standard deviation 1.
Truth is for new people (and sessions), every pair of samples counted once, and for searches with galleries of the same size.

Each cell is the percentage of intervals that contain the truth, in brackets together with those of runs that have a warning.
The last column is the share of runs with a warning."""

TAIL = """
## What cannot be covered

- People who are not in the data. With 2 % wolves, 20 people include no wolf in 67 % of all draws and 60 people in 30 %; with
  5 %, in 36 % and 5 %. Then nothing in the data speaks of wolves, and no interval can. If a few people may cause most errors,
  use enough people to include some of them: at least three times the inverse of their share.
- Searches among very unequal people. Rank 1 and the FNIR depend on the extremes of a gallery, which vary more from sample to
  sample than any sample shows. Their intervals are long, and without warnings still too narrow: rank 1 is covered in 80 to 87 %
  of the runs for t(3) effects with 200 people, and for log-normal effects with a sigma of 1 from 60 people on.
- The FNIR of few people. With 20 people nothing tells how high the threshold of an FPIR of 0.1 may be, and most intervals of
  the FNIR reach up to 1.
- New people come from the same population as the data, and the model was not trained on the data.
"""


def main() -> None:
    """Run the simulation and generate the page, or only the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--people", type=int, nargs="+", default=list(N_PEOPLE))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    parser.add_argument("--page", action="store_true", help="only generate the page from existing results")
    arguments = parser.parse_args()
    file = arguments.docs / "results" / "coverage.json"
    if not arguments.page:
        for n_people in arguments.people:
            simulate(file, n_people, arguments.runs, arguments.jobs)
    write_atomically(arguments.docs / "intervals.md", make_page(json.loads(file.read_text())))


if __name__ == "__main__":
    main()
