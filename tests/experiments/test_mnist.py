"""The experiment on MNIST, at a tiny size: on drawn images always, on the real ones where there is a folder of data."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
from urllib.error import URLError

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest

from conftest import TINY_MNIST, drawn_images
from simtree.experiments import _mnist as mnist
from simtree.experiments._results import Order

pytestmark = pytest.mark.slow

WITHOUT_TORCH = importlib.util.find_spec("torch") is None


@pytest.fixture(scope="module")
def result(mnist_out):
    return json.loads((mnist_out / "mnist.json").read_text())


def test_every_model_that_can_be_learned_is_there(result):
    left_out = {"network_0.01", "network_0.0001"} if WITHOUT_TORCH else set()
    assert [entry["model"] for entry in result["models"]] == [key for key in mnist.TITLES if key not in left_out]
    assert set(result["missing"]) == ({"network 0.01", "network 0.0001"} if WITHOUT_TORCH else set())
    for entry in result["models"]:
        (run,) = entry["runs"]
        for value, (low, high) in zip([run["auc"], *run["tpr"]], [run["auc_interval"], *run["tpr_interval"]], strict=True):
            assert 0.0 <= low <= high <= 1.0
            assert low <= value <= high
        assert run["tpr"] == sorted(run["tpr"], reverse=True)
        assert len(run["curve"]) == len(result["grid"])
    aucs = {entry["model"]: entry["runs"][0]["auc"] for entry in result["models"]}
    assert aucs["best_forest"] > 0.7
    assert min(aucs["fisher_boosting"], aucs["kernel_forest"]) > 0.7


def test_files_and_section(mnist_out, result):
    text = (mnist_out / "mnist.md").read_text()
    assert text == mnist.section(result) + "\n"
    assert "| forest as in the paper | 0." in text
    assert ("Left out" in text) == WITHOUT_TORCH
    assert (mnist_out / "mnist.png").read_bytes().startswith(b"\x89PNG")


def test_finished_models_are_not_learned_again(mnist_folder, mnist_out, monkeypatch):
    def fail(*_):
        raise AssertionError("learned again")

    monkeypatch.setattr(mnist, "one_model", fail)
    before = (mnist_out / "mnist.png").read_bytes()
    mnist.run(Order(mnist_out, 1, 0, 1, "simtree reproduce mnist"), folder=mnist_folder, sizes=TINY_MNIST)
    assert (mnist_out / "mnist.png").read_bytes() == before


def test_other_images_are_not_mixed_in(mnist_folder, mnist_out, monkeypatch):
    X, y, X_test, y_test = mnist.find_images(mnist_folder)
    monkeypatch.setattr(mnist, "find_images", lambda _: (X, y[::-1], X_test, y_test))
    with pytest.raises(ValueError, match="holds runs with labels="):
        mnist.run(Order(mnist_out, 1, 0, 1, "simtree reproduce mnist"), folder=mnist_folder, sizes=TINY_MNIST)


def test_runs_differ_and_are_averaged(mnist_folder, tmp_path, result):
    data = mnist.Data.prepare(mnist.find_images(mnist_folder), TINY_MNIST, 0)
    first, second = (mnist.one_model(data, "our best forest", mnist.Run(TINY_MNIST, 0, r, 1))["best_forest"] for r in (0, 1))
    assert first["auc"] == result["models"][5]["runs"][0]["auc"]
    assert first["auc"] != second["auc"]
    changed = copy.deepcopy(result)
    changed["models"][5]["runs"] = [first, second]
    low, high = np.mean([first["auc_interval"], second["auc_interval"]], axis=0)
    shown = f"| {mnist.TITLES['best_forest']} | {(first['auc'] + second['auc']) / 2:.4f} ({low:.4f} to {high:.4f}) |"
    assert shown in mnist.section(changed)


@pytest.mark.parametrize(("network", "says"), [(0.99, "Our results agree"), (0.5, "Our results **disagree**")])
def test_findings_follow_the_metrics(result, network, says):
    changed = copy.deepcopy(result)
    aucs = {"lmnn_inner": 0.7, "paper_forest": 0.8, "network_0.01": network}
    changed["models"] = [{"model": key, "runs": [{**result["models"][0]["runs"][0], "auc": auc}]} for key, auc in aucs.items()]
    assert says in mnist.section(changed)


def test_images_come_from_openml_without_a_folder(monkeypatch):
    X, y = drawn_images(7, 0)
    monkeypatch.delenv("SIMTREE_DATA", raising=False)

    def fetch(name, **parameters):
        assert name == "mnist_784"
        X_all, y_all = np.zeros((70_000, 784)), np.full(70_000, "0", dtype=object)
        X_all[-7:], y_all[-7:] = X, y.astype(str)
        return X_all, y_all

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    train_X, train_y, test_X, test_y = mnist.find_images(None)
    assert (len(train_X), len(train_y), len(test_X)) == (60_000, 60_000, 10_000)
    np.testing.assert_array_equal(test_X[-7:], X)
    np.testing.assert_array_equal(test_y[-7:], y)


def test_offline_and_without_a_folder_one_sentence_says_what_to_do(monkeypatch):
    monkeypatch.delenv("SIMTREE_DATA", raising=False)

    def fetch(*_, **__):
        raise URLError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(
        OSError, match=r"no route to host.*; give the folder of its four idx files with --data, or set SIMTREE_DATA"
    ):
        mnist.find_images(None)


def test_quick_is_a_tenth():
    quick, full = mnist.Sizes.quick(), mnist.Sizes()
    assert quick.images * 10 == full.images
    assert quick.test_pairs * 10 == full.test_pairs
    assert quick.pairs * 10 == full.pairs
    assert quick.trees == full.trees


@pytest.mark.skipif(not os.environ.get("SIMTREE_DATA"), reason="SIMTREE_DATA is not set: no folder with MNIST's idx files")
@pytest.mark.filterwarnings("ignore:refill=True lowers")
def test_on_real_images(tmp_path):
    mnist.run(Order(tmp_path, 1, 0, 2, "simtree reproduce mnist"), sizes=TINY_MNIST)
    aucs = {entry["model"]: entry["runs"][0]["auc"] for entry in json.loads((tmp_path / "mnist.json").read_text())["models"]}
    assert 0.7 < aucs["euclidean"] < 0.8
    assert 0.75 < aucs["cosine"] < 0.86
    assert aucs["best_forest"] > 0.6
