"""The report: what it says, what it leaves out, and that it is one file."""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import itertools
import json
import re
import struct
import sys
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.decomposition import PCA

import simtree.report
from report_people import held_out, model_of, people
from simtree import DistanceSimilarity, GaussianSimilarity, SimilarityTree, evaluate
from simtree.evaluation._report import ThresholdRates
from simtree.metrics import eer, roc_curve
from simtree.models._description import describe
from simtree.pairs._coordinates import CoordinateSet
from simtree.report._enrolment import eer_by_enrolled
from simtree.report._hardest import ScoredPair, Watched
from simtree.report._images import grey_image, signed_image
from simtree.report._pairs import describe_pair, rows_as_fitted
from simtree.report._sections import describe_model, hardest
from simtree.report._tree import tree_of
from simtree.report._words import beginnings, opposite_in_words, percent, rule_in_words, what_it_does
from simtree.report._write import MAX_HARDEST, hash_of, max_pixels
from simtree.representation import MarginalQuantiles
from simtree.trees import INSIDE, OUTSIDE, AxisRegion, Explanation

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The report of a tree with subgroups, of a forest without samples, and of a forest with them."""
    folder = tmp_path_factory.mktemp("pages")
    X, y, camera = held_out()
    options = {
        "tree": {"by": camera},
        "forest": {"image_shape": (3, 3)},
        "shown": {"with_samples": True, "image_shape": (3, 3)},
    }
    for name, given in options.items():
        simtree.report.write(model_of("tree" if name == "tree" else "forest"), X, y, folder / f"{name}.html", **given)
    return {name: (folder / f"{name}.html").read_text() for name in options}


def without_vega(page):
    """The page without the bundle of Vega, in which any number can be found."""
    data, _, rest = page.partition("<script>")
    return data + rest.rpartition("<script>")[2]


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])


class Elements(HTMLParser):
    """Start tags of a page with their attributes, and the text of its scripts."""

    def __init__(self, page):
        super().__init__()
        self.found, self.scripts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, text):
        if self.cdata_elem == "script":
            self.scripts.append((self.found[-1][1], text))


def test_no_sample_is_in_the_file_unless_asked_for(pages):
    X, y, _ = held_out()
    written = [text for value in X.to_numpy().ravel() for text in (f"{value:.2f}", f"{value:.3f}", repr(float(value)))]
    for name in ("tree", "forest"):
        page = without_vega(pages[name])
        assert not [value for value in written if value in page]
        assert not [label for label in set(y) if label in page]
        assert "Xanthippe" not in page
        assert page.count("data:image") == (name == "forest"), "importances only"
        assert "Rows " in page
    shown = without_vega(pages["shown"])
    assert [label for label in set(y) if label in shown]
    assert shown.count("data:image") == 1 + 6 * 3


def test_values_are_shown_of_samples_that_are_not_images(tmp_path):
    X, y, _ = held_out()
    simtree.report.write(model_of("forest"), X, y, tmp_path / "page.html", with_samples=True, n_hardest=1)
    page = without_vega((tmp_path / "page.html").read_text())
    assert [value for value in X.to_numpy().ravel() if f"{value:.4g} and " in page]


def test_a_table_with_words_and_a_column_in_another_place_has_a_report(tmp_path):
    X, y, _ = held_out()
    town, note = (
        np.array(["Reykjavik", "Ouagadougou", "Tegucigalpa"])[np.arange(len(y)) // 4 % 3],
        np.arange(len(y)).astype(str),
    )
    table = X[["feature 0", "feature 1"]].assign(note=note)
    table.insert(1, "town", town)
    with pytest.warns(UserWarning, match="note"):  # different in every row, and left out
        model = SimilarityTree(max_depth=3, random_state=0).fit(table, y)
    shuffled = table[["feature 1", "feature 0", "town"]]
    simtree.report.write(model, shuffled, y, tmp_path / "page.html")
    page = without_vega((tmp_path / "page.html").read_text())
    assert hash_of(rows_as_fitted(model, shuffled), y) in page
    assert "feature 0: " not in page
    result = simtree.report.write(model, shuffled, y, tmp_path / "page.html", with_samples=True, n_hardest=4)
    page = without_vega((tmp_path / "page.html").read_text())
    assert result.n_samples == len(y)
    rows = [tuple(map(int, pair)) for pair in re.findall(r"Rows (\d+) and (\d+): score", page)]
    assert len(rows) == 8
    for first, second in rows:
        for name in ("feature 0", "feature 1"):
            assert f"{name}: {table[name][first]:.4g} and {table[name][second]:.4g}" in page
        assert f"town: {town[first][:8]} and {town[second][:8]}" in page


def test_the_hash_of_words_is_that_of_lines_of_text():
    words = np.array([["Rome", 1.5], [None, 2.0]], dtype=object)
    assert hash_of(words, np.array(["a", "b"])) == hashlib.sha256(b"Rome\n1.5\nNone\n2.0\na\nb").hexdigest()
    numbers = np.array([[1.0, 2.5]])
    assert hash_of(numbers.astype(object), np.array([7])) == hashlib.sha256(numbers.astype("<f8").tobytes() + b"7").hexdigest()


@pytest.mark.parametrize(
    ("representation", "is_kept"), [(PCA(9), False), (MarginalQuantiles(), True)], ids=["PCA", "quantiles"]
)
def test_values_and_pixels_are_those_of_samples_also_behind_a_representation(tmp_path, representation, is_kept):
    X, y, _ = held_out()
    model = SimilarityTree(max_depth=2, representation=representation, random_state=0).fit(X, y)
    pair = ScoredPair(0, 5, 1.0)
    shown = describe_pair(model, pair, X.to_numpy(), y, threshold=0.0, with_samples=True, image_shape=None)
    name = shown.contributions[0][0]
    if is_kept:
        j = int(name.removeprefix("feature ").partition(":")[0])
        assert name == f"feature {j}: {X.iloc[0, j]:.4g} and {X.iloc[5, j]:.4g}"
    else:
        j = int(name.removeprefix("pca").partition(":")[0])
        first, second = model.representation_.transform(X.to_numpy()[[0, 5]])[:, j]
        assert name == f"pca{j}: {first:.4g} and {second:.4g}"
    drawn = describe_pair(model, pair, X.to_numpy(), y, threshold=0.0, with_samples=True, image_shape=(3, 3))
    assert [label for label, _ in drawn.images] == ["row 0", "row 5"] + ["contributions"] * is_kept
    simtree.report.write(model, X, y, tmp_path / "page.html", image_shape=(3, 3))
    assert ("Importance of each pixel" in without_vega((tmp_path / "page.html").read_text())) == is_kept


def test_the_file_is_one_file_and_its_policy_allows_just_its_scripts(pages):
    for page in pages.values():
        assert len(page.encode()) < 2_000_000
        elements = Elements(page)
        for tag, attributes in elements.found:
            assert tag not in ("link", "iframe", "object", "base")
            for name in ("src", "href", "action", "data", "poster", "srcset"):
                assert attributes.get(name, "#").startswith(("#", "data:image/png;base64,")), (tag, attributes)
            assert not [name for name in attributes if name.startswith("on")]
        policy = next(a["content"] for tag, a in elements.found if a.get("http-equiv") == "Content-Security-Policy")
        assert "unsafe-eval" not in policy
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        programs = [text for attributes, text in elements.scripts if "type" not in attributes]
        for text in programs:
            assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
        assert len(programs) == 2


def test_the_grid_is_the_evaluation_with_a_band_for_all_thresholds(pages):
    X, y, camera = held_out()
    model = model_of("tree")
    result = evaluate(model, X, y, by=camera, threshold=model.threshold_, simultaneous=True)
    data = data_of(pages["tree"])
    band = result.simultaneous
    assert data["grid"]["threshold"] == band.thresholds.tolist()
    assert data["grid"]["fpr"] == band.fpr.tolist()
    assert data["grid"]["tprLow"] == band.tpr_interval[:, 0].tolist()
    assert data["grid"]["threshold"][data["used"]] == model.threshold_
    text = without_vega(pages["tree"])
    for group in result.by:
        assert str(group.subgroup) in text


def test_the_page_says_what_was_guaranteed(pages):
    forest = without_vega(pages["forest"])
    report = model_of("forest").threshold_report_
    assert report.promise.replace("<=", "&lt;=") in forest
    assert data_of(pages["forest"])["usedName"] == "guaranteed threshold"
    assert "No guarantee comes with this threshold" in without_vega(pages["tree"])
    assert data_of(pages["tree"])["usedName"] == "threshold in use"


@pytest.fixture(scope="module")
def enrolled(tmp_path_factory):
    """A forest that was calibrated for scores with enrolled identities, and its page: model, mask, page and evaluation."""
    X, y, _ = people()
    is_enrolled = np.arange(len(y)) % 4 < 2
    tune, test = slice(120, 360), slice(360, None)
    model = copy.deepcopy(model_of("forest"))
    model.calibrate_threshold(X[tune], y[tune], max_fpr=0.2, enrol=is_enrolled[tune], fusion="mean")
    page = tmp_path_factory.mktemp("enrolled") / "page.html"
    X, y, _ = held_out()
    result = simtree.report.write(model, X, y, page, enrol=is_enrolled[test], fusion="mean", n_hardest=2)
    return model, is_enrolled[test], page.read_text(), result


def test_probes_against_enrolled_identities_are_evaluated_like_the_threshold_was(enrolled):
    model, is_enrolled, page, result = enrolled
    X, y, _ = held_out()
    expected = evaluate(model, X, y, enrol=is_enrolled, fusion="mean", threshold=model.threshold_, simultaneous=True)
    data, text = data_of(page), without_vega(page)
    assert (result.name, result.fusion, result.n_enrolled) == ("SimilarityForest", "mean", 30)
    assert data["grid"]["threshold"] == expected.simultaneous.thresholds.tolist()
    assert data["grid"]["fprHigh"] == expected.simultaneous.fpr_interval[:, 1].tolist()
    assert data["grid"]["threshold"][data["used"]] == expected.threshold
    assert data["usedName"] == "guaranteed threshold"
    assert "Each probe was searched among 30 enrolled identities." in text
    assert f"missed, if 10\xa0% of strangers may be found (FNIR)</th><td class=number>{percent(expected.fnir[0.1])}" in text
    assert data["commands"]["calibrate"].endswith("--label LABEL --enrol ENROL --fusion mean")


def test_the_hardest_comparisons_are_those_of_all_probes(enrolled):
    model, is_enrolled, page, _ = enrolled
    X, y, _ = held_out()
    probes, names = np.flatnonzero(~is_enrolled), np.unique(y)
    of_names = [np.flatnonzero(is_enrolled & (y == name)) for name in names]
    scores = model.pairwise_score(X)[probes[:, None, None], np.array(of_names)]
    fused, same = scores.mean(axis=2), y[probes][:, None] == names
    shown = re.findall(r"Row (\d+) and 2 enrolled samples, row (\d+) the most similar: score (\S+), (\w+)<", page)
    assert len(shown) == 4
    for at, values in ((0, np.where(same, fused, np.inf)), (2, np.where(same, -np.inf, fused))):
        place = np.unravel_index(np.argmin(values) if at == 0 else np.argmax(values), values.shape)
        best = of_names[place[1]][np.argmax(scores[place])]
        decision = "accepted" if fused[place] >= model.threshold_ else "rejected"
        assert shown[at] == (str(probes[place[0]]), str(best), f"{fused[place]:.4g}", decision)


def averaging(n_best):
    """A forest whose threshold is for the mean of so many of the best scores."""
    model = copy.copy(model_of("forest"))
    model.threshold_report_ = replace(model.threshold_report_, fusion="top_mean", n_best=n_best)
    return model


def test_a_threshold_for_other_scores_is_left_out(enrolled, tmp_path):
    X, y, _ = held_out()
    fused, is_enrolled, _, _ = enrolled
    for model, options, said in (
        (fused, {}, "for scores with enrolled identities (--fusion mean), and not for pairs of samples"),
        (
            fused,
            {"enrol": is_enrolled},
            "for scores with enrolled identities (--fusion mean), and not for scores with enrolled",
        ),
        (model_of("forest"), {"enrol": is_enrolled}, "for pairs of samples, and not for scores with enrolled identities"),
        (
            averaging(2),
            {"enrol": is_enrolled, "fusion": "top_mean", "n_best": 3},
            "for scores with enrolled identities (--fusion top_mean --n-best 2), and not for scores with enrolled identities "
            "(--fusion top_mean --n-best 3)",
        ),
    ):
        simtree.report.write(model, X, y, tmp_path / "page.html", n_hardest=1, **options)
        page = (tmp_path / "page.html").read_text()
        text = without_vega(page)
        assert f"The threshold of the model is {said}" in html.unescape(text)
        assert data_of(page)["used"] is None
        assert "guarantee: " not in text
        assert "At its threshold" not in text
        assert not re.search("score [-.0-9]+, (accepted|rejected)", text)


def test_a_learned_fusion_and_times_reach_the_evaluation(tmp_path):
    X, y, _ = held_out()
    is_enrolled, time = np.arange(len(y)) % 4 < 3, np.arange(len(y)) % 4
    model = DistanceSimilarity(metric="euclidean").fit(X, y).fit_fusion(X, y, enrol=is_enrolled, time=time)
    options = {"enrol": is_enrolled, "fusion": "learned", "time": time}
    result = simtree.report.write(model, X, y, tmp_path / "page.html", **options, enrolled=[1, 3], n_hardest=1)
    assert result.auc == evaluate(model, X, y, **options).auc
    assert (result.fusion, result.name) == ("learned", "DistanceSimilarity")
    rows = data_of((tmp_path / "page.html").read_text())["charts"]["enrolment"]["datasets"]["values"]
    assert rows[-1]["eer"] == result.eer.value


def test_the_page_says_what_was_trained_on_what(pages):
    text = without_vega(pages["forest"])
    assert "<td>120 samples of 30 identities, which make 7,140 pairs</td>" in text
    assert "<td>120 samples of 30 identities</td>" in text  # evaluated on
    del (old := copy.copy(model_of("forest"))).training_counts_
    assert ("Trained on", "not known: the model file is of an earlier version") in describe_model(describe(old))


def test_the_same_data_give_the_same_file(pages, tmp_path):
    X, y, _ = held_out()
    simtree.report.write(model_of("forest"), X, y, tmp_path / "again.html", image_shape=(3, 3))
    assert (tmp_path / "again.html").read_text() == pages["forest"]


def test_a_model_without_trees_has_a_report_without_explanations(tmp_path):
    X, y, _ = held_out()
    model = GaussianSimilarity().fit(X, y)
    simtree.report.write(model, X, y, tmp_path / "page.html")
    page = without_vega((tmp_path / "page.html").read_text())
    assert "The hardest pairs" in page
    assert "What the model looks at" not in page


@pytest.mark.parametrize("apart", [None, np.arange(120) % 3], ids=["all pairs", "never_pair"])
def test_hardest_pairs_are_those_of_all_scores(apart):
    X, y, _ = held_out()
    model = model_of("forest")
    watched = Watched(model)
    evaluate(watched, X, y, never_pair=apart)
    first, second = np.triu_indices(len(y), k=1)
    compared = np.ones(len(first), dtype=bool) if apart is None else apart[first] != apart[second]
    first, second = first[compared], second[compared]
    scores = model.pair_score(np.column_stack([first, second]), X)
    same = y[first] == y[second]
    for found, of_kind, sign in zip(watched.hardest(4), (same, ~same), (1.0, -1.0), strict=True):
        assert found[0].score == sign * np.min(sign * scores[of_kind])
        rows = [row for pair in found for row in (pair.first, pair.second)]
        assert len(set(rows)) == 8
        for pair in found:
            assert pair.score == scores[(first == pair.first) & (second == pair.second)][0]


def test_more_enrolled_samples_are_those_of_the_definition(tmp_path):
    """Probes are the rows after the largest number; the score with an identity is the best of its first rows."""
    X, y, _ = held_out()
    model = model_of("forest")
    found = dict(eer_by_enrolled(model, X, y, [3, 1]))
    assert list(found) == [1, 3]
    names, of_pairs = list(dict.fromkeys(y)), model.pairwise_score(X)
    rows = {name: np.flatnonzero(y == name) for name in names}
    for number, estimate in found.items():
        scores, same = [], []
        for probe, enrolled in itertools.product(names, names):
            scores.append(of_pairs[rows[probe][3], rows[enrolled][:number]].max())
            same.append(probe == enrolled)
        assert estimate.value == pytest.approx(eer(roc_curve(scores, same)).value)
        assert estimate.low <= estimate.value <= estimate.high
    simtree.report.write(model, X, y, tmp_path / "page.html", enrolled=[1, 3])
    page = (tmp_path / "page.html").read_text()
    assert [row["eer"] for row in data_of(page)["charts"]["enrolment"]["datasets"]["values"]] == [
        e.value for e in found.values()
    ]
    with pytest.raises(ValueError, match="enrolled=4 needs two identities with 5 samples or more"):
        simtree.report.write(model, X, y, tmp_path / "page.html", enrolled=[4])
    with pytest.raises(ValueError, match="enrolled=0"):
        simtree.report.write(model, X, y, tmp_path / "page.html", enrolled=[0])


def test_cells_have_their_counts_segments_and_rules():
    model = model_of("tree")
    tree = tree_of(model.tree_, model._names(None))
    cells = tree["cells"]
    assert len(tree["knots"]) == sum("score" in cell for cell in cells) + 1
    for cell in cells:
        first, last = cell["knots"]
        assert tree["knots"][first] == pytest.approx([cell["fpr"][0], cell["tpr"][0]], abs=1e-5)
        assert tree["knots"][last] == pytest.approx([cell["fpr"][1], cell["tpr"][1]], abs=1e-5)
        if "children" in cell:
            inside, outside = (cells[k] for k in cell["children"])
            assert cell["same"] == inside["same"] + outside["same"]
            assert cells[inside["parent"]] is cell
            assert "feature " in cell["rule"][0]


def test_rules_are_said_in_words():
    pair_map = CoordinateSet(("abs_diff", "sum", "min", "max", "product", "dot", "cosine", "euclidean", "manhattan"), 1)
    assert beginnings(pair_map, ["age"]) == [
        "age differs by",
        "the sum of both age is",
        "the smaller age is",
        "the larger age is",
        "the product of both age is",
        "the dot product of both samples is",
        "the cosine of both samples is",
        "the Euclidean distance of both samples is",
        "the sum of all differences is",
    ]
    oblique = CoordinateSet(("oblique",), 2, np.array([[1.0, 1.0]]))
    assert beginnings(oblique, ["a", "b"]) == [
        "combination 0 of features differs by",
        "the sum of both combination 0 of features is",
    ]

    def region(*tests):
        coordinate, threshold, if_le, if_gt = (np.array(column) for column in zip(*tests, strict=True))
        return AxisRegion(
            coordinate.astype(np.int32), threshold, if_le.astype(np.int32), if_gt.astype(np.int32), np.ones(len(coordinate))
        )

    cut = region((0, 2.0, INSIDE, OUTSIDE))
    assert rule_in_words(cut, pair_map, ["age"]) == ["age differs by at most 2"]
    assert opposite_in_words(cut, pair_map, ["age"]) == "age differs by more than 2"
    flipped = region((6, 0.5, OUTSIDE, INSIDE))
    assert opposite_in_words(flipped, pair_map, ["age"]) == "the cosine of both samples is at most 0.5"
    between = region((0, 2.0, 1, OUTSIDE), (0, 1.0, OUTSIDE, INSIDE))
    assert rule_in_words(between, pair_map, ["age"]) == ["age differs by more than 1 and at most 2"]
    assert opposite_in_words(between, pair_map, ["age"]) is None


def test_rates_are_said_in_numbers_of_attempts():
    rates = ThresholdRates(1.0, 0.0012, (0.0008, 0.0031), 0.95, (0.93, 0.97))
    assert what_it_does(rates, 0.95) == [
        "Of 1,000 attempts by a stranger, about 1 are accepted: at most 4 with 95\xa0% confidence.",
        "Of 100 attempts by the right person, about 5 are rejected: at most 7 with 95\xa0% confidence.",
    ]
    never = ThresholdRates(1.0, 0.0, (0.0, 0.0005), 1.0, (0.98, 1.0))
    assert what_it_does(never, 0.9) == [
        "Of 10,000 attempts by a stranger, none in these data are accepted: at most 5 with 90\xa0% confidence.",
        "Of 100 attempts by the right person, none in these data are rejected: at most 2 with 90\xa0% confidence.",
    ]


def pixels_of(uri):
    """Pixels of a PNG file, read by its specification."""
    file = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(file):
        (length,) = struct.unpack(">I", file[at : at + 4])
        kind, content = file[at + 4 : at + 8], file[at + 8 : at + 8 + length]
        assert struct.unpack(">I", file[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + content)
        parts[kind] = content
        at += 12 + length
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    n_colours = {0: 1, 2: 3}[parts[b"IHDR"][9]]
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + n_colours * width)
    return rows[:, 1:].reshape(height, width, n_colours)


def test_images_are_valid():
    assert pixels_of(grey_image([0.0, 5.0, 10.0, 2.5], (2, 2)))[..., 0].tolist() == [[0, 128], [255, 64]]
    assert pixels_of(grey_image([3.0, 3.0], (1, 2)))[..., 0].tolist() == [[0, 0]]
    assert pixels_of(signed_image([1.0, 0.0, -1.0], (1, 3))).tolist() == [[[31, 111, 174], [255, 255, 255], [184, 95, 0]]]


def test_missing_pixels_have_a_colour_of_their_own():
    assert pixels_of(grey_image([0.0, np.nan, 10.0, 2.5], (2, 2))).tolist() == [
        [[0, 0, 0], [204, 121, 167]],
        [[255, 255, 255], [64, 64, 64]],
    ]
    assert pixels_of(grey_image([np.nan, np.nan], (1, 2))).tolist() == [[[204, 121, 167]] * 2]


def test_large_images_are_means_of_blocks():
    values = np.array([[0.0, 2.0, 5.0], [4.0, np.nan, np.nan], [9.0, 9.0, np.nan]])
    assert pixels_of(grey_image(values, (3, 3), 4)).tolist() == [
        [[0, 0, 0], [round(255 * 3 / 7)] * 3],
        [[255, 255, 255], [204, 121, 167]],
    ]
    assert pixels_of(signed_image(np.ones(256 * 100), (256, 100))).shape == (86, 34, 3)


def test_a_page_at_its_caps_stays_small(pages):
    """As many hard pairs as there may be, as large images as there may be, of noise, which cannot be compressed."""
    rng = np.random.default_rng(0)
    samples, noise = rng.normal(size=(2, 93 * 93)), rng.normal(size=93 * 93)
    names = tuple(f"feature {j}" for j in range(len(noise)))

    class Model:
        n_features_in_ = len(noise)

        def explain_pair(self, x, x2):
            return Explanation(names, x, x2, noise, 0.0, 1.0)

    shown = {"threshold": 0.0, "with_samples": True, "image_shape": (93, 93), "max_pixels": max_pixels(MAX_HARDEST)}
    pair = describe_pair(Model(), ScoredPair(0, 1, 1.0), samples, np.array(["ann", "bob"]), **shown)
    assert [pixels_of(image).shape[:2] for _, image in pair.images] == [(31, 31)] * 3
    assert [max_pixels(n) for n in (1, 12, 13)] == [4096, 4096, 3846]
    content = hardest([pair] * MAX_HARDEST, [pair] * MAX_HARDEST, with_samples=True)
    assert len(content) > 500_000
    assert max(len(page) for page in pages.values()) + len(content) < 2_000_000


def test_bad_input_is_refused_and_nothing_is_written(tmp_path):
    X, y, _ = held_out()
    model, page = model_of("forest"), tmp_path / "page.html"
    for error, message, arguments in (
        (TypeError, "is not a similarity", {"model": object()}),
        (ValueError, r"image_shape=\(2, 3\) does not fit samples with 9 features", {"image_shape": (2, 3)}),
        (ValueError, "n_hardest=0", {"n_hardest": 0}),
        (ValueError, "X has 3 dimensions", {"X": np.zeros((2, 2, 9))}),
        (ValueError, "fusion has no effect without enrol=", {"fusion": "mean"}),
        (ValueError, "fusion='likelihood_ratio' has a closed form for", {"enrolled": [1], "fusion": "likelihood_ratio"}),
    ):
        with pytest.raises(error, match=message):
            simtree.report.write(**{"model": model, "X": X, "y": y, "path": page, **arguments})
    assert not page.exists()


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    X, y, _ = held_out()
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ImportError, match=r"pip install \"simtree\[report\]\""):
        simtree.report.write(model_of("forest"), X, y, tmp_path / "page.html")
