"""The verbs of the command: results on standard output, all else on standard error, one sentence for each mistake."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

import simtree
from simtree.cli import _explain, _fit
from simtree.cli import _reading as reading
from simtree.cli import _trial as trial
from simtree.cli._app import app
from simtree.evaluation import read_scores, threshold_for_scores
from simtree.models import _presets as presets
from simtree.models import _timing as timing
from simtree.models._presets import forest_preset
from simtree.pairs._sampling import PairSampler

pytestmark = pytest.mark.slow

NAMES = ["hold", "flight", "press", "tilt"]


def run(*arguments, code=0, env=None, **options):
    # Wide, so that no sentence is broken into lines.
    env = {"COLUMNS": "200", **(env or {})}
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env=env, **options)
    assert done.exit_code == code, (done.output, done.exception)
    if code == 1:
        assert done.stdout == ""
        assert done.stderr.startswith("Error: ") or "\nError: " in done.stderr
    return done


def people(n, first=0, seed=0, samples=8):
    """Samples of people in two sittings each."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), samples)
    X = rng.normal(size=(n, 4))[who] + 0.4 * rng.normal(size=(n * samples, 4))
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(0, "person", [f"p{first + k}" for k in who])
    frame.insert(1, "sitting", [f"p{first + k}-{j}" for k, j in zip(who, np.tile(np.arange(samples) // 4, n), strict=True)])
    frame.insert(2, "device", np.where(rng.random(len(who)) < 0.5, "phone", "pad"))
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of people, and a model of some of them."""
    made = tmp_path_factory.mktemp("verbs")
    people(20).to_csv(made / "train.csv", index=False)
    people(30, 20, seed=1).to_csv(made / "test.csv", index=False)
    people(100, 50, seed=3).to_csv(made / "tune.csv", index=False)
    rng = np.random.default_rng(2)
    pd.DataFrame(rng.integers(0, 240, (50, 2)), columns=["first", "second"]).to_csv(made / "pairs.csv", index=False)
    run("fit", made / "train.csv", "--label", "person", "--drop", "sitting,device", "--trees", 6, "-o", made / "people.simtree")
    return made


@pytest.fixture
def model(folder, tmp_path):
    """A copy of the model, to be changed."""
    (tmp_path / "people.simtree").write_bytes((folder / "people.simtree").read_bytes())
    return tmp_path / "people.simtree"


LABEL = ["--label", "person"]
COLUMNS = [*LABEL, "--drop", "sitting,device"]
FIT = [*COLUMNS, "--trees", 4]


# --- fit


def test_fit_writes_a_model_that_scores_as_the_estimator_does(folder, tmp_path):
    out = tmp_path / "new" / "m.simtree"
    done = run("fit", folder / "train.csv", *FIT, "--json", "-o", out)
    result = json.loads(done.stdout)
    assert result["model"] == str(out)
    assert result["features"] == NAMES
    assert (result["n_rows"], result["n_identities"], result["oob_auc"]) == (160, 20, None)
    assert "about" in done.stderr
    assert "growing trees: 4 of 4" in done.stderr
    model, data = simtree.load(out), pd.read_csv(folder / "train.csv")
    expected = forest_preset(PairSampler(data["person"]), n_trees=4, random_state=0).fit(data[NAMES], data["person"])
    np.testing.assert_array_equal(model.pairwise_score(data[NAMES]), expected.pairwise_score(data[NAMES]))
    assert list(model.feature_names_in_) == NAMES
    assert result["threshold"] == model.threshold_ == expected.threshold_


def test_fit_prints_a_table_with_figures_out_of_bag(folder, tmp_path):
    done = run("fit", folder / "train.csv", *FIT[:-1], 30, "-o", tmp_path / "m.simtree")
    assert "160 rows with 20 values of person, 4 features" in done.stdout
    assert "out-of-bag AUC" in done.stdout
    assert simtree.load(tmp_path / "m.simtree").bag == "classes"


@pytest.mark.parametrize("end", ["parquet", "feather", "tsv"])
def test_the_same_table_in_another_file_gives_the_same_model(folder, tmp_path, end):
    data = pd.read_csv(folder / "train.csv")
    path = tmp_path / f"train.{end}"
    {"parquet": data.to_parquet, "feather": data.to_feather, "tsv": lambda p: data.to_csv(p, sep="\t", index=False)}[end](path)
    run("fit", path, *FIT[:-1], 6, "-o", tmp_path / "m.simtree")
    assert (tmp_path / "m.simtree").read_bytes() == (folder / "people.simtree").read_bytes()


def test_fit_from_arrays(folder, tmp_path):
    data = pd.read_csv(folder / "train.csv")
    np.savez(tmp_path / "train.npz", X=data[NAMES].to_numpy(), y=data["person"].to_numpy(str))
    run("fit", tmp_path / "train.npz", "--label", "y", "--trees", 6, "-o", tmp_path / "m.simtree")
    from_arrays, from_text = simtree.load(tmp_path / "m.simtree"), simtree.load(folder / "people.simtree")
    X = data[NAMES].to_numpy()
    assert list(from_arrays.feature_names_in_) == ["X0", "X1", "X2", "X3"]
    np.testing.assert_array_equal(from_arrays.pair_score(X[[[0, 9]]]), from_text.pair_score(X[[[0, 9]]]))


@pytest.mark.parametrize(("readings", "seconds"), [([0.0, 1.5, 1.5, 1.6], 0.1), ([0.0, 3.0], 3.0)])
def test_a_short_trial_is_made_twice(folder, monkeypatch, readings, seconds):
    data, clock = pd.read_csv(folder / "train.csv"), iter(readings)
    learner = forest_preset(PairSampler(data["person"]), n_trees=8, random_state=0, n_jobs=1)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    assert trial.expected_seconds(learner, data[NAMES], data["person"].to_numpy(), None) == pytest.approx(8 * seconds)


def test_rows_that_never_pair(folder, tmp_path):
    data = pd.read_csv(folder / "train.csv")
    done = run("fit", folder / "train.csv", *LABEL, "--never-pair", "sitting", "--drop", "device", "--model", "tree", "--json",
               "-o", tmp_path / "m.simtree")  # fmt: skip
    result = json.loads(done.stdout)
    assert result["n_pairs"] == PairSampler(data["person"], never_pair=data["sitting"]).n_pairs
    assert result["features"] == NAMES
    assert simtree.load(tmp_path / "m.simtree").tree_.cells.n_same[0] == 20 * 16


@pytest.fixture
def few_candidates(monkeypatch):
    """Three candidates, so small that a search takes a second."""
    made = {
        "euclidean": lambda size: simtree.DistanceSimilarity(metric="euclidean"),
        "gaussian": lambda size: simtree.GaussianSimilarity(),
        "tree": lambda size: simtree.SimilarityTree(max_depth=3, n_pairs=1_000),
    }
    monkeypatch.setattr(presets, "CANDIDATES", {name: presets.Candidate(make) for name, make in made.items()})
    return list(made)


def test_auto_says_what_it_compared_and_chose(folder, tmp_path, few_candidates):
    done = run("fit", folder / "train.csv", *COLUMNS, "--model", "auto", "-o", tmp_path / "m.simtree")
    assert "cross-validated on values of person left out" in done.stdout
    learned = simtree.load(tmp_path / "m.simtree")
    assert learned.open_set_  # what is chosen must hold for other people
    shown = run("show", tmp_path / "m.simtree").stdout
    figure = "{:.3f} [{:.3f}, {:.3f}]".format(*learned.performance_["tpr"])
    for text in (done.stdout, shown):
        assert learned.best_name_ in text
        assert all(name in text for name in few_candidates)
        assert figure in text
    assert "AUC" in run("evaluate", tmp_path / "m.simtree", folder / "test.csv", *LABEL).stdout
    run("calibrate", tmp_path / "m.simtree", folder / "tune.csv", *LABEL, "--max-fpr", 0.2)
    assert simtree.load(tmp_path / "m.simtree").threshold_report_.max_fpr == 0.2


@pytest.mark.parametrize(("option", "open_set"), [("--open-set", True), ("--closed-set", False), (None, True)])
def test_whether_new_identities_come_can_be_said(folder, tmp_path, few_candidates, option, open_set):
    out = tmp_path / "m.simtree"
    given = [] if option is None else [option]
    done = run("fit", folder / "train.csv", *COLUMNS, "--model", "auto", *given, "-o", out)
    assert simtree.load(out).open_set_ is open_set
    assert ("give --open-set if the model will meet other identities, or --closed-set if" in done.stderr) is (option is None)
    run("fit", folder / "train.csv", *FIT, *given, "-o", out)
    assert simtree.load(out).bag == ("classes" if open_set else "samples")


def test_whether_new_identities_come_does_not_matter_for_a_tree(folder, tmp_path):
    done = run("fit", folder / "train.csv", *COLUMNS, "--model", "tree", "--open-set", "-o", tmp_path / "m.simtree", code=1)
    assert "--open-set and --closed-set are for a forest or auto; leave them out with --model tree." in done.stderr


@pytest.mark.parametrize(("n", "samples"), [(2, 2), (3, 4), (9, 2), (12, 2)])
def test_few_rows_can_be_learned_from(tmp_path, n, samples):
    people(n, samples=samples).to_csv(tmp_path / "few.csv", index=False)
    run("fit", tmp_path / "few.csv", *LABEL, "--drop", "sitting,device", "-o", tmp_path / "m.simtree")
    assert simtree.load(tmp_path / "m.simtree").n_features_in_ == 4


def test_row_numbers_without_a_name_are_left_out_and_that_is_said(folder, tmp_path):
    pd.read_csv(folder / "train.csv").to_csv(tmp_path / "train.csv")
    done = run("fit", tmp_path / "train.csv", *FIT, "--json", "-o", tmp_path / "m.simtree")
    assert json.loads(done.stdout)["features"] == NAMES
    assert "1 column without a name left out" in done.stderr


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, ["--label", "preson"], "train.csv has no column 'preson', which --label names; did you mean 'person' or 'press'?"),
        ({}, [*LABEL, "--never-pair", "siting"], "no column 'siting', which --never-pair names; did you mean 'sitting'?"),
        ({"hold": {3: "0,5"}}, FIT, "train.csv: column 'hold', row 3 (line 5) is '0,5', with a decimal comma; write 0.5"),
        ({"tilt": {7: np.inf}}, FIT, "train.csv: column 'tilt', row 7 (line 9) is infinite"),
        ({"person": {5: None}}, FIT, "train.csv: column 'person', row 5 (line 7) is empty"),
        ({"person": "ann"}, FIT, "column 'person' has the single value 'ann'; different pairs need at least two"),
        ({"person": range(160)}, FIT, "column 'person' has a different value in each row"),
        ({"sitting": 1}, [*FIT, "--never-pair", "sitting"], "column 'sitting': never_pair allows no same pair"),
        ({}, [*FIT, "--features", "person"], "--features names 'person', which is not a feature"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_before_anything_is_learned(folder, tmp_path, change, options, said):
    data = pd.read_csv(folder / "train.csv").astype(object)
    for column, cells in change.items():
        if isinstance(cells, dict):
            for row, cell in cells.items():
                data.loc[row, column] = cell
        else:
            data[column] = cells
    data.to_csv(tmp_path / "train.csv", index=False)
    done = run("fit", tmp_path / "train.csv", *options, "-o", tmp_path / "m.simtree", code=1)
    assert said in done.stderr
    assert "Learning" not in done.stderr
    assert not (tmp_path / "m.simtree").exists()


def test_one_row_and_no_file(tmp_path):
    people(2).head(1).to_csv(tmp_path / "one.csv", index=False)
    assert "one.csv has 1 row; a pair needs two" in run("fit", tmp_path / "one.csv", *FIT, code=1).stderr
    assert "did you mean one.csv?" in run("fit", tmp_path / "on.csv", *FIT, code=1).stderr


def test_a_place_that_cannot_be_written_is_found_before_the_work(folder, tmp_path):
    (tmp_path / "file").write_text("")
    for out, said in ((tmp_path / "file" / "m.simtree", "cannot be written to ("), (tmp_path, "is a folder")):
        done = run("fit", folder / "train.csv", *FIT, "-o", out, code=1)
        assert said in done.stderr
        assert "Learning" not in done.stderr


def test_called_wrongly(folder):
    assert "--label" in run("fit", folder / "train.csv", code=2).stderr
    assert "the number of parallel jobs cannot be 0" in run("fit", folder / "train.csv", *FIT, "--n-jobs", 0, code=2).stderr
    assert "banana" in run("fit", folder / "train.csv", *FIT, "--model", "banana", code=2).stderr


def test_ctrl_c_leaves_what_was_there(folder, tmp_path, monkeypatch):
    out = tmp_path / "m.simtree"
    out.write_text("precious")

    def press(self, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(simtree.SimilarityForest, "save", press)
    done = run("fit", folder / "train.csv", *FIT, "-o", out, code=130)
    assert "Interrupted. Nothing was written." in done.stderr
    assert done.stdout == ""
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_a_real_ctrl_c_while_trees_grow(tmp_path):
    people(60, samples=40).to_csv(tmp_path / "train.csv", index=False)
    command = [sys.executable, "-m", "simtree", "fit", "train.csv", *map(str, FIT[:-1]), "2000", "--n-jobs", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not process.stderr.readline().startswith("Learning"):
            assert process.poll() is None
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Interrupted. Nothing was written." in said
    assert "Traceback" not in said
    assert out == ""
    assert os.listdir(tmp_path) == ["train.csv"]


# --- calibrate


CALIBRATE = [*LABEL, "--max-fpr", 0.1]


def test_calibrate_writes_what_the_estimator_finds(folder, model):
    done = run("calibrate", model, folder / "tune.csv", *CALIBRATE, "--json")
    data = pd.read_csv(folder / "tune.csv")
    expected = simtree.load(folder / "people.simtree").calibrate_threshold(data[NAMES], data["person"], max_fpr=0.1)
    written = simtree.load(model)
    assert written.threshold_ == expected.threshold_
    assert written.threshold_report_ == expected.threshold_report_
    result = json.loads(done.stdout)
    assert result["threshold"] == expected.threshold_
    assert result["promise"] == expected.threshold_report_.promise
    assert written.n_jobs is None
    again = run("calibrate", model, folder / "tune.csv", *CALIBRATE)
    assert "FPR <= 0.1 per pair of identities with 95 % confidence" in " ".join(again.stdout.split())


@pytest.mark.slow
def test_calibrating_on_the_training_table_warns_and_is_refused_if_strict(folder, tmp_path):
    file, known = tmp_path / "m.simtree", tmp_path / "known.csv"
    people(60, 50, seed=3).to_csv(known, index=False)
    run("fit", known, *FIT[:-1], 30, "-o", file)
    before = file.read_bytes()
    refused = run("calibrate", file, known, *LABEL, "--max-fpr", 0.2, "--strict", code=1)
    assert "strict=True: same pairs score" in refused.stderr
    assert file.read_bytes() == before
    warned = run("calibrate", file, known, *LABEL, "--max-fpr", 0.2)
    assert warned.stderr.startswith("Warning: same pairs score")
    assert "WARNING" in warned.stdout
    assert file.read_bytes() != before
    people(60, 200, seed=5).to_csv(tmp_path / "others.csv", index=False)
    fine = run("calibrate", file, tmp_path / "others.csv", *LABEL, "--max-fpr", 0.2, "--strict", "--json")
    assert json.loads(fine.stdout)["looks_like_training_data"] is not True
    assert fine.stderr == ""


def test_calibrate_says_if_it_cannot_tell_training_data(folder, model):
    done = run("calibrate", model, folder / "tune.csv", *CALIBRATE, "--strict")
    assert "it cannot be checked whether these data were used in fit" in done.stdout


def test_calibrate_to_another_file(folder, model):
    before, out = model.read_bytes(), model.with_name("other.simtree")
    done = run("calibrate", model, folder / "tune.csv", *CALIBRATE, "--n-pairs", 5000, "-o", out)
    assert model.read_bytes() == before
    assert hasattr(simtree.load(out), "threshold_report_")
    assert "1,000 same and 4,000 different pairs, drawn from 319,600" in done.stdout


def test_calibrate_with_rows_that_never_pair(folder, model):
    done = run("calibrate", model, folder / "tune.csv", *CALIBRATE, "--never-pair", "sitting", "--json")
    assert json.loads(done.stdout)["n_same"] == 100 * 16


def test_a_target_that_is_too_strict_is_refused_with_the_number_of_people_it_takes(folder, model):
    before = model.read_bytes()
    done = run("calibrate", model, folder / "test.csv", *LABEL, "--max-fpr", 0.001, code=1)
    assert "max_fpr=0.001 at confidence=0.95 cannot be guaranteed: 30 identities are too few" in " ".join(done.stderr.split())
    assert model.read_bytes() == before


def test_ctrl_c_in_calibrate_leaves_the_model(folder, model, monkeypatch):
    before = model.read_bytes()

    def press(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", press)
    done = run("calibrate", model, folder / "tune.csv", *CALIBRATE, code=130)
    assert f"Interrupted. {model} was not written." in done.stderr
    assert model.read_bytes() == before
    assert list(model.parent.iterdir()) == [model]


def test_calibrate_without_an_assumption_for_sessions_and_for_subgroups(folder, model):
    done = run("calibrate", model, folder / "tune.csv", *LABEL, "--max-fpr", 0.2, "--assume", "none", "--json")
    assert json.loads(done.stdout)["free_bound"] <= 0.2
    done = run("calibrate", model, folder / "tune.csv", *LABEL, "--max-fpr", 0.2, "--by", "device", "--json")
    assert json.loads(done.stdout)["subgroup"] in ("phone", "pad")
    own = run("calibrate", model, folder / "tune.csv", *LABEL, "--max-fpr", 0.2, "--sessions", "sitting", "--json")
    assert json.loads(own.stdout)["n_sessions"] is None  # each sitting is of one person
    done = run("calibrate", model, folder / "tune.csv", *LABEL, "--max-fpr", 0.2, "--sessions", "device", code=1)
    assert "identities share 2 sessions" in " ".join(done.stderr.split())


VERBS = {
    "calibrate": lambda model, data: ["calibrate", model, data, *CALIBRATE],
    "evaluate": lambda model, data: ["evaluate", model, data, *LABEL],
    "explain": lambda model, data: ["explain", model, data, 0, 1],
    "report": lambda model, data: ["report", model, data, *LABEL, "-o", model.with_name("report.html")],
    "score": lambda model, data: ["score", model, data.with_name("pairs.csv"), data],
    "show": lambda model, data: ["show", model],
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_missing_or_damaged_model_file(folder, model, verb):
    away = VERBS[verb](model.with_name("poeple.simtree"), folder / "test.csv")
    assert "did you mean people.simtree?" in run(*away, code=1).stderr
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    assert "people.simtree" in run(*VERBS[verb](model, folder / "test.csv"), code=1).stderr
    model.write_text("no model at all")
    assert "people.simtree" in run(*VERBS[verb](model, folder / "test.csv"), code=1).stderr


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "show"])
def test_a_table_that_lacks_a_column_of_the_model(folder, tmp_path, verb):
    pd.read_csv(folder / "test.csv").rename(columns={"hold": "Hold"}).to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "pairs.csv").write_bytes((folder / "pairs.csv").read_bytes())
    done = run(*VERBS[verb](folder / "people.simtree", tmp_path / "test.csv"), code=1)
    assert "test.csv has no column 'hold', which the model names; did you mean 'Hold'?" in done.stderr


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "show"])
def test_a_bad_cell_of_the_samples(folder, tmp_path, verb):
    data = pd.read_csv(folder / "test.csv").astype(object)
    data.loc[17, "press"] = "high"
    data.to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "pairs.csv").write_bytes((folder / "pairs.csv").read_bytes())
    done = run(*VERBS[verb](folder / "people.simtree", tmp_path / "test.csv"), code=1)
    assert "test.csv: column 'press', row 17 (line 19) is 'high', not a number; correct it, or remove the row." in done.stderr


@pytest.mark.parametrize("verb", ["calibrate", "evaluate"])
def test_one_person_is_no_test(folder, tmp_path, verb):
    pd.read_csv(folder / "test.csv").head(8).to_csv(tmp_path / "test.csv", index=False)
    assert (
        "different pairs need at least two"
        in run(*VERBS[verb](folder / "people.simtree", tmp_path / "test.csv"), code=1).stderr
    )


# --- evaluate


def test_evaluate_finds_what_the_function_finds(folder):
    done = run("evaluate", folder / "people.simtree", folder / "test.csv", *LABEL, "--json")
    result = json.loads(done.stdout)
    data, model = pd.read_csv(folder / "test.csv"), simtree.load(folder / "people.simtree")
    expected = simtree.evaluate(model, data[NAMES], data["person"], threshold=model.threshold_)
    for name, value in expected.to_dict().items():
        assert result[name] == value
    pairs = PairSampler(data["person"]).all_pairs()
    accepted = model.predict(np.column_stack([pairs.first, pairs.second]), data[NAMES]) == 1
    assert result["at_threshold"]["fpr"] == pytest.approx(accepted[~pairs.same].mean())
    assert result["at_threshold"]["tpr"] == pytest.approx(accepted[pairs.same].mean())


def test_evaluate_prints_tables_and_draws_pictures(folder, tmp_path):
    pictures = tmp_path / "new" / "pictures"
    done = run("evaluate", folder / "people.simtree", folder / "test.csv", *LABEL, "--by", "device", "--plots", pictures)
    for said in ("AUC", "EER", "FPR at most", "found at rank 1", "At the model's threshold", "By device", "phone"):
        assert said in done.stdout
    words = done.stdout.split("FPR: share of different pairs")
    assert "FMR" not in words[0]
    assert "ISO: FMR" in words[1]
    assert "d': distance" in words[1]
    assert done.stdout.strip().splitlines()[-1].startswith("At threshold ")
    names = ["cmc.png", "det.png", "roc.png", "scores.png", "threshold.png"]
    assert sorted(file.name for file in pictures.iterdir()) == names
    assert all((pictures / name).read_bytes().startswith(b"\x89PNG") for name in names)
    assert f"Drawn: {pictures / 'det.png'}" in done.stderr


def test_a_sample_of_pairs_is_stated_and_has_no_searches(folder, tmp_path):
    done = run("evaluate", folder / "people.simtree", folder / "test.csv", *LABEL, "--n-pairs", 5000, "--plots", tmp_path)
    assert "drawn from 28,680 of both kinds" in done.stdout
    assert "rank" not in done.stdout
    assert len(list(tmp_path.iterdir())) == 4
    everything = run("evaluate", folder / "people.simtree", folder / "test.csv", *LABEL, "--n-pairs", 0)
    assert "a sample" not in everything.stdout
    assert "found at rank 20" in everything.stdout


def test_a_bar_moves_on_a_terminal_while_pairs_are_compared(folder):
    quiet = run("evaluate", folder / "people.simtree", folder / "test.csv", *LABEL, "--json")
    assert quiet.stderr == ""
    done = run("evaluate", folder / "people.simtree", folder / "test.csv", *LABEL, "--json", env={"FORCE_COLOR": "1"})
    assert "comparing pairs" in done.stderr
    assert "28680/28680" in done.stderr
    assert done.stdout == quiet.stdout


def test_evaluate_keeps_sittings_apart(folder):
    done = run("evaluate", folder / "people.simtree", folder / "test.csv", *LABEL, "--never-pair", "sitting", "--json")
    assert json.loads(done.stdout)["n_same"] == 30 * 16


@pytest.mark.parametrize(("form", "name"), [("csv", "scores.csv"), ("4column", "scores.txt"), ("5column", "scores.txt")])
def test_scores_that_were_written_can_be_evaluated(folder, tmp_path, form, name):
    data = pd.read_csv(folder / "test.csv").head(96)
    data.to_csv(tmp_path / "test.csv", index=False)
    pairs = PairSampler(data["person"]).all_pairs()
    pd.DataFrame({"first": pairs.first, "second": pairs.second}).to_csv(tmp_path / "pairs.csv", index=False)
    scored(folder, tmp_path / "pairs.csv", tmp_path / "test.csv", *LABEL, "--format", form, "-o", tmp_path / name)
    of_scores = json.loads(run("evaluate", "--scores", tmp_path / name, "--json").stdout)
    of_model = json.loads(run("evaluate", folder / "people.simtree", tmp_path / "test.csv", *LABEL, "--json").stdout)
    for figure in ("n_same", "n_different", "n_identities", "eer", "zero_fmr"):
        assert of_scores[figure] == of_model[figure]
    assert of_scores["auc"] == pytest.approx(of_model["auc"])
    shown = run("evaluate", "--scores", tmp_path / name, "--plots", tmp_path / "pictures").stdout
    assert "At the model's threshold" not in shown
    assert len(list((tmp_path / "pictures").iterdir())) == 4


def test_scores_that_cannot_be_evaluated(folder, tmp_path):
    (tmp_path / "scores.txt").write_text("ann ann x 1.5\nann bob y high\n")
    assert (
        "scores.txt, line 2: the score 'high' is not a finite number"
        in run("evaluate", "--scores", tmp_path / "scores.txt", code=1).stderr
    )
    assert "there is no file" in run("evaluate", "--scores", tmp_path / "away.csv", code=1).stderr
    for option in (["--label", "x"], ["--by", "x"], ["--never-pair", "x"]):
        done = run("evaluate", "--scores", tmp_path / "scores.txt", *option, code=2)
        assert f"{option[0]} cannot be combined with --scores" in done.stderr
    (tmp_path / "scores.txt").write_text("ann ann x 1.5\nbob bob y 2.5\n")
    assert "Error" in run("evaluate", "--scores", tmp_path / "scores.txt", code=1).stderr


def test_scores_of_a_file_get_a_promise_or_a_refusal(tmp_path):
    rng = np.random.default_rng(0)
    u, v = np.triu_indices(100)
    pd.DataFrame(
        {"claimed_id": u, "real_id": v, "probe_label": v, "score": 3.0 * (u == v) + 0.3 * rng.normal(size=len(u))}
    ).to_csv(tmp_path / "scores.txt", sep=" ", index=False, header=False)
    call = ["evaluate", "--scores", tmp_path / "scores.txt", "--max-fpr", 0.01]
    found = json.loads(run(*call, "--json").stdout)["guarantee"]
    table = read_scores(tmp_path / "scores.txt")
    expected = threshold_for_scores(table.scores, table.same, table.identities, max_fpr=0.01)
    assert found["threshold"] == expected.threshold
    assert "without that assumption" in found["promise"]
    assert found["promise"] in " ".join(run(*call).stdout.replace("│", " ").replace("|", " ").split())
    refused = run(*call, "--assume", "none", code=1)
    assert "give data of about 597 identities" in refused.stderr


def test_evaluate_called_wrongly(folder, tmp_path):
    model, data = folder / "people.simtree", folder / "test.csv"
    for arguments in ([], [model], [model, data]):
        assert "give MODEL, DATA and --label COL, or --scores FILE." in run("evaluate", *arguments, code=2).stderr
    for option in (["--unit", "samples"], ["--n-pairs", 10], [*LABEL]):
        done = run("evaluate", "--scores", data, *option, code=2)
        assert f"{option[0]} cannot be combined with --scores" in done.stderr
    assert "--max-fpr goes with --scores" in run("evaluate", model, data, *LABEL, "--max-fpr", 0.1, code=2).stderr
    (tmp_path / "file").write_text("")
    assert "is a file" in run("evaluate", model, data, *LABEL, "--plots", tmp_path / "file", code=2).stderr
    done = run("evaluate", model, data, *LABEL, "--plots", tmp_path / "file" / "below", code=1)
    assert "--plots" in done.stderr
    assert "cannot be written to (" in done.stderr


def test_ctrl_c_in_evaluate(folder, monkeypatch):
    def press(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("simtree.cli._evaluate.evaluate", press)
    done = run("evaluate", folder / "people.simtree", folder / "test.csv", *LABEL, code=130)
    assert "Interrupted." in done.stderr
    assert done.stdout == ""


# --- score


def scored(folder, *arguments, **options):
    return run("score", folder / "people.simtree", *arguments, **options).stdout


def test_scores_are_those_of_the_model_and_the_columns_of_the_pairs_stay(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "ROWS", 7)
    pairs = pd.read_csv(folder / "pairs.csv").assign(note="x,y")
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    scored(folder, tmp_path / "pairs.csv", folder / "test.csv", "-o", tmp_path / "scores.csv")
    found = pd.read_csv(tmp_path / "scores.csv")
    model, data = simtree.load(folder / "people.simtree"), pd.read_csv(folder / "test.csv")
    expected = model.pair_score(pairs[["first", "second"]].to_numpy(), data[NAMES])
    np.testing.assert_allclose(found["score"], expected, rtol=1e-15)
    assert found["accepted"].tolist() == (expected >= model.threshold_).astype(int).tolist()
    pd.testing.assert_frame_equal(found[pairs.columns], pairs)
    assert scored(folder, tmp_path / "pairs.csv", folder / "test.csv") == (tmp_path / "scores.csv").read_text()


def test_pairs_from_standard_input(folder):
    text = (folder / "pairs.csv").read_text()
    assert scored(folder, "-", folder / "test.csv", input=text) == scored(folder, folder / "pairs.csv", folder / "test.csv")


def test_pairs_from_standard_input_with_semicolons(folder):
    text = (folder / "pairs.csv").read_text()
    plain = scored(folder, "-", folder / "test.csv", input=text)
    assert scored(folder, "-", folder / "test.csv", input=text.replace(",", ";")) == plain


def test_the_samples_may_come_from_standard_input_too(folder, tmp_path):
    for text in ((folder / "train.csv").read_text(), (folder / "train.csv").read_text().replace(",", "\t")):
        run("fit", "-", *FIT[:-1], 6, "-o", tmp_path / "m.simtree", input=text)
        assert (tmp_path / "m.simtree").read_bytes() == (folder / "people.simtree").read_bytes()
    done = run("fit", "-", *FIT, "-o", tmp_path / "m.simtree", input="person,hold\np1,high\np1,2\np2,3\n", code=1)
    assert "standard input has no column 'sitting', which --drop names" in done.stderr
    done = run("fit", "-", *LABEL, input="person,hold\np1,high\np1,2\np2,3\n", code=1)
    assert "standard input: column 'hold', row 0 is 'high', not a number" in done.stderr
    assert "standard input is empty" in run("fit", "-", *LABEL, input="", code=1).stderr
    assert "is not in UTF-8 but probably" in run("fit", "-", *LABEL, input=b"person,a\nren\xe9,1\n", code=1).stderr
    done = run("score", folder / "people.simtree", "-", "-", code=2)
    assert "PAIRS and DATA cannot both be standard input" in done.stderr


def full_disk(*arguments, **options):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("verb", ["fit", "score", "calibrate"])
def test_a_full_disk_names_the_file(folder, model, monkeypatch, verb):
    out = model.with_name("out")
    arguments = {
        "fit": ["fit", folder / "train.csv", *FIT],
        "score": ["score", model, folder / "pairs.csv", folder / "test.csv"],
        "calibrate": ["calibrate", model, folder / "tune.csv", *LABEL, "--max-fpr", 0.2],
    }
    monkeypatch.setattr("os.replace", full_disk)
    done = run(*arguments[verb], "-o", out, code=1)
    assert f"Error: {out} cannot be written: No space left on device; free some space, or write to another disk." in done.stderr
    assert list(model.parent.iterdir()) == [model]


def test_a_full_disk_behind_standard_output(folder):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    command = [sys.executable, "-m", "simtree", "score", folder / "people.simtree", folder / "pairs.csv", folder / "test.csv"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "Error: standard output cannot be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_pairs_by_keys_and_by_named_columns(folder, tmp_path):
    data = pd.read_csv(folder / "test.csv")
    data["key"] = [f"k{row}" for row in range(len(data))]
    data.to_csv(tmp_path / "test.csv", index=False)
    pairs = pd.read_csv(folder / "pairs.csv")
    named = pd.DataFrame(
        {"n": range(len(pairs)), "b": "k" + pairs["second"].astype(str), "a": "k" + pairs["first"].astype(str)}
    )
    named.to_csv(tmp_path / "pairs.csv", index=False)
    scored(
        folder, tmp_path / "pairs.csv", tmp_path / "test.csv", "--id", "key", "--columns", "a,b", "-o", tmp_path / "by_key.csv"
    )
    scored(folder, folder / "pairs.csv", tmp_path / "test.csv", "-o", tmp_path / "by_row.csv")
    assert pd.read_csv(tmp_path / "by_key.csv")["score"].tolist() == pd.read_csv(tmp_path / "by_row.csv")["score"].tolist()


@pytest.mark.parametrize("rows", [1, 1 << 17])
def test_keys_of_which_some_are_numbers(folder, tmp_path, monkeypatch, rows):
    monkeypatch.setattr(reading, "ROWS", rows)  # in parts of a file or in all of it a column may look like one of numbers
    data = pd.read_csv(folder / "test.csv")
    data["key"] = [f"{'k' if row % 2 else '0'}{row}" for row in range(len(data))]
    data.to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "pairs.csv").write_text("a,b,note\n00,02,1.50\n02,04,2\n04,k5,\n")
    (tmp_path / "rows.csv").write_text("a,b\n0,2\n2,4\n4,5\n")
    by_key = scored(folder, tmp_path / "pairs.csv", tmp_path / "test.csv", "--id", "key").splitlines()
    by_row = scored(folder, tmp_path / "rows.csv", tmp_path / "test.csv").splitlines()
    assert [line.split(",")[:3] for line in by_key[1:]] == [["00", "02", "1.50"], ["02", "04", "2"], ["04", "k5", ""]]
    assert [line.split(",")[3:] for line in by_key] == [line.split(",")[2:] for line in by_row]


def test_names_that_look_like_numbers_stay_what_they_are(folder, tmp_path):
    data = pd.read_csv(folder / "test.csv")
    data["person"] = data["person"].str.replace("p", "00")
    data["key"] = [f"{row:04d}" for row in range(len(data))]
    data.to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "pairs.csv").write_text("a,b\n0000,0008\n")
    names = ["--id", "key", *LABEL, "--format", "5column"]
    line = scored(folder, tmp_path / "pairs.csv", tmp_path / "test.csv", *names)
    assert line.split()[:4] == ["0020", "0000", "0021", "0008"]
    run("explain", folder / "people.simtree", tmp_path / "test.csv", "0000", "0008", "--id", "key")


def test_pairs_that_hold_the_features_of_both(folder, tmp_path):
    data, rows = pd.read_csv(folder / "test.csv")[NAMES], pd.read_csv(folder / "pairs.csv")
    sides = [data.iloc[rows[side]].reset_index(drop=True).add_suffix(end) for side, end in (("first", "_1"), ("second", "_2"))]
    pd.concat(sides, axis=1).to_csv(tmp_path / "pairs.csv", index=False)
    scored(folder, tmp_path / "pairs.csv", "-o", tmp_path / "wide.csv")
    scored(folder, folder / "pairs.csv", folder / "test.csv", "-o", tmp_path / "by_row.csv")
    assert pd.read_csv(tmp_path / "wide.csv")["score"].tolist() == pd.read_csv(tmp_path / "by_row.csv")["score"].tolist()
    done = run("score", folder / "people.simtree", folder / "pairs.csv", code=1)
    assert "pairs.csv has no column 'hold_1', which the model names" in done.stderr


@pytest.mark.parametrize(("form", "columns"), [("4column", ["p20", "p21", "8"]), ("5column", ["p20", "0", "p21", "8"])])
def test_bobs_columns(folder, tmp_path, form, columns):
    (tmp_path / "pairs.csv").write_text("first,second\n0,8\n0,1\n")
    lines = scored(folder, tmp_path / "pairs.csv", folder / "test.csv", *LABEL, "--format", form).splitlines()
    assert len(lines) == 2
    assert lines[0].split()[:-1] == columns
    model, data = simtree.load(folder / "people.simtree"), pd.read_csv(folder / "test.csv")[NAMES]
    assert float(lines[0].split()[-1]) == model.pair_score([[0, 8]], data)[0]


@pytest.mark.parametrize(
    ("pairs", "options", "said"),
    [
        (
            "first,second\n0,1\n5,240\n",
            [],
            "column 'second', row 1 (line 3) is 240; give a row number of test.csv, from 0 to 239",
        ),
        ("first,second\n0,-1\n", [], "is -1; give a row number"),
        ("first,second\n0,1.5\n", [], "is 1.5; give a row number"),
        (
            "first,second\n0,ann\n",
            [],
            "column 'second', row 0 (line 2) is 'ann', which is not a row number of test.csv; if it names a sample, say with "
            "--id COL which column of test.csv has these names",
        ),
        (
            "first,second\np20-0,p21-0\n",
            [],
            "is 'p20-0', which is not a row number of test.csv; if it names a sample, say with --id sitting",
        ),
        ("first,second\n0,\n", [], "is empty"),
        ("first\n0\n", [], "must have two columns that name the samples of each pair, not 1"),
        (
            "first,second\n0,1\n",
            ["--columns", "first,secnd"],
            "no column 'secnd', which --columns names; did you mean 'second'?",
        ),
        ("first,second\nx,y\n", ["--id", "person"], "column 'person' has 8 rows with 'p20'; the values of --id must be unique"),
        (
            "first,second\nx,y\n",
            ["--id", "hold"],
            "column 'first', row 0 (line 2) is 'x', which the --id column of test.csv does not have",
        ),
    ],
)
def test_pairs_that_name_no_sample(folder, tmp_path, pairs, options, said):
    (tmp_path / "pairs.csv").write_text(pairs)
    out = tmp_path / "scores.csv"
    done = run("score", folder / "people.simtree", tmp_path / "pairs.csv", folder / "test.csv", *options, "-o", out, code=1)
    assert said in done.stderr
    assert not out.exists()


def test_scores_appear_whole_or_not_at_all(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "ROWS", 3)
    (tmp_path / "pairs.csv").write_text("first,second\n" + "0,1\n" * 8 + "0,999\n")
    out = tmp_path / "scores.csv"
    out.write_text("precious")
    run("score", folder / "people.simtree", tmp_path / "pairs.csv", folder / "test.csv", "-o", out, code=1)
    assert out.read_text() == "precious"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["pairs.csv", "scores.csv"]


def test_ctrl_c_in_score_leaves_what_was_there(folder, tmp_path, monkeypatch):
    out = tmp_path / "scores.csv"
    out.write_text("precious")

    def press(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(simtree.SimilarityForest, "pair_score", press)
    done = run("score", folder / "people.simtree", folder / "pairs.csv", folder / "test.csv", "-o", out, code=130)
    assert "Interrupted." in done.stderr
    assert out.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [out]


def test_a_reader_who_has_seen_enough_gets_no_traceback(folder, tmp_path):
    """As in ``simtree score ... | head``."""
    (tmp_path / "pairs.csv").write_text("first,second\n" + "0,1\n" * 300_000)
    command = [sys.executable, "-m", "simtree", "score", folder / "people.simtree", tmp_path / "pairs.csv", folder / "test.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "first,second,score,accepted\n"
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 1
    assert said == ""


def test_score_called_wrongly(folder, tmp_path):
    pairs, data, model = folder / "pairs.csv", folder / "test.csv", folder / "people.simtree"
    assert "give DATA and --label COL" in run("score", model, pairs, data, "--format", "4column", code=2).stderr
    assert "give DATA too" in run("score", model, pairs, "--id", "person", code=2).stderr
    assert "is a folder" in run("score", model, pairs, data, "-o", tmp_path, code=1).stderr
    assert "there is no file" in run("score", model, tmp_path / "p.csv", data, code=1).stderr
    spaced = pd.read_csv(data).assign(person="a b")
    spaced.to_csv(tmp_path / "test.csv", index=False)
    done = run("score", model, pairs, tmp_path / "test.csv", *LABEL, "--format", "4column", code=1)
    assert "claimed_id='a b', which is not allowed in a file whose columns are separated by whitespace" in done.stderr


# --- explain


def test_explain_adds_up_to_the_score(folder, tmp_path):
    picture = tmp_path / "why.png"
    done = run("explain", folder / "people.simtree", folder / "test.csv", 0, 9, "--json", "--plot", picture)
    result = json.loads(done.stdout)
    model, data = simtree.load(folder / "people.simtree"), pd.read_csv(folder / "test.csv")[NAMES]
    assert result["score"] == pytest.approx(model.pair_score([[0, 9]], data)[0])
    assert result["base"] + sum(part["contribution"] for part in result["features"]) == pytest.approx(result["score"])
    assert {part["name"] for part in result["features"]} == set(NAMES)
    assert result["accepted"] == bool(result["score"] >= model.threshold_)
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = run("explain", folder / "people.simtree", folder / "test.csv", 0, 9, "--top", 1).stdout
    assert "baseline: average pair" in shown
    others = [part["contribution"] for part in result["features"][1:]]
    for what, part in (("for the same identity", [c for c in others if c >= 0]), ("against it", [c for c in others if c < 0])):
        line = next((line for line in shown.splitlines() if what in line), None)
        assert (line is not None) == bool(part)
        assert line is None or line.split()[-1] == f"{sum(part):+.3f}"
    assert [line.split()[0] for line in shown.splitlines()[-4:] if line.strip()] == ["score", "threshold", "decision"]
    assert f"{model.threshold_:+.3f}" in shown


def test_features_are_listed_until_the_others_matter_less():
    few, many = _explain.MIN_SHOWN, _explain.MAX_SHOWN
    assert _explain._n_shown(np.array([3.0, -2.0])) == 2
    assert _explain._n_shown(np.array([1.0] * few + [0.01] * 56)) == few
    # 0.2 each: 56 of them outweigh the last one shown, and 40 still do.
    assert _explain._n_shown(np.array([1.0] * few + [-0.2] * 56)) == many
    assert _explain._n_shown(np.array([1.0] * few + [-0.2] * 8)) == few + 7
    assert _explain._n_shown(np.array([1.0] * few + [-0.2, 0.2] * 30)) == few


def test_explain_by_key_and_its_mistakes(folder, tmp_path):
    data = pd.read_csv(folder / "test.csv")
    data["key"] = [f"k{row}" for row in range(len(data))]
    data.to_csv(tmp_path / "test.csv", index=False)
    by_key = run("explain", folder / "people.simtree", tmp_path / "test.csv", "k0", "k9", "--id", "key", "--json")
    by_row = run("explain", folder / "people.simtree", tmp_path / "test.csv", 0, 9, "--json")
    assert json.loads(by_key.stdout)["features"] == json.loads(by_row.stdout)["features"]
    assert (
        "has no row 240; its rows are 0 to 239"
        in run("explain", folder / "people.simtree", folder / "test.csv", 0, 240, code=1).stderr
    )
    plain = simtree.DistanceSimilarity().fit(data[NAMES], data["person"])
    plain.save(tmp_path / "plain.simtree")
    done = run("explain", tmp_path / "plain.simtree", tmp_path / "test.csv", 0, 1, code=1)
    assert "plain.simtree holds a distance, which is not a sum over features" in done.stderr


# --- show


def test_show_tells_what_was_learned_and_promised(folder, model):
    run("calibrate", model, folder / "tune.csv", *CALIBRATE)
    done = run("show", model)
    for said in (
        "SimilarityForest",
        "6, with",
        "4: hold, flight, press, tilt",
        "FPR <= 0.1 per pair of identities with 95 %",
        "share",
    ):
        assert said in done.stdout
    result = json.loads(run("show", model, "--json").stdout)
    assert result["features"] == NAMES
    assert result["n_trees"] == 6
    assert result["threshold_report"]["max_fpr"] == 0.1
    assert sum(result["importances"].values()) == pytest.approx(1.0)
    assert result["parameters"]["n_estimators"] == "6"


def test_show_prints_the_rules_of_a_tree(folder, tmp_path):
    done = run("fit", folder / "train.csv", *COLUMNS, "--model", "tree", "-o", tmp_path / "tree.simtree")
    assert f"read them with: simtree show {tmp_path / 'tree.simtree'} --rules 3" in done.stdout
    rules = run("show", tmp_path / "tree.simtree", "--rules", 5).stdout
    assert "cell 1.0" in rules
    assert " more ways" not in rules
    assert rules.count("inside if") < 2**5
    assert "|         or" not in rules
    assert "is not a single tree" in run("show", folder / "people.simtree", "--rules", 2, code=1).stderr


def test_show_a_plain_distance(folder, tmp_path):
    data = pd.read_csv(folder / "test.csv")
    simtree.DistanceSimilarity(metric="euclidean").fit(data[NAMES].to_numpy(), data["person"]).save(tmp_path / "plain.simtree")
    shown = run("show", tmp_path / "plain.simtree").stdout
    assert "'euclidean'" in shown
    assert "4, without names" in shown
    assert f"{len(data)} samples of {data['person'].nunique()} identities" in shown
    assert json.loads(run("show", tmp_path / "plain.simtree", "--json").stdout)["importances"] is None


def test_a_threshold_that_accepts_nothing(folder, model):
    simtree.load(model).set_threshold(np.inf).save(model)
    assert json.loads(run("show", model, "--json").stdout)["threshold"] is None
    assert json.loads(run("evaluate", model, folder / "test.csv", *LABEL, "--json").stdout)["at_threshold"] is None
    assert "not accepted" in run("explain", model, folder / "test.csv", 0, 1).stdout


def test_a_vote_goes_through_all_verbs(folder, tmp_path, monkeypatch):
    data, file = pd.read_csv(folder / "train.csv"), tmp_path / "vote.simtree"
    members = [("plain", simtree.DistanceSimilarity()), ("tree", simtree.SimilarityTree(max_depth=3, random_state=0))]
    vote = simtree.VotingSimilarity(members, weights=[1.0, 2.0])
    monkeypatch.setattr(presets, "CANDIDATES", {"vote": presets.Candidate(lambda size: clone(vote))})
    for model in (vote, simtree.AutoSimilarity(target_fpr=0.1, open_set=True, random_state=0)):
        model.fit(data[NAMES], data["person"]).save(file)
        assert "[1.0, 2.0]" in run("show", file).stdout
        shown = json.loads(run("show", file, "--json").stdout)
        assert shown["parameters"]["weights"] == "[1.0, 2.0]"
        assert "SimilarityTree(max_depth=3" in shown["parameters"]["estimators"]
        assert "AUC" in run("evaluate", file, folder / "test.csv", *LABEL).stdout
        run("calibrate", file, folder / "tune.csv", *LABEL, "--max-fpr", 0.1)
        assert "score" in run("score", file, folder / "pairs.csv", folder / "test.csv").stdout
        if model is vote:
            done = run("explain", file, folder / "test.csv", 0, 1, code=1)
            assert "vote.simtree holds an ensemble of several models, which is not a sum over features" in done.stderr
        else:
            told = json.loads(run("explain", file, folder / "test.csv", 0, 1, "--json").stdout)
            assert {feature["name"] for feature in told["features"]} == set(NAMES)
            total = told["base"] + sum(feature["contribution"] for feature in told["features"])
            assert total == pytest.approx(told["score"], rel=1e-9)


def test_a_model_without_names_takes_columns_in_their_order(folder, tmp_path):
    data = pd.read_csv(folder / "test.csv")
    simtree.DistanceSimilarity().fit(data[NAMES].to_numpy(), data["person"]).save(tmp_path / "plain.simtree")
    data[["person", *NAMES]].to_csv(tmp_path / "test.csv", index=False)
    run("evaluate", tmp_path / "plain.simtree", tmp_path / "test.csv", *LABEL)
    done = run("evaluate", tmp_path / "plain.simtree", folder / "test.csv", *LABEL, code=1)
    assert "test.csv has 6 features, but the model was fitted on 4, without names" in done.stderr
    done = run("score", tmp_path / "plain.simtree", folder / "pairs.csv", code=1)
    assert "without feature names" in done.stderr


def test_splitter_and_depth_of_a_tree_or_a_forest(folder, tmp_path):
    out, options = tmp_path / "m.simtree", ["--splitter", "cart", "--depth", 3]
    run("fit", folder / "train.csv", *COLUMNS, "--model", "tree", *options, "-o", out)
    assert (simtree.load(out).splitter, simtree.load(out).max_depth) == ("cart", 3)
    run("fit", folder / "train.csv", *FIT, *options[2:], "--splitter", "cross", "-o", out)
    assert (simtree.load(out).splitter, simtree.load(out).max_depth) == ("cross", 3)
    run("fit", folder / "train.csv", *COLUMNS, "--model", "tree", "-o", out)
    assert (simtree.load(out).splitter, simtree.load(out).max_depth) == ("cut", 5)
    done = run("fit", folder / "train.csv", *COLUMNS, "--model", "auto", "--depth", 3, code=1)
    assert "--splitter and --depth are for a tree or a forest" in done.stderr
    assert "banana" in run("fit", folder / "train.csv", *FIT, "--splitter", "banana", code=2).stderr
    assert set(_fit.SplitterName) == set(simtree.splitters.BY_NAME)
    assert f", {simtree.SimilarityForest().max_depth} of a forest" in " ".join(run("fit", "--help").stdout.split())


def test_trees_are_those_of_a_forest(folder, tmp_path):
    done = run("fit", folder / "train.csv", *FIT, "--model", "tree", "-o", tmp_path / "m.simtree", code=1)
    assert "--trees is for a forest; leave it out with --model tree." in done.stderr


def test_fit_names_its_features(folder, tmp_path):
    done = run("fit", folder / "train.csv", *FIT, "-o", tmp_path / "m.simtree")
    assert "'hold', 'flight', 'press', 'tilt'" in done.stdout
    assert "none: too few trees" in done.stdout


def test_every_model_without_explanations_is_known_by_name():
    from simtree.cli._explain import UNEXPLAINED
    from simtree.io._registry import MODEL, get_class, known_names

    models = [get_class(MODEL, name) for name in known_names(MODEL)]
    assert {model for model in models if not hasattr(model, "explain_pair")} == set(UNEXPLAINED)
