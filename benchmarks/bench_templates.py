"""Templates on the CMU keystroke data, by the protocol of Killourhy and Maxion (2009): the mean equal error rate over subjects.

    SIMTREE_DATA=folder python benchmarks/bench_templates.py [--folds 5] [--curve 1 5 20 50 200] [--tiny] [--out docs/results]
    python benchmarks/bench_templates.py --page    makes docs/templates.md from docs/results/templates.json and enrolled.json

Each of 51 subjects has typed a password 400 times. The first 200 repetitions are enrolled, the other 200 are genuine probes,
and the first five repetitions of each other subject are impostors. Their best detector, the scaled Manhattan distance, has an
equal error rate (EER) of 0.096, which is the first row of the table.

Our models learn from other people, so people are in folds: a subject in fold f and impostors in fold g meet a model that was
trained on neither fold. Nor were they seen by what is learned on top of scores, the fusion (`Similarity.fit_fusion`): it is
fitted to scores of people in a fold a, other than f and g, by models trained without f, g and a. A subject thus meets as many
models as there are folds; the genuine probes are scored by all of them, the impostors of a fold by one, and one ROC curve per
subject is made of all these scores.

Models are trained on all pairs of the training people, or on pairs as the protocol makes them ("as enrolled"): an enrolled
repetition and a later one of the same person, or an early one of another person.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bench_enrolled
from simtree import GaussianSimilarity, MarginalQuantiles, SimilarityBoosting, SimilarityForest
from simtree._utils.files import write_atomically
from simtree.datasets import load_keystroke
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._templates import Fusion
from simtree.metrics import Roc, eer, roc_curve
from simtree.models import Similarity

ROOT = Path(__file__).parents[1]
HEAD = """# Templates: several samples per identity, measured

This page is made by `python benchmarks/bench_templates.py --page` from the results of two benchmarks. What the words mean is in
[Evaluation](evaluation.md#several-enrolled-samples-per-identity), and why it is done so in
[decision 19](decisions/019-templates.md).

## Keystrokes: the protocol of Killourhy and Maxion (2009)

`python benchmarks/bench_templates.py`: each of {n_people} subjects has typed a password 400 times. The first 200 repetitions
are enrolled, the next 200 are genuine probes, the first five of each other subject are impostors. The figure is the mean over
subjects of the equal error rate (EER), each with its own threshold. The scaled Manhattan distance to the mean of the enrolled
repetitions is the best of their 14 detectors; they report 0.096, interpolated between thresholds as in the first row. All other
rows have the EER of `simtree.metrics.eer`, the mean of both error rates at the threshold where they are nearest.

Our models learn from other people, in {n_folds} folds: a subject in fold f and impostors in fold g meet a model that was
trained on neither, and a fusion that was learned from people in neither. "all pairs" are models trained on all pairs of
repetitions of the training people. "as enrolled" are models trained on pairs as the protocol makes them: a repetition from 101
to 200 with one from 201 to 400 of the same person, or with one of the first 50 of another. That impostors have not practised
is thereby learned, too: this is how the protocol defines them, and it is a part of the gain.
"""
CURVE = """The last of these by the number of enrolled repetitions, the newest ones, with fusions learned for each number:
"""
ENROLLED = """## The promise for fused scores

`python benchmarks/bench_enrolled.py`: `calibrate_threshold(enrol=...)` promises an FPR of at most {target:g} per pair of people
with {percent:g} % confidence. People with {n_enrolled} enrolled samples and {n_probes} probes differ in how often they match
others as probes, or are matched by others as enrolled identities: by the same effect in both roles, by two independent ones,
or in one role only. A promise is broken if the true FPR is above the target, which may happen in at most 5 % of all runs.
"""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Protocol:
    """How many repetitions are enrolled and tried, and which of them training pairs are made of."""

    n_repetitions: int = 400
    n_enrolled: int = 200
    n_impostor: int = 5
    n_recent: int = 100
    n_early: int = 50
    n_pairs: int = 60_000
    n_learning: int = 25
    n_trees: int = 20
    n_rounds: int = 120


TINY = Protocol(24, n_enrolled=12, n_impostor=3, n_recent=8, n_early=6, n_pairs=2_000, n_learning=6, n_trees=3, n_rounds=10)


def make_people(protocol: Protocol, n_people: int = 15, n_features: int = 4) -> Floats:
    """Return synthetic people whose samples drift: of shape (n_people, n_repetitions, n_features)."""
    rng = np.random.default_rng(0)
    steps = rng.normal(scale=0.1, size=(n_people, protocol.n_repetitions, n_features)).cumsum(axis=1)
    return rng.normal(size=(n_people, 1, n_features)) + steps + 0.5 * rng.normal(size=steps.shape)


def protocol_pairs(n_people: int, protocol: Protocol, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of repetitions as the protocol makes them, and whether they are same pairs: half of them are."""
    n = protocol.n_pairs
    same = np.arange(n) < n // 2
    person = rng.integers(n_people, size=n)
    enrolled = rng.integers(protocol.n_enrolled - protocol.n_recent, protocol.n_enrolled, size=n)
    other = np.where(same, person, (person + rng.integers(1, n_people, size=n)) % n_people)
    later = rng.integers(protocol.n_enrolled, protocol.n_repetitions, size=n)
    probe = np.where(same, later, rng.integers(protocol.n_early, size=n))
    rows = protocol.n_repetitions
    return np.column_stack([person * rows + enrolled, other * rows + probe]), same


def fit_models(people: Floats, protocol: Protocol) -> dict[str, Similarity]:
    """Return the models of each name, fitted on some people."""
    n_people, n_repetitions, n_features = people.shape
    X, y = people.reshape(-1, n_features), np.repeat(np.arange(n_people), n_repetitions)
    pairs, same = protocol_pairs(n_people, protocol, np.random.default_rng(0))
    forest = SimilarityForest(
        n_estimators=protocol.n_trees,
        coordinates=["abs_diff", "sum"],
        min_pairs_split=100,
        representation=MarginalQuantiles(),
        random_state=0,
    )
    boosting = SimilarityBoosting(n_estimators=protocol.n_rounds, early_stopping=False, random_state=0)
    return {
        "Gaussian, all pairs": GaussianSimilarity(representation=MarginalQuantiles()).fit(X, y),
        "Gaussian, as enrolled": GaussianSimilarity(representation=MarginalQuantiles()).fit(X, same, pairs=pairs),
        "forest, as enrolled": forest.fit(X, same, pairs=pairs),
        "boosting, as enrolled": boosting.fit(X, same, pairs=pairs),
    }


class Scores:
    """Scores of probes with the enrolled repetitions of subjects, by models that have seen neither.

    Attributes
    ----------
    tested : dict
        By model, subject and fold of impostors: scores of genuine probes and of impostors, one column per enrolled repetition.
    learned_from : dict
        By model and set of folds that the model must not know: such scores of people in other folds.
    """

    def __init__(self, people: Floats, folds: np.ndarray, protocol: Protocol) -> None:
        self._people, self._folds, self._protocol = people, folds, protocol
        self.tested: dict[tuple[str, int, int], tuple[Floats, Floats]] = {}
        self.learned_from: dict[tuple[str, frozenset[int]], list[tuple[Floats, Floats]]] = {}

    def add(self, unseen: frozenset[int]) -> None:
        """Fit models on all people but those of some folds, and score these."""
        protocol, folds = self._protocol, self._folds
        models = fit_models(self._people[~np.isin(folds, list(unseen))], protocol)
        for name, model in models.items():
            if len(unseen) <= 2:
                for f, g in itertools.product(unseen, repeat=2):
                    if f != g or len(unseen) == 1:
                        for subject in np.flatnonzero(folds == f).tolist():
                            self.tested[name, subject, g] = self._score(model, subject, g)
                            if name == "Gaussian, all pairs":
                                self.tested["likelihood ratio", subject, g] = self._closed_form(model, subject, g)
            if len(unseen) >= 2:
                for a in unseen:
                    of_others = self.learned_from.setdefault((name, unseen - {a}), [])
                    of_others += [self._score(model, s, a, thinned=True) for s in np.flatnonzero(folds == a).tolist()]

    def _probes(self, subject: int, fold: int, thinned: bool) -> tuple[Floats, Floats]:
        protocol, people = self._protocol, self._people
        genuine = people[subject, protocol.n_enrolled :]
        genuine = genuine[:: len(genuine) // protocol.n_learning] if thinned else genuine
        others = (self._folds == fold) & (np.arange(len(people)) != subject)
        return genuine, people[others, : protocol.n_impostor].reshape(-1, people.shape[2])

    def _score(self, model: Similarity, subject: int, fold: int, *, thinned: bool = False) -> tuple[Floats, Floats]:
        genuine, impostors = self._probes(subject, fold, thinned)
        scores = model.pairwise_score(np.vstack([genuine, impostors]), self._people[subject, : self._protocol.n_enrolled])
        return scores[: len(genuine)].astype(np.float32), scores[len(genuine) :].astype(np.float32)

    def _closed_form(self, model: Similarity, subject: int, fold: int) -> tuple[Floats, Floats]:
        """Return the closed form of a Gaussian model with all enrolled repetitions, as one column."""
        genuine, impostors = self._probes(subject, fold, thinned=False)
        probes, enrolled = np.vstack([genuine, impostors]), self._people[subject, : self._protocol.n_enrolled]
        rows = np.arange(len(probes), dtype=np.int32)
        closed = model._score_templates(model._prepare(probes), model._prepare(enrolled), np.array([0]))
        scores = closed(rows, np.zeros_like(rows))[:, None]
        return scores[: len(genuine)], scores[len(genuine) :]

    def fit_fusion(self, name: str, unseen: frozenset[int], n: int) -> LearnedFusion:
        """Return the fusion of a model, learned on the ``n`` newest enrolled repetitions of people outside some folds."""
        groups = self.learned_from[name, unseen]
        # A comparison of a person counts as often as that of any other person, of either kind.
        kinds = [np.concatenate([both[kind][:, -n:] for both in groups]) for kind in (0, 1)]
        weights = [np.concatenate([np.full(len(both[kind]), 1.0 / len(both[kind])) for both in groups]) for kind in (0, 1)]
        scores = np.concatenate(kinds).astype(np.float64)
        ages = np.broadcast_to(np.arange(n, dtype=np.float64)[::-1], scores.shape)
        return LearnedFusion.fit(
            scores.ravel(),
            n * np.arange(len(scores)),
            np.arange(len(scores)) < len(kinds[0]),
            ages=ages.ravel(),
            weights=np.concatenate(weights),
        )

    def fuse(self, name: str, fusion: Callable[[frozenset[int]], Any], n: int) -> dict[tuple[int, int], tuple[Floats, Floats]]:
        """Return the fused scores with the ``n`` newest enrolled repetitions, by subject and fold of impostors."""
        found = {}
        for (of_name, subject, fold), both in self.tested.items():
            if of_name == name:
                chosen = fusion(frozenset({int(self._folds[subject]), fold}))
                newest = [scores[:, -n:].astype(np.float64) for scores in both]
                ages = np.arange(newest[0].shape[1], dtype=np.float64)[::-1]
                found[subject, fold] = tuple(
                    chosen(scores, np.array([0]), np.tile(ages, (len(scores), 1)))[:, 0] for scores in newest
                )
        return found


def crossing(roc: Roc) -> float:
    """Return the rate at which FPR and 1 - TPR are equal on the polygon through the knots of a ROC curve, as the authors do."""
    gap = roc.fpr - (1.0 - roc.tpr)  # from -1 to 1
    last = int(np.argmax(gap >= 0.0))
    share = gap[last] / (gap[last] - gap[last - 1])
    return float(roc.fpr[last] - share * (roc.fpr[last] - roc.fpr[last - 1]))


def equal_error_rates(
    fused: dict[tuple[int, int], tuple[Floats, Floats]], rate: Callable[[Roc], float] = lambda roc: eer(roc).value
) -> Floats:
    """Return the equal error rate of each subject, from the scores by all models that it met."""
    rates = []
    for subject in sorted({subject for subject, _ in fused}):
        genuine, impostors = (np.concatenate([both[kind] for (s, _), both in fused.items() if s == subject]) for kind in (0, 1))
        same = np.arange(len(genuine) + len(impostors)) < len(genuine)
        rates.append(rate(roc_curve(np.concatenate([genuine, impostors]), same)))
    return np.array(rates)


def scaled_manhattan(people: Floats, protocol: Protocol) -> dict[tuple[int, int], tuple[Floats, Floats]]:
    """Return the scores of all probes by the best detector of Killourhy and Maxion, by subject."""
    fused = {}
    for subject, repetitions in enumerate(people):
        enrolled = repetitions[: protocol.n_enrolled]
        centre = enrolled.mean(axis=0)
        scale = np.abs(enrolled - centre).mean(axis=0)
        impostors = np.delete(people, subject, axis=0)[:, : protocol.n_impostor].reshape(-1, people.shape[2])
        probes = repetitions[protocol.n_enrolled :], impostors
        fused[subject, 0] = tuple(-(np.abs(some - centre) / scale).sum(axis=1) for some in probes)
    return fused


def reference(people: Floats, protocol: Protocol) -> dict[str, Floats]:
    """Return the equal error rates of the scaled Manhattan distance by both definitions: of the authors, and ours."""
    scores = scaled_manhattan(people, protocol)
    of_authors = equal_error_rates(scores, crossing)
    return {"scaled Manhattan, EER interpolated": of_authors, "scaled Manhattan": equal_error_rates(scores)}


def run(people: Floats, protocol: Protocol, n_folds: int, curve: list[int]) -> dict[str, Any]:
    """Return the mean equal error rates of all detectors, and of the best ones by number of enrolled repetitions."""
    folds = np.empty(len(people), dtype=np.int64)
    folds[np.random.default_rng(0).permutation(len(people))] = np.arange(len(people)) % n_folds
    rates = reference(people, protocol)
    scores = Scores(people, folds, protocol)
    for size in (1, 2, 3):
        for unseen in itertools.combinations(range(n_folds), size):
            scores.add(frozenset(unseen))
            print(f"without folds {unseen}: {time.process_time():.0f} s", file=sys.stderr, flush=True)
    names = sorted({name for name, *_ in scores.tested} - {"likelihood ratio"})

    def learned(name: str, n: int) -> dict[tuple[int, int], tuple[Floats, Floats]]:
        fusions = {unseen: scores.fit_fusion(name, unseen, n) for of, unseen in scores.learned_from if of == name}
        print(f"{name}, {n} enrolled: {time.process_time():.0f} s", file=sys.stderr, flush=True)
        return scores.fuse(name, fusions.__getitem__, n)

    def average(parts: list[dict[tuple[int, int], tuple[Floats, Floats]]]) -> dict[tuple[int, int], tuple[Floats, Floats]]:
        return {key: tuple(np.mean([part[key][kind] for part in parts], axis=0) for kind in (0, 1)) for key in parts[0]}

    every = protocol.n_enrolled
    plain = {"best score": Fusion("max"), "mean": Fusion("mean"), "mean of the 10 best": Fusion("top_mean", 10)}
    for label, fusion in plain.items():
        rates[f"Gaussian, all pairs; {label}"] = equal_error_rates(
            scores.fuse("Gaussian, all pairs", lambda _, f=fusion: f, every)
        )
    rates["Gaussian, all pairs; likelihood ratio"] = equal_error_rates(
        scores.fuse("likelihood ratio", lambda _: Fusion("mean"), 1)
    )
    by_name = {name: learned(name, every) for name in names}
    for name, fused in by_name.items():
        rates[f"{name}; learned"] = equal_error_rates(fused)
    chosen = [name for name in names if "as enrolled" in name]
    rates["average of those as enrolled; learned"] = equal_error_rates(average([by_name[name] for name in chosen]))
    by_number = {
        n: equal_error_rates(average([by_name[name] if n == every else learned(name, n) for name in chosen])) for n in curve
    }
    return {
        "protocol": asdict(protocol),
        "n_people": len(people),
        "n_folds": n_folds,
        "mean_eer": {name: float(of_each.mean()) for name, of_each in rates.items()},
        "standard_error": {name: float(of_each.std(ddof=1) / len(of_each) ** 0.5) for name, of_each in rates.items()},
        "by_number_enrolled": {str(n): float(of_each.mean()) for n, of_each in by_number.items()},
    }


def table(report: dict[str, Any]) -> str:
    """Return the results as tables in Markdown."""
    lines = ["| detector | mean EER | standard error |", "|---|---|---|"]
    lines += [f"| {name} | {rate:.4f} | {report['standard_error'][name]:.4f} |" for name, rate in report["mean_eer"].items()]
    lines += ["", CURVE, "| newest repetitions enrolled | mean EER |", "|---|---|"]
    return "\n".join(lines + [f"| {n} | {rate:.4f} |" for n, rate in report["by_number_enrolled"].items()])


def make_page(report: dict[str, Any], enrolled: dict[str, Any]) -> str:
    """Return the page as Markdown, from the reports of this benchmark and of bench_enrolled.py."""
    promise = ENROLLED.format(percent=100 * enrolled["confidence"], **enrolled)
    return "\n".join([HEAD.format(**report), table(report), "", promise, bench_enrolled.table(enrolled), ""])


def main() -> None:
    """Run the benchmark and write its report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=5, help="folds of people, at least 4")
    parser.add_argument("--curve", type=int, nargs="*", default=[1, 5, 20, 50, 200], help="numbers of enrolled repetitions")
    parser.add_argument("--tiny", action="store_true", help="synthetic people, to check that everything runs")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of the report")
    parser.add_argument("--page", action="store_true", help="only make the page from the stored reports")
    options = parser.parse_args()
    if options.page:
        stored = (json.loads((options.out / f"{name}.json").read_text()) for name in ("templates", "enrolled"))
        write_atomically(options.out.parent / "templates.md", make_page(*stored).encode())
        return
    if options.folds < 4:
        parser.error("--folds must be at least 4: models are trained without three of them.")
    if options.tiny:
        protocol, people, curve = TINY, make_people(TINY), [1, 4, TINY.n_enrolled]
    else:
        try:
            X, _ = load_keystroke()
        except OSError as error:
            parser.error(str(error))
        protocol, curve = Protocol(), options.curve
        people = np.asarray(X, dtype=np.float64).reshape(-1, protocol.n_repetitions, X.shape[1])
    report = run(people, protocol, options.folds, curve)
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomically(options.out / "templates.json", (json.dumps(report, indent=1) + "\n").encode())
    print(table(report))
    print(f"Written to {options.out / 'templates.json'}.")


if __name__ == "__main__":
    main()
