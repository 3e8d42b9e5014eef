"""The laws are what they say they are, and the loaders believe no header."""

from __future__ import annotations

import gzip
import os
import struct

import numpy as np
import pytest

from simtree.datasets import (
    TreeLaw,
    load_keystroke,
    load_mnist,
    make_square_law,
    make_tree_law,
    square_law_posterior,
)


def coordinates_of(pairs):
    """u and v of the paper, written down once more."""
    return np.hstack([pairs[:, 0] + pairs[:, 1], np.abs(pairs[:, 0] - pairs[:, 1])]) / np.sqrt(2)


def membership(law, coordinates):
    """(n_pairs, n_cells): which cells hold a pair, the obvious way."""
    z = coordinates[:, None, :]
    return ((z >= law.lower) & (z < law.upper)).all(axis=2)


def two_cells(**changes):
    """A law on one feature, split at v = 1/2."""
    fields = {"lower": [[-1, 0], [-1, 0.5]], "upper": [[1, 0.5], [1, 1]], "positive": [0.8, 0.2], "negative": [0.3, 0.7]}
    return TreeLaw(**(fields | changes))


# The tree law


@pytest.mark.parametrize("depth", [1, 3, 6])
@pytest.mark.parametrize("n_features", [1, 3])
def test_cells_partition_the_box(depth, n_features):
    law = make_tree_law(depth, n_features=n_features, random_state=depth)
    assert (law.n_cells, law.n_features) == (2**depth, n_features)
    np.testing.assert_array_equal(law.lower.min(axis=0), [-1] * n_features + [0] * n_features)
    np.testing.assert_array_equal(law.upper.max(axis=0), np.ones(2 * n_features))
    assert (law.upper - law.lower).prod(axis=1).sum() == pytest.approx(2.0**n_features, rel=1e-12)
    points = np.random.default_rng(0).random((5000, 2 * n_features))
    points[:, :n_features] = 2 * points[:, :n_features] - 1
    np.testing.assert_array_equal(membership(law, points).sum(axis=1), 1)


@pytest.mark.slow
def test_split_variable_and_value_are_uniform():
    laws = [make_tree_law(1, n_features=2, random_state=seed) for seed in range(2000)]
    cut = np.array([law.upper[0] < 1 for law in laws])  # The first cell ends where the root splits.
    np.testing.assert_array_equal(cut.sum(axis=1), 1)
    np.testing.assert_allclose(cut.mean(axis=0), 0.25, atol=0.04)
    values = np.array([law.upper[0] for law in laws])
    for column, (low, high) in enumerate([(-1, 1), (-1, 1), (0, 1), (0, 1)]):
        relative = (values[cut[:, column], column] - low) / (high - low)
        quartiles = np.histogram(relative, bins=4, range=(0, 1))[0] / len(relative)
        np.testing.assert_allclose(quartiles, 0.25, atol=0.08)


@pytest.mark.parametrize("exponent", ["cells", "text"])
def test_weights_follow_the_formula(exponent):
    law = make_tree_law(3, exponent=exponent, order="identity", random_state=0)
    shares = np.arange(8) / (8 if exponent == "cells" else 7)
    positive, negative = 0.01**shares, 0.01**-shares
    np.testing.assert_allclose(law.positive, positive / positive.sum(), rtol=1e-12)
    np.testing.assert_allclose(law.negative, negative / negative.sum(), rtol=1e-12)
    assert law.positive.sum() == pytest.approx(1, abs=1e-14)
    assert law.negative.sum() == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize(("exponent", "auc"), [("cells", 0.96), ("text", 0.976)])
@pytest.mark.parametrize("order", ["random", "identity"])
def test_optimal_auc_is_the_one_of_the_paper(exponent, auc, order):
    law = make_tree_law(3, exponent=exponent, order=order, random_state=1)
    wins = law.positive[:, None] * law.negative
    ratios = law.positive / law.negative
    # The AUC, said without a curve: P(score of a same pair > score of a different pair) + half the ties.
    expected = wins[ratios[:, None] > ratios].sum() + 0.5 * np.trace(wins)
    assert law.optimal_auc == pytest.approx(expected, abs=1e-12)
    assert law.optimal_auc == pytest.approx(auc, abs=0.002)


def test_noise_sets_the_difficulty():
    assert make_tree_law(3, noise=1e-300, random_state=0).optimal_auc == pytest.approx(1, abs=1e-12)
    assert make_tree_law(16, noise=1e-300, exponent="text", random_state=0).optimal_auc > 0.99  # the widest range of weights
    assert make_tree_law(3, noise=1 - 1e-9, random_state=0).optimal_auc == pytest.approx(0.5, abs=1e-6)


def test_order_moves_the_weights_and_nothing_else():
    shuffled, plain = (make_tree_law(4, order=order, random_state=3) for order in ("random", "identity"))
    np.testing.assert_array_equal(shuffled.lower, plain.lower)
    np.testing.assert_array_equal(shuffled.upper, plain.upper)
    assert (np.diff(plain.positive) < 0).all()
    assert not (np.diff(shuffled.positive) < 0).all()
    np.testing.assert_allclose(np.sort(shuffled.positive), np.sort(plain.positive), rtol=1e-12)
    np.testing.assert_allclose(shuffled.positive * shuffled.negative, shuffled.positive[0] * shuffled.negative[0], rtol=1e-9)


def test_optimal_roc_is_a_concave_curve_from_corner_to_corner():
    law = make_tree_law(4, random_state=0)
    curve = law.optimal_roc
    assert (curve.fpr[0], curve.tpr[0]) == (0.0, 0.0)
    assert (curve.fpr[-1], curve.tpr[-1]) == (1.0, 1.0)
    assert len(curve.fpr) == law.n_cells + 1
    slopes = np.diff(curve.tpr) / np.diff(curve.fpr)
    assert (np.diff(slopes) < 0).all()
    np.testing.assert_allclose(np.log(slopes), curve.thresholds[1:], atol=1e-6)
    assert curve.thresholds[0] == np.inf


def test_cells_of_one_ratio_are_one_step():
    law = TreeLaw([[-1, 0], [0, 0], [-1, 0.5]], [[0, 0.5], [1, 0.5], [1, 1]], [0.375, 0.375, 0.25], [0.125, 0.125, 0.75])
    curve = law.optimal_roc
    np.testing.assert_allclose(curve.fpr, [0, 0.25, 1])
    np.testing.assert_allclose(curve.tpr, [0, 0.75, 1])
    np.testing.assert_allclose(curve.thresholds, [np.inf, np.log(3), -np.log(3)])


@pytest.mark.parametrize("order", ["random", "identity"])
def test_pairs_fall_in_cells_as_often_as_the_weights_say(order):
    law = make_tree_law(3, order=order, random_state=5)
    pairs, same = law.sample(40_000, random_state=6)
    cells = membership(law, coordinates_of(pairs))
    for kind, weights in ((same, law.positive), (~same, law.negative)):
        observed = cells[kind].sum(axis=0)
        expected = weights * kind.sum()
        assert expected.min() > 5  # so that the chi-square law applies
        assert ((observed - expected) ** 2 / expected).sum() < 24.3  # 0.999 quantile, 7 degrees of freedom


def test_coordinates_are_uniform_in_each_cell():
    law = two_cells()
    pairs, same = law.sample(20_000, random_state=0)
    u, v = coordinates_of(pairs).T
    for kind in (same, ~same):
        for within in (v < 0.5, v >= 0.5):
            for values in ((u[kind & within] + 1) / 2, v[kind & within] * 2 % 1):
                shares = np.histogram(values, bins=5, range=(0, 1))[0] / len(values)
                np.testing.assert_allclose(shares, 0.2, atol=0.04)
    assert abs(np.corrcoef(u, v)[0, 1]) < 0.03


@pytest.mark.parametrize("positive_fraction", [0.0, 0.1, 0.5, 1.0])
def test_each_pair_is_same_with_the_given_probability(positive_fraction):
    law = make_tree_law(2, random_state=0)
    counts = [law.sample(1000, positive_fraction=positive_fraction, random_state=seed)[1].sum() for seed in range(200)]
    spread = np.sqrt(1000 * positive_fraction * (1 - positive_fraction))
    assert np.mean(counts) == pytest.approx(1000 * positive_fraction, abs=4 * spread / np.sqrt(200))
    # Binomial, not a fixed share: one run may have fewer same pairs than another.
    assert np.std(counts) == pytest.approx(spread, rel=0.25)


def test_pairs_keep_their_coordinates_through_the_orthonormal_map():
    """A tiny cell is recovered from the points alone, and the map keeps lengths."""
    lower = np.array([[0.2, -0.5, 0.4, 0.1]])
    law = TreeLaw(lower, lower + 1e-3, positive=[1.0], negative=[1.0])
    pairs, _ = law.sample(500, random_state=0)
    assert pairs.shape == (500, 2, 2)
    assert pairs.dtype == np.float64
    coordinates = coordinates_of(pairs)
    assert ((coordinates >= lower - 1e-12) & (coordinates <= lower + 1e-3 + 1e-12)).all()
    np.testing.assert_allclose((pairs**2).sum(axis=(1, 2)), (coordinates**2).sum(axis=1), rtol=1e-12)


def test_a_fair_coin_says_which_point_gets_plus_v():
    law = make_tree_law(2, random_state=0)
    pairs, same = law.sample(20_000, random_state=1)
    first_is_above = pairs[:, 0] > pairs[:, 1]
    # One coin for all coordinates of a pair.
    np.testing.assert_array_equal(first_is_above, np.repeat(first_is_above[:, :1], 3, axis=1))
    for kind in (same, ~same):
        assert first_is_above[kind, 0].mean() == pytest.approx(0.5, abs=2 / np.sqrt(kind.sum()))


def test_optimal_score_is_symmetric_bit_for_bit_and_the_log_ratio_of_the_cell():
    law = make_tree_law(5, random_state=2)
    pairs, _ = law.sample(5000, random_state=3)
    scores = law.optimal_score(pairs)
    np.testing.assert_array_equal(scores, law.optimal_score(pairs[:, ::-1]))
    cells = membership(law, coordinates_of(pairs)).argmax(axis=1)
    np.testing.assert_array_equal(law.cell_of(pairs), cells)
    np.testing.assert_allclose(scores, np.log(law.positive / law.negative)[cells], atol=1e-12)


def test_optimal_score_reaches_the_optimal_roc():
    law = make_tree_law(3, random_state=4)
    pairs, same = law.sample(50_000, random_state=5)
    scores = law.optimal_score(pairs)
    curve = law.optimal_roc
    accepted = scores[:, None] >= curve.thresholds
    fpr, tpr = accepted[~same].mean(axis=0), accepted[same].mean(axis=0)
    # Two broken lines are farthest apart at a corner of one of them.
    corners = np.concatenate([fpr, curve.fpr])
    assert np.abs(np.interp(corners, fpr, tpr) - np.interp(corners, curve.fpr, curve.tpr)).max() < 0.02


def test_cell_of_serves_edges_outsiders_and_cells_in_any_order():
    law = two_cells()
    root = np.sqrt(2)
    v = np.array([0.0, 0.4999, 0.5001, 1.0, 1.0 + 1e-12, 7.0])
    pairs = np.stack([v / root, -v / root], axis=1)[:, :, None]
    np.testing.assert_array_equal(law.cell_of(pairs), [0, 0, 1, 1, 1, 1])
    edge = np.array([[[1 / root], [1 / root]], [[-9.0], [-9.0]]])
    np.testing.assert_array_equal(law.cell_of(edge), [0, 0])
    assert law.cell_of(np.empty((0, 2, 1))).shape == (0,)
    tree = make_tree_law(5, random_state=0)
    order = np.random.default_rng(0).permutation(tree.n_cells)
    shuffled = TreeLaw(tree.lower[order], tree.upper[order], tree.positive[order], tree.negative[order])
    pairs, _ = tree.sample(2000, random_state=0)
    np.testing.assert_array_equal(order[shuffled.cell_of(pairs)], tree.cell_of(pairs))


def test_seeds_reproduce_laws_and_samples():
    first, again, other = (make_tree_law(3, random_state=seed) for seed in (0, 0, 1))
    for name in ("lower", "upper", "positive", "negative"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.lower, other.lower)
    (pairs, same), (pairs_again, same_again), (pairs_other, _) = (first.sample(100, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(pairs, pairs_again)
    np.testing.assert_array_equal(same, same_again)
    assert not np.array_equal(pairs, pairs_other)
    source = np.random.RandomState(0)
    assert not np.array_equal(first.sample(100, random_state=source)[0], first.sample(100, random_state=source)[0])


def test_a_law_is_frozen():
    weights = np.array([0.8, 0.2])
    law = two_cells(positive=weights)
    weights[:] = 9
    np.testing.assert_array_equal(law.positive, [0.8, 0.2])
    with pytest.raises(ValueError, match="read-only"):
        law.positive[0] = 1
    with pytest.raises(AttributeError):
        law.positive = weights


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"depth": 0}, ValueError, r"depth=0 .* from 1 to 16"),
        ({"depth": 17}, ValueError, r"depth=17 .* from 1 to 16"),
        ({"depth": 2.0}, TypeError, r"depth=2\.0 is not an integer"),
        ({"depth": True}, TypeError, r"depth=True is not an integer"),
        ({"n_features": 0}, ValueError, r"n_features=0 .* at least 1"),
        ({"noise": 0}, ValueError, r"noise=0 is out of range; give a number from 1e-300 to below 1"),
        ({"noise": 1.0}, ValueError, r"noise=1\.0 .* below 1"),
        ({"noise": 1e-310}, ValueError, r"noise=1e-310 is out of range"),
        ({"noise": float("nan")}, ValueError, r"noise=nan .* below 1"),
        ({"noise": "low"}, TypeError, r"noise='low' is not a number"),
        ({"exponent": "L"}, ValueError, r"exponent='L' .* 'cells', 'text'"),
        ({"order": "sorted"}, ValueError, r"order='sorted' .* 'random', 'identity'"),
    ],
)
def test_make_tree_law_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        make_tree_law(**({"depth": 2, "random_state": 0} | arguments))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_pairs": 0}, ValueError, r"n_pairs=0 .* at least 1"),
        ({"n_pairs": 1.5}, TypeError, r"n_pairs=1\.5 is not an integer"),
        ({"positive_fraction": 1.1}, ValueError, r"positive_fraction=1\.1 .* from 0 to 1"),
        ({"positive_fraction": float("nan")}, ValueError, r"positive_fraction=nan .* from 0 to 1"),
        ({"positive_fraction": None}, TypeError, r"positive_fraction=None is not a number"),
    ],
)
def test_sample_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        two_cells().sample(**({"n_pairs": 3, "random_state": 0} | arguments))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positive": [0.8, 0.3]}, r"positive sums to 1\.1"),
        ({"negative": [1.0, 0.0]}, r"negative sums to 1\.0; .* positive"),
        ({"negative": [float("nan"), 0.5]}, r"negative sums to nan"),
        ({"positive": [1.0]}, r"positive has shape \(1,\); .* 2 cells"),
        ({"upper": [[1, 0.6], [1, 1]]}, "must partition"),
        ({"upper": [[1, 0.4], [1, 1]]}, "must partition"),
        ({"upper": [[1, 0.5], [1, 0.4]]}, "at most upper"),
        ({"upper": [[1, 0.5], [1, np.inf]]}, "must be finite"),
        ({"upper": [[1, 0.5]]}, "lower and upper have shapes"),
        ({"lower": [[0], [0.5]], "upper": [[0.5], [1]]}, "lower and upper have shapes"),
    ],
)
def test_tree_law_refuses_what_is_no_law(changes, message):
    with pytest.raises(ValueError, match=message):
        two_cells(**changes)


def test_overlapping_cells_of_the_right_volume_are_noticed():
    boxes = {"lower": [[-1, 0], [-1, 0], [-1, 0.75]], "upper": [[1, 0.5], [1, 0.25], [1, 1]]}
    law = two_cells(**boxes, positive=[0.5, 0.25, 0.25], negative=[0.5, 0.25, 0.25])
    with pytest.raises(ValueError, match="1 of the pairs without a cell"):
        law.cell_of([[[0.0], [0.6 * np.sqrt(2)]]])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (np.zeros((4, 2)), r"pairs has shape \(4, 2\); .* \(n_pairs, 2, 1\)"),
        (np.zeros((4, 2, 3)), r"pairs has shape \(4, 2, 3\); .* \(n_pairs, 2, 1\)"),
        (np.full((4, 2, 1), np.nan), "pairs holds NaN"),
    ],
)
def test_optimal_score_refuses(pairs, message):
    with pytest.raises(ValueError, match=message):
        two_cells().optimal_score(pairs)


# The one-dimensional law


def test_square_law_has_the_frequencies_of_the_paper():
    X, y = make_square_law(40_000, random_state=0)
    assert X.shape == (40_000, 1)
    assert set(y.tolist()) == {1, 2}
    upper_half = X[:, 0] >= 0.5
    assert upper_half.mean() == pytest.approx(0.5, abs=0.01)
    assert X.min() >= 0
    assert X.max() <= 1
    assert (y[upper_half] == 2).mean() == pytest.approx(0.8, abs=0.01)
    assert (y[~upper_half] == 2).mean() == pytest.approx(0.2, abs=0.01)
    np.testing.assert_allclose(np.histogram(X, bins=10, range=(0, 1))[0] / 40_000, 0.1, atol=0.01)


def test_square_law_reproduces_and_refuses():
    np.testing.assert_array_equal(make_square_law(50, random_state=1)[0], make_square_law(50, random_state=1)[0])
    assert not np.array_equal(make_square_law(50, random_state=1)[0], make_square_law(50, random_state=2)[0])
    with pytest.raises(ValueError, match="n_points=0"):
        make_square_law(0)


def test_square_law_posterior_is_the_share_of_same_pairs():
    X, y = make_square_law(40_000, random_state=3)
    first, second = X[:20_000, 0], X[20_000:, 0]
    same = y[:20_000] == y[20_000:]
    posterior = square_law_posterior(first, second)
    np.testing.assert_array_equal(posterior, square_law_posterior(second, first))
    for value in (0.68, 0.32):
        group = np.isclose(posterior, value)
        assert group.mean() == pytest.approx(0.5, abs=0.02)
        assert same[group].mean() == pytest.approx(value, abs=0.02)
    np.testing.assert_allclose(square_law_posterior(0.5, [[0.5], [0.4999]]), [[0.68], [0.32]])
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="x2 holds NaN or values out of range"):
            square_law_posterior(0.5, [bad])


# MNIST

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 784), dtype=np.uint8)
LABELS = np.array([7, 0, 9], dtype=np.uint8)
IMAGE_BYTES = struct.pack(">4I", 2051, 3, 28, 28) + IMAGES.tobytes()
LABEL_BYTES = struct.pack(">2I", 2049, 3) + LABELS.tobytes()


def write_mnist(folder, *, images=IMAGE_BYTES, labels=LABEL_BYTES, prefix="train", dot="-", compress=False):
    folder.mkdir(exist_ok=True)
    for kind, content in ((f"images{dot}idx3", images), (f"labels{dot}idx1", labels)):
        name = f"{prefix}-{kind}-ubyte" + (".gz" if compress else "")
        (folder / name).write_bytes(gzip.compress(content) if compress else content)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("dot", ["-", "."])
@pytest.mark.parametrize(("part", "prefix"), [("train", "train"), ("test", "t10k")])
def test_mnist_is_read_in_all_its_spellings(tmp_path, compress, dot, part, prefix):
    write_mnist(tmp_path, prefix=prefix, dot=dot, compress=compress)
    X, y = load_mnist(tmp_path, part=part)
    np.testing.assert_array_equal(X, IMAGES)
    np.testing.assert_array_equal(y, LABELS)
    assert (X.dtype, y.dtype) == (np.uint8, np.uint8)
    X[0, 0] += 1  # The arrays belong to the caller.


@pytest.mark.parametrize("subfolder", ["", "mnist"])
def test_mnist_is_found_through_the_environment(tmp_path, monkeypatch, subfolder):
    write_mnist(tmp_path / subfolder)
    monkeypatch.setenv("SIMTREE_DATA", str(tmp_path))
    np.testing.assert_array_equal(load_mnist()[0], IMAGES)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileNotFoundError, match="empty"):  # A path that is given is not overruled.
        load_mnist(empty)


def test_mnist_parts_are_kept_apart(tmp_path):
    write_mnist(tmp_path)
    with pytest.raises(FileNotFoundError, match="t10k-images-idx3-ubyte"):
        load_mnist(tmp_path, part="test")
    with pytest.raises(ValueError, match=r"part='both' .* 'train', 'test'"):
        load_mnist(tmp_path, part="both")


@pytest.mark.parametrize("loader", [load_mnist, load_keystroke])
def test_missing_data_says_what_to_do(tmp_path, monkeypatch, loader):
    monkeypatch.delenv("SIMTREE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="set SIMTREE_DATA"):
        loader()
    with pytest.raises(FileNotFoundError, match="put it there, or pass its folder"):
        loader(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"path=.*nowhere.* is not a folder"):
        loader(tmp_path / "nowhere")
    monkeypatch.setenv("SIMTREE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"SIMTREE_DATA=.*nowhere.* is not a folder"):
        loader()


def test_missing_labels_are_named(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match="train-labels-idx1-ubyte"):
        load_mnist(tmp_path)


BAD_IMAGES = {
    "empty": (b"", "ends within its header"),
    "half a header": (IMAGE_BYTES[:9], "ends within its header"),
    "truncated": (IMAGE_BYTES[:-1], "declares 2352 bytes of data and holds only 2351"),
    "too long": (IMAGE_BYTES + b"\0", "declares 2352 bytes of data and holds more"),
    "labels in its place": (LABEL_BYTES.ljust(100, b"\0"), "starts with the number 2049, not 2051"),
    "no idx file": (b"<html>" + bytes(100), "starts with the number"),
    "other shape": (struct.pack(">4I", 2051, 3, 14, 56) + IMAGES.tobytes(), r"items of shape \(14, 56\)"),
    # 3 TB are declared: read(n) would set them aside at once.
    "forged size": (struct.pack(">4I", 2051, 2**32 - 1, 28, 28) + IMAGES.tobytes(), "holds only 2352"),
}


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(("content", "message"), BAD_IMAGES.values(), ids=BAD_IMAGES)
def test_mnist_refuses_bad_images_and_names_the_file(tmp_path, compress, content, message):
    write_mnist(tmp_path, images=content, compress=compress)
    with pytest.raises(ValueError, match=f"train-images-idx3-ubyte.*{message}"):
        load_mnist(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LABEL_BYTES[:-1], "declares 3 bytes of data and holds only 2"),
        (LABEL_BYTES + b"\0", "holds more"),
        (IMAGE_BYTES, "starts with the number 2051, not 2049"),
        (struct.pack(">2I", 2049, 2) + bytes(2), "3 images and .* 2 labels"),
    ],
)
def test_mnist_refuses_bad_labels(tmp_path, content, message):
    write_mnist(tmp_path, labels=content)
    with pytest.raises(ValueError, match=message):
        load_mnist(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-20],
        lambda data: b"no gzip" + data,
        lambda data: data[:10] + b"\xff" + data[11:],  # a block of a type that does not exist
        lambda data: data[:-8] + bytes(8),  # the checksum
    ],
    ids=["truncated", "foreign", "garbled", "checksum"],
)
def test_mnist_refuses_a_damaged_gzip_file(tmp_path, damage):
    write_mnist(tmp_path, compress=True)
    file = tmp_path / "train-images-idx3-ubyte.gz"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz is not a complete gzip file"):
        load_mnist(tmp_path)


# Keystrokes


def test_keystroke_is_read_from_folder_and_environment(tmp_path, monkeypatch):
    X = np.random.default_rng(0).random((6, 31), dtype=np.float32)
    y = np.array([0, 0, 1, 1, 2, 2], dtype=np.int16)
    np.savez_compressed(tmp_path / "cmu_keystroke.npz", X=X, y=y, session=y)
    monkeypatch.setenv("SIMTREE_DATA", str(tmp_path))
    for timings, people in (load_keystroke(tmp_path), load_keystroke()):
        np.testing.assert_array_equal(timings, X)
        np.testing.assert_array_equal(people, y)
        assert (timings.dtype, people.dtype) == (np.float64, np.int64)


class Unpickled:
    """Says so if it is ever unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((2, 3))}, "plain arrays X and y"),
        ({"X": np.zeros((2, 3)), "y": np.array([Unpickled(), Unpickled()])}, "plain arrays X and y"),
        ({"X": np.zeros((2, 3)), "y": [0, 1, 1]}, r"X of shape \(2, 3\) .* y of shape \(3,\)"),
        ({"X": np.zeros(2), "y": [0, 1]}, r"X of shape \(2,\)"),
        ({"X": np.zeros((2, 3)), "y": ["a", "b"]}, "must hold numbers"),
    ],
)
def test_keystroke_refuses_other_contents(tmp_path, arrays, message):
    np.savez(tmp_path / "cmu_keystroke.npz", **arrays)
    with pytest.raises(ValueError, match=f"cmu_keystroke.npz.*{message}"):
        load_keystroke(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: data.replace(b"NUMPY", b"NOMPY")],
    ids=["empty", "truncated", "garbled"],
)
def test_keystroke_refuses_a_damaged_file(tmp_path, damage):
    file = tmp_path / "cmu_keystroke.npz"
    np.savez(file, X=np.zeros((2, 3)), y=[0, 1])
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=r"cmu_keystroke\.npz is not an npz file"):
        load_keystroke(tmp_path)


@pytest.mark.skipif(not os.environ.get("SIMTREE_DATA"), reason="SIMTREE_DATA does not name a folder with the real data")
def test_real_keystrokes():
    X, y = load_keystroke()
    assert X.shape == (20_400, 31)
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(np.bincount(y), np.full(51, 400))


@pytest.mark.skipif(not os.environ.get("SIMTREE_DATA"), reason="SIMTREE_DATA does not name a folder with the real data")
@pytest.mark.parametrize(("part", "n_images", "first_labels"), [("train", 60_000, [5, 0, 4]), ("test", 10_000, [7, 2, 1])])
def test_real_mnist(part, n_images, first_labels):
    X, y = load_mnist(part=part)
    assert X.shape == (n_images, 784)
    assert X.max() == 255
    assert y[:3].tolist() == first_labels
    assert np.bincount(y).min() > 0.08 * n_images
