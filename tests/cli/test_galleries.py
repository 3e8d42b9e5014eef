"""The verbs on galleries: tables in, tables out, and one sentence for each mistake."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gallery_files
import simtree
from gallery_stores import content
from simtree import Gallery
from simtree.cli._app import app
from simtree.evaluation import LearnedFusion
from simtree.gallery import _enrolment as enrolment

pytestmark = pytest.mark.slow

NAMES = ["hold", "flight", "press", "tilt"]
LABEL = ["--label", "person"]


def run(*arguments, code=0, **options):
    # Wide, so that no sentence is broken into lines.
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"}, **options)
    assert done.exit_code == code, (done.output, done.exception)
    if code == 1:
        assert done.stdout == ""
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
    return done


def table(done):
    return pd.read_csv(io.StringIO(done.stdout), dtype={"id": str})


def people(n, first, samples=3, seed=0):
    """Samples of people, whose names are digits."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), samples)
    frame = pd.DataFrame(rng.normal(size=(n, 4))[who] + 0.1 * rng.normal(size=(n * samples, 4)), columns=NAMES)
    frame.insert(0, "person", [f"{first + k:04d}" for k in who])
    frame.insert(1, "site", np.where(who % 2, "A", "B"))
    frame.insert(2, "floor", who % 3)
    frame.insert(3, "day", [f"2026-01-{1 + k % samples:02d}" for k in range(len(who))])
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("galleries")
    known = people(20, 1)
    known[known["day"] != "2026-01-03"].to_csv(made / "known.csv", index=False)
    known[known["day"] == "2026-01-03"].to_csv(made / "new.csv", index=False)
    people(60, 500, samples=2, seed=1).to_csv(made / "strangers.csv", index=False)
    train = people(20, 900, seed=2)
    simtree.GaussianSimilarity().fit(train[NAMES], train["person"]).save(made / "m.simtree")
    simtree.DistanceSimilarity(metric="euclidean").fit(train[NAMES], train["person"]).save(made / "other.simtree")
    return made


@pytest.fixture
def gallery(folder, place):
    path = place()
    run(
        "enroll",
        path,
        folder / "known.csv",
        *LABEL,
        "--model",
        folder / "m.simtree",
        "--metadata",
        "site,floor",
        "--time",
        "day",
    )
    return path


def test_from_a_table_to_an_answer(folder, gallery, tmp_path):
    new = pd.read_csv(folder / "new.csv", dtype={"person": str})
    found = table(run("identify", gallery, folder / "new.csv", "-k", 3))
    with Gallery.open(gallery) as opened:
        answer = opened.identify(new[NAMES], k=3).to_frame()
        claims = opened.verify(new["person"], new[NAMES]).to_frame()
        assert opened.ids() == sorted(set(new["person"]))  # digits stay text
    pd.testing.assert_frame_equal(found, answer, check_dtype=False)
    assert found.columns.tolist() == ["query", "rank", "id", "score", "probability", "expected_false_matches"]
    assert run("identify", gallery, folder / "new.csv", "-o", tmp_path / "found.csv").stderr.startswith("Written: 200 rows to")
    verified = table(run("verify", gallery, folder / "new.csv", *LABEL))
    np.testing.assert_allclose(verified["score"], claims["score"])
    assert verified["accepted"].tolist() == claims["accepted"].astype(int).tolist()
    assert json.loads(run("verify", gallery, folder / "new.csv", *LABEL, "--json").stdout)["n_claims"] == 20


def test_the_five_commands_of_the_page(folder, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "gallery.md").read_text(encoding="utf-8")
    commands = page.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert len(commands) == 5
    monkeypatch.chdir(tmp_path)
    people(40, 900, samples=4, seed=2)[["person", *NAMES]].to_csv("train.csv", index=False)
    for name, source in {"known": "known", "strangers": "strangers", "queries": "new", "claims": "new"}.items():
        pd.read_csv(folder / f"{source}.csv", dtype=str).drop(columns=["floor", "day"]).to_csv(f"{name}.csv", index=False)
    done = [run(*shlex.split(command)[1:]) for command in commands]
    assert "Calibrated: FPIR <= 0.05 with 95 % confidence for strangers like the 60 searched" in done[2].stdout
    assert len(table(done[4])) == 20


def test_progress_does_not_disturb_the_answer(folder, gallery, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    for command, said in [
        (["enroll", gallery, folder / "new.csv", *LABEL], "enrolling"),
        (["identify", gallery, folder / "new.csv"], "searching"),
        (["gallery", "re-enroll", gallery, folder / "other.simtree"], "preparing all samples"),
        (["gallery", "calibrate", gallery, folder / "strangers.csv", *LABEL], "searching"),
        (["gallery", "backup", gallery, tmp_path / "b"], "copying"),
        (["remove", gallery, "0001", "--compact"], "erasing"),
    ]:
        done = run(*command, "--json")
        assert said in done.stderr
        assert json.loads(done.stdout)["gallery"] == str(gallery)


def test_queries_may_come_from_standard_input_and_have_names(folder, gallery):
    text = (folder / "new.csv").read_text()
    named = table(run("identify", gallery, "-", "-k", 1, "--id", "person", input=text))
    assert named["query"].astype(str).str.zfill(4).tolist() == named["id"].tolist()


def test_long_tables_are_answered_block_by_block(folder, gallery, monkeypatch):
    whole = table(run("identify", gallery, folder / "new.csv", "-k", 2))
    monkeypatch.setattr("simtree.cli._reading.ROWS", 7)
    pd.testing.assert_frame_equal(table(run("identify", gallery, folder / "new.csv", "-k", 2)), whole)
    run("gallery", "calibrate", gallery, folder / "strangers.csv", *LABEL)
    alive, made = [], []

    def remembered(self, *given, **options):
        answer = identify(self, *given, **options)
        made.append(weakref.ref(answer))
        alive.append(sum(one() is not None for one in made))
        return answer

    identify = Gallery.identify
    monkeypatch.setattr(Gallery, "identify", remembered)
    done = run("identify", gallery, folder / "new.csv", "-k", 2, "--max-fpir", 0.5)
    assert done.stderr.startswith("20 queries, 20 with candidates: FPIR <= 0.5")
    assert len(alive) == 3
    assert max(alive) <= 2  # memory does not grow with the table


def test_long_tables_are_enrolled_as_a_whole(folder, gallery, place, tmp_path, monkeypatch):
    """They are read block by block, and nothing depends on where a block ends."""
    with Gallery.open(gallery) as opened:
        whole = content(opened)
    options = [*LABEL, "--model", folder / "m.simtree", "--metadata", "site,floor", "--time", "day"]
    monkeypatch.setattr("simtree.cli._reading.ROWS", 7)
    run("enroll", place("blocks"), folder / "known.csv", *options)
    with Gallery.open(place("blocks")) as opened:
        parts = content(opened)
    assert [parts[table] for table in ("block", "vectors", "metadata")] == [whole[t] for t in ("block", "vectors", "metadata")]
    mixed = pd.read_csv(folder / "known.csv", dtype=str)
    mixed.loc[30:31, "floor"] = "attic"  # so that the column is text, in all blocks
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    run("enroll", place("mixed"), tmp_path / "mixed.csv", *options)
    with Gallery.open(place("mixed")) as opened:
        assert opened.identify(mixed[NAMES][:1].astype(float), where={"floor": "0"}).n_identities == 6
    mixed.loc[33, "press"] = "x"
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    done = run("enroll", place("mixed"), tmp_path / "mixed.csv", *options[:2], code=1)
    assert "mixed.csv: column 'press', row 33 (line 35)" in done.stderr
    huge = pd.read_csv(folder / "new.csv", dtype={"person": str})
    huge.loc[3, "tilt"] = 1e200
    huge.to_csv(tmp_path / "huge.csv", index=False)
    done = run("enroll", place("huge"), tmp_path / "huge.csv", *LABEL, "--model", folder / "m.simtree", "--float32", code=1)
    assert "X has a value in column 3 that float32 cannot hold" in done.stderr


def test_where_filters_by_text_and_by_numbers(folder, gallery):
    def ids(*options):
        return set(table(run("identify", gallery, folder / "new.csv", *options))["id"].astype(int) - 1)

    assert ids("--where", "site=A") == {k for k in range(20) if k % 2}
    assert ids("--where", "floor=2", "--where", "floor=1") == {k for k in range(20) if k % 3}
    assert ids("--where", "floor=2", "--where", "site=B") == {k for k in range(20) if k % 3 == 2 and not k % 2}
    assert "where names 'town'" in run("identify", gallery, folder / "new.csv", "--where", "town=A", code=1).stderr
    assert "is not NAME=VALUE" in run("identify", gallery, folder / "new.csv", "--where", "town", code=2).stderr


def test_unknown_people_have_no_candidates(folder, gallery):
    done = run("identify", gallery, folder / "new.csv", "--max-fpir", 0.05, code=1)
    assert "max_fpir needs a calibrated gallery" in done.stderr
    done = run("gallery", "calibrate", gallery, folder / "strangers.csv", *LABEL, "--max-fpir", 0.01, code=1)
    assert (
        "takes 299 identities that are not enrolled, and there are 60; calibrate with more identities, or allow 0.049"
        in done.stderr
    )
    result = json.loads(run("gallery", "calibrate", gallery, folder / "strangers.csv", *LABEL, "--json").stdout)
    assert (result["max_fpir"], result["n_strangers"]) == (0.05, 60)
    done = run("identify", gallery, folder / "strangers.csv", "--max-fpir", 0.05)
    assert len(table(done)) == 0
    assert done.stderr == f"120 queries, 0 with candidates: {result['promise']}.\n"
    answer = json.loads(run("identify", gallery, folder / "new.csv", "--max-fpir", 0.05, "--json").stdout)
    assert answer["promise"] == result["promise"]
    assert answer["candidates"]
    assert all(found["score"] >= answer["threshold"] for found in answer["candidates"])
    assert "calibrated for FPIR <= 0.05 with 60 identities" in run("gallery", "show", gallery).stdout


def test_enrolment_is_all_or_nothing(folder, tmp_path, place):
    path = place("new")
    done = run("enroll", path, folder / "known.csv", *LABEL, code=1)
    assert f"there is no gallery {path}; give --model MODEL to make it" in done.stderr
    bad = pd.read_csv(folder / "known.csv", dtype={"person": str})
    bad.loc[7, "press"] = np.nan
    bad.to_csv(tmp_path / "bad.csv", index=False)
    done = run("enroll", path, tmp_path / "bad.csv", *LABEL, "--model", folder / "m.simtree", code=1)
    assert "bad.csv: column 'press', row 7 (line 9) is empty" in done.stderr
    assert not list(tmp_path.glob("*gallery*"))
    with pytest.raises(FileNotFoundError):
        Gallery.open(path)
    run("enroll", path, folder / "known.csv", *LABEL, "--model", folder / "m.simtree")
    run("enroll", path, tmp_path / "bad.csv", *LABEL, code=1)
    with Gallery.open(path) as gallery:
        assert len(gallery) == 20


def test_a_new_gallery_is_not_there_before_its_samples(folder, place, tmp_path, monkeypatch):
    path, seen = place("new"), []

    def fail(*_):
        with pytest.raises(FileNotFoundError, match="there is no gallery"):
            Gallery.open(path)
        seen.append(path)
        raise OSError("the disk is full")

    monkeypatch.setattr("simtree.gallery._enrolment.merge_blocks", fail)
    done = run("enroll", path, folder / "known.csv", *LABEL, "--model", folder / "m.simtree", code=1)
    assert done.stderr == "Error: the disk is full\n"
    assert seen
    with pytest.raises(FileNotFoundError):
        Gallery.open(path)
    assert not list(tmp_path.iterdir())


def test_what_others_have_enrolled_meanwhile_stays(folder, tmp_path, monkeypatch):
    path, merge = tmp_path / "new.gallery", enrolment.merge_blocks
    with Gallery.create(tmp_path / "other.gallery", simtree.load(folder / "m.simtree")) as other:
        other.enroll(["somebody"], people(1, 900)[NAMES][:1])

    def be_overtaken(*given):
        (tmp_path / "other.gallery").rename(path)
        merge(*given)

    monkeypatch.setattr(enrolment, "merge_blocks", be_overtaken)
    done = run("enroll", path, folder / "known.csv", *LABEL, "--model", folder / "m.simtree", code=1)
    assert done.stderr == f"Error: {path} exists; choose another name, or remove it first.\n"
    assert [file.name for file in tmp_path.iterdir()] == ["new.gallery"]
    with Gallery.open(path) as gallery:
        assert gallery.ids() == ["somebody"]


def test_a_schema_that_the_operator_has_made_stays(folder, postgres_server, tmp_path):
    with postgres_server.connected() as admin:
        admin.execute("CREATE SCHEMA of_operator; COMMENT ON SCHEMA of_operator IS 'for the gallery'")
    (tmp_path / "bad.csv").write_text((folder / "known.csv").read_text() + "0001,,,,1,2,3,x\n")
    command = ["enroll", postgres_server.address("of_operator"), tmp_path / "bad.csv", *LABEL, "--model", folder / "m.simtree"]
    run(*command, code=1)
    run(*command[:2], folder / "known.csv", *command[3:], "--on-duplicate", "raise", code=1)
    with postgres_server.connected() as admin:
        kept = admin.execute("SELECT obj_description('of_operator'::regnamespace)").fetchone()
    assert kept == ("for the gallery",)


def test_the_age_of_samples_counts(folder, tmp_path, monkeypatch):
    """A fusion that depends on age takes the times of queries, claims and strangers, in each block of a table."""
    path, known = tmp_path / "aged.gallery", pd.read_csv(folder / "known.csv", dtype={"person": str})
    model = simtree.load(folder / "m.simtree")
    model.learned_fusion_ = LearnedFusion(0.0, np.inf, 1.0, 0.0, of_age=-2.0, newest=(0.0, 1e9), age_unit=86400.0)
    protocol = {"enrol": known["day"] == "2026-01-01", "fusion": "learned", "time": 0.0}
    model.calibrate_threshold(known[NAMES], known["person"], confidence=None, max_fpr=0.1, **protocol)
    model.save(tmp_path / "aged.simtree")
    options = [*LABEL, "--model", tmp_path / "aged.simtree", "--fusion", "learned", "--time", "day"]
    run("enroll", path, folder / "known.csv", *options)
    new = pd.read_csv(folder / "new.csv", dtype={"person": str})
    days = pd.Series(np.arange("2026-02-01", "2026-02-21", dtype="datetime64[D]").astype("datetime64[s]"))
    seconds = days.astype(np.int64)
    strangers = pd.read_csv(folder / "strangers.csv", dtype={"person": str}).assign(day="2026-02-01")
    strangers.to_csv(tmp_path / "strangers.csv", index=False)
    monkeypatch.setattr("simtree.cli._reading.ROWS", 7)
    for column in (days.dt.strftime("%Y-%m-%d"), seconds):
        new.assign(day=column).to_csv(tmp_path / "dated.csv", index=False)
        found = table(run("identify", path, tmp_path / "dated.csv", "-k", 1, "--time", "day"))
        named = table(run("identify", path, tmp_path / "dated.csv", "-k", 1, "--time", "day", "--id", "person"))
        claims = table(run("verify", path, tmp_path / "dated.csv", *LABEL, "--time", "day"))
        with Gallery.open(path) as opened:
            expected = opened.identify(new[NAMES], k=1, time=days.to_numpy()).score
            claimed = opened.verify(new["person"], new[NAMES], time=days.to_numpy()).score
        np.testing.assert_allclose(found["score"], expected)
        np.testing.assert_allclose(named["score"], expected)
        np.testing.assert_allclose(claims["score"], claimed)
    run("gallery", "calibrate", path, tmp_path / "strangers.csv", *LABEL, "--time", "day")
    with Gallery.open(path) as opened:
        when = opened._session.state().strangers.times
    assert when.earliest == when.latest == np.datetime64("2026-02-01", "s").astype(int)


def test_more_samples_come_later_and_the_oldest_go(folder, place):
    path = place("g")
    options = ["--model", folder / "m.simtree", "--max-samples", 2, "--fusion", "top_mean", "--n-best", 2]
    options += ["--float32", "--no-vectors"]
    run("enroll", path, folder / "known.csv", *LABEL, *options, "--time", "day")
    done = json.loads(run("enroll", path, folder / "new.csv", *LABEL, "--time", "day", "--json").stdout)
    assert (done["n_samples"], done["n_new"], done["n_dropped"], done["n_samples_in_gallery"]) == (20, 0, 20, 40)
    shown = json.loads(run("gallery", "show", path, "--json").stdout)
    assert (shown["fusion"], shown["n_best"], shown["max_samples"]) == ("top_mean", 2, 2)
    assert (shown["dtype"], shown["has_vectors"]) == ("float32", False)
    assert "at most 2, the newest" in run("gallery", "show", path).stdout
    done = run("enroll", path, folder / "new.csv", *LABEL, "--fusion", "max", code=1)
    assert "are for a new gallery; leave them out" in done.stderr
    done = run("enroll", path, folder / "new.csv", *LABEL, "--model", folder / "other.simtree", code=1)
    assert "has another model (GaussianSimilarity) than the one given" in done.stderr
    done = run("gallery", "re-enroll", path, folder / "other.simtree", code=1)
    assert "keep_vectors=False" in done.stderr
    done = run("enroll", path, folder / "new.csv", *LABEL, "--time", "site", code=1)
    assert "column 'site' has the time 'B' or another that cannot be read" in done.stderr


def test_duplicates_are_reported_or_refused(folder, gallery, tmp_path):
    again = pd.read_csv(folder / "known.csv", dtype={"person": str})[:1].assign(person="somebody else")
    again.to_csv(tmp_path / "again.csv", index=False)
    done = run("enroll", gallery, tmp_path / "again.csv", *LABEL, "--on-duplicate", "raise", code=1)
    assert "row 0 of 'somebody else', which matches '0001'" in done.stderr
    done = run("enroll", gallery, tmp_path / "again.csv", *LABEL, "--on-duplicate", "warn")
    assert done.stderr.startswith("Warning: 1 sample to enrol match another identity")


def test_removed_people_are_erased_on_request(folder, gallery):
    done = run("remove", gallery, "0001", "0002")
    assert done.stdout == (
        f"Removed: 2 identities with 4 samples. {gallery} holds 18 identities. "
        f"Not yet erased: run simtree gallery compact {gallery}\n"
    )
    assert "4 samples; run `simtree gallery compact`" in run("gallery", "show", gallery).stdout
    done = run("gallery", "compact", gallery).stdout
    assert "Nothing of what was removed is left in it" in done
    assert ("the server's write-ahead log and backups are not touched" in done) == ("postgresql" in str(gallery))
    assert json.loads(run("remove", gallery, "0003", "--compact", "--json").stdout)["erased"]
    assert "the id '9999' is not enrolled" in run("remove", gallery, "9999", code=1).stderr


def test_those_who_leave_may_be_in_a_table(folder, tmp_path):
    path, leaving = tmp_path / "g", tmp_path / "leaving.csv"
    run("enroll", path, folder / "known.csv", *LABEL, "--model", folder / "m.simtree")
    leaving.write_text("reason,who\nmoved,0001\nmoved,0002\nmoved,0001\n")
    done = json.loads(run("remove", path, "0003", "--from", leaving, "--label", "who", "--compact", "--json").stdout)
    assert (done["n_removed"], done["n_samples"], done["erased"]) == (3, 6, True)
    done = run("remove", path, "--from", "-", "--label", "who", input="who\n0004\n0001\n", code=1)
    assert "the id '0001' is not enrolled" in done.stderr
    assert run("remove", path, "--from", "-", "--label", "who", input="who\n0004\n").stdout.startswith(
        "Removed: 1 identity with"
    )
    with Gallery.open(path) as gallery:
        assert gallery.ids() == [f"{k:04d}" for k in range(5, 21)]
    assert "has no column 'whose'" in run("remove", path, "--from", leaving, "--label", "whose", code=1).stderr
    assert "--from TABLE and --label COL go together" in run("remove", path, "--from", leaving, code=2).stderr
    assert "give the identities to remove, or --from TABLE" in run("remove", path, code=2).stderr


def test_another_model_takes_over(folder, gallery, tmp_path):
    done = run("gallery", "re-enroll", gallery, folder / "other.simtree")
    assert "for 40 samples. Calibrate it again before you use --max-fpir." in done.stdout
    assert (table(run("identify", gallery, folder / "known.csv", "-k", 1))["score"] == 0.0).all()
    model = simtree.load(folder / "other.simtree").set_threshold(-0.5)
    model.save(tmp_path / "t.simtree")
    assert "the same scores as before" in run("gallery", "re-enroll", gallery, tmp_path / "t.simtree").stdout
    assert json.loads(run("gallery", "re-enroll", gallery, tmp_path / "t.simtree", "--json").stdout)["same_scores"]


def test_backup_and_audit(folder, gallery, tmp_path):
    assert run("gallery", "backup", gallery, tmp_path / "b").stdout.startswith(f"Written: {tmp_path / 'b'}, ")
    assert json.loads(run("gallery", "show", tmp_path / "b", "--json").stdout)["n_samples"] == 40
    assert "exists; choose another name" in run("gallery", "backup", gallery, tmp_path / "b", code=1).stderr
    trail = table(run("gallery", "audit", gallery))
    assert trail["action"].tolist() == ["create", "enroll"]
    assert pd.to_datetime(trail["time"]).dt.tz is not None
    entries = json.loads(run("gallery", "audit", gallery, "--id", "0001", "--json").stdout)["entries"]
    assert [entry["action"] for entry in entries] == ["enroll"]


def test_searches_are_audited_if_asked_for(folder, place):
    run("enroll", place("g"), folder / "known.csv", *LABEL, "--model", folder / "m.simtree", "--audit-searches")
    run("identify", place("g"), folder / "new.csv")
    run("verify", place("g"), folder / "new.csv", *LABEL)
    assert table(run("gallery", "audit", place("g")))["action"].tolist()[-2:] == ["identify", "verify"]


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_tables_without_rows(folder, gallery, tmp_path, end):
    empty = pd.read_csv(folder / "new.csv")[:0]
    file = tmp_path / f"empty.{end}"
    empty.to_csv(file, index=False) if end == "csv" else empty.to_parquet(file)
    for command in (
        ["identify", gallery, file],
        ["identify", gallery, file, "--json"],
        ["verify", gallery, file, *LABEL],
        ["enroll", gallery, file, *LABEL],
        ["gallery", "calibrate", gallery, file, *LABEL],
    ):
        assert run(*command, code=1).stderr == f"Error: empty.{end} has no rows; give at least one.\n"


def test_files_that_are_no_galleries(folder, tmp_path):
    (tmp_path / "people.gallery").touch()
    assert "did you mean people.gallery?" in run("gallery", "show", tmp_path / "poeple.gallery", code=1).stderr
    done = run("identify", folder / "new.csv", folder / "new.csv", code=1)
    assert "new.csv is not a gallery of simtree; give another one." in done.stderr


def test_columns_that_are_missing(gallery):
    assert "has no column 'hold', which the model names" in run("identify", gallery, "-", code=1, input="a,b\n1,2\n").stderr


def test_an_older_gallery_is_upgraded_after_a_backup(tmp_path):
    path = shutil.copy(Path(gallery_files.FOLDER, "version_1.gallery"), tmp_path / "old.gallery")
    assert "simtree gallery upgrade" in run("gallery", "show", path, code=1).stderr
    done = run("gallery", "upgrade", path)
    assert done.stdout == f"Upgraded: {path}. As it was before: {path}.version_1\n"
    assert json.loads(run("gallery", "show", path, "--json").stdout)["schema_version"] == 2
    assert "has the present version; nothing was done" in run("gallery", "upgrade", path).stdout
    result = json.loads(run("gallery", "upgrade", f"{path}.version_1", "--backup", tmp_path / "b", "--json").stdout)
    assert result == {"gallery": f"{path}.version_1", "upgraded": True, "backup": str(tmp_path / "b")}


def test_a_gallery_moves_to_postgresql(folder, postgres_server, tmp_path):
    file, address = tmp_path / "people.gallery", postgres_server.address("moved")
    run("enroll", file, folder / "known.csv", *LABEL, "--model", folder / "m.simtree")
    assert run("gallery", "backup", file, address).stdout.startswith(f"Written: {address}, ")
    answers = [run("identify", place, folder / "new.csv", "-k", 1).stdout for place in (file, address)]
    assert answers[0] == answers[1]
    assert "nothing was done" in run("gallery", "upgrade", address).stdout


def test_a_password_on_the_command_line_is_not_repeated(folder, postgres_server, tmp_path):
    address = postgres_server.address("typed", user="postgres:pa55word")  # which this server does not ask for
    done = [run("enroll", address, folder / "known.csv", *LABEL, "--model", folder / "m.simtree", "--metadata", "site")]
    for command in (
        ["enroll", address, folder / "new.csv", *LABEL, "--json"],
        ["identify", address, folder / "new.csv", "--json"],
        ["verify", address, folder / "new.csv", *LABEL, "--json"],
        ["gallery", "calibrate", address, folder / "strangers.csv", *LABEL],
        ["gallery", "show", address],
        ["gallery", "show", address, "--json"],
        ["gallery", "audit", address],
        ["gallery", "backup", address, tmp_path / "b"],
        ["gallery", "backup", tmp_path / "b", address.replace("typed", "copied")],
        ["gallery", "re-enroll", address, folder / "other.simtree"],
        ["gallery", "upgrade", address],
        ["remove", address, "0001"],
        ["gallery", "compact", address],
    ):
        done.append(run(*command))
    for command in (
        ["enroll", address, folder / "new.csv", *LABEL, "--fusion", "max"],
        ["enroll", address.replace("typed", "none"), folder / "new.csv", *LABEL],
        ["remove", address, "9999"],
        ["gallery", "show", address.replace("typed", "none")],
        ["gallery", "show", address.replace("simtree_tests", "none")],
    ):
        done.append(run(*command, code=1))
    assert not [one.output for one in done if "pa55word" in one.output]
