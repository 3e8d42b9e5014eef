"""The paper's competitors: LMNN through its adapter, the network, and scores of pairs of mapped points."""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances

from simtree.experiments import _peers as peers
from simtree.experiments._peers import cosine_scores, euclidean_scores, inner_product_scores, lmnn_map, train_network
from simtree.metrics import roc_curve
from simtree.pairs._sampling import PairSampler

pytestmark = pytest.mark.slow


def auc_of(score, points, y):
    """AUC of a score over all pairs."""
    pairs = PairSampler(y).all_pairs()
    return roc_curve(score(points, pairs.first, pairs.second), pairs.same).auc()


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="the network needs PyTorch, which is not installed")


@pytest.fixture(scope="module")
def digits():
    """Half of the digits to learn from, half to test, with pixels scaled to [0, 1]."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture(scope="module")
def noisy():
    """Two classes apart in the first feature; the second is noise, and so large that it decides the Euclidean distance."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = np.column_stack([6.0 * y + rng.normal(size=120), rng.normal(0, 10, 120)])
    return X, y


@pytest.mark.parametrize("block_values", [1, 7, 1 << 20])
def test_scores_are_those_of_the_whole_matrices_for_any_size_of_block(rng, monkeypatch, block_values):
    monkeypatch.setattr(peers, "BLOCK_VALUES", block_values)
    A = rng.normal(size=(12, 3)).astype(np.float32)
    first, second = rng.integers(0, 12, (2, 50))
    wide = A.astype(np.float64)
    np.testing.assert_allclose(cosine_scores(A, first, second), cosine_similarity(wide)[first, second], atol=1e-12)
    np.testing.assert_allclose(inner_product_scores(A, first, second), (wide @ wide.T)[first, second], atol=1e-12)
    np.testing.assert_allclose(euclidean_scores(A, first, second), -euclidean_distances(wide)[first, second], atol=1e-7)


@pytest.mark.parametrize("score", [cosine_scores, inner_product_scores, euclidean_scores])
def test_scores_are_the_same_in_both_orders_and_refuse_rows_that_do_not_exist(rng, score):
    A = rng.normal(size=(12, 5))
    first, second = rng.integers(0, 12, (2, 50))
    np.testing.assert_array_equal(score(A, first, second), score(A, second, first))
    with pytest.raises(IndexError, match="row number -1"):
        score(A, [0], [-1])


def test_lmnn_finds_the_feature_that_matters(noisy):
    X, y = noisy
    L = lmnn_map(X, y, random_state=0)
    assert L.shape == (2, 2)
    assert auc_of(euclidean_scores, X, y) < 0.65
    assert auc_of(euclidean_scores, X @ L.T, y) > 0.9


def test_lmnn_takes_the_paper_s_regularization_into_account(noisy):
    X, y = noisy
    pushing, pulling = (lmnn_map(X, y, regularization=weight, max_iter=60, random_state=0) for weight in (0.01, 0.99))
    assert not np.allclose(pushing, pulling)


def test_lmnn_learns_from_drawn_points(noisy):
    X, y = noisy
    drawn, again, other = (lmnn_map(X, y, max_points=40, max_iter=20, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(drawn, again)
    assert not np.array_equal(drawn, other)
    everything = lmnn_map(X, y, max_points=None, max_iter=20, random_state=0)
    np.testing.assert_array_equal(everything, lmnn_map(X, y, max_points=120, max_iter=20, random_state=1))


def test_lmnn_needs_neighbours_in_each_class(noisy):
    X, y = noisy
    with pytest.raises(ValueError, match=r"n_neighbors=3 requires at least two classes .* 2 with 3 samples in the smallest"):
        lmnn_map(X[57:], y[57:], random_state=0)
    with pytest.raises(ValueError, match="1 with 60 samples"):
        lmnn_map(X[:60], y[:60], random_state=0)


@pytest.mark.parametrize("fails", [False, True])
def test_the_adapter_leaves_metric_learn_as_it_found_it(noisy, monkeypatch, fails):
    module = import_module("metric_learn._util")
    lmnn = import_module("metric_learn").LMNN
    before = dict(vars(module))
    if fails:
        monkeypatch.setattr(lmnn, "_loss_grad", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            lmnn_map(*noisy, random_state=0)
    else:
        lmnn_map(*noisy, max_iter=3, random_state=0)
    assert dict(vars(module)) == before


def test_the_adapter_passes_the_parameter_on_under_its_new_name():
    module = import_module("metric_learn._util")
    with peers._renamed_check_parameter():
        assert np.isnan(module.check_array([[np.nan]], force_all_finite=False)).all()
        with pytest.raises(ValueError, match="NaN"):
            module.check_array([[np.nan]], force_all_finite=True)
        with pytest.raises(ValueError, match="NaN"):  # a metric-learn that knows the new name
            module.check_array([[np.nan]], ensure_all_finite=True)


@pytest.mark.parametrize(
    ("module", "learn", "sentence"),
    [
        ("torch", lambda X, y: train_network(X, y, penalty=0.01, random_state=0), "The network needs PyTorch"),
        ("metric_learn", lambda X, y: lmnn_map(X, y, random_state=0), "LMNN needs metric-learn"),
    ],
)
def test_without_its_package_a_competitor_says_how_to_get_it(noisy, monkeypatch, module, learn, sentence):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError) as error:
        learn(*noisy)
    assert str(error.value) == f'{sentence}; install it with: pip install "simtree[experiments]"'


def test_the_network_learns_an_encoding_of_digits(torch, digits):
    X, y, X_test, y_test = digits
    encode = train_network(X, y, penalty=1e-4, epochs=10, random_state=0)
    encoding = encode(X_test)
    assert encoding.shape == (len(X_test), 128)
    assert encoding.dtype == np.float32
    assert auc_of(cosine_scores, encoding, y_test) > auc_of(cosine_scores, X_test, y_test) + 0.05


@pytest.fixture
def layers(torch, monkeypatch):
    """Weights and biases of the layers that are built from now on, in their order."""
    built = []

    class Noted(torch.nn.Linear):
        def __init__(self, *widths):
            super().__init__(*widths)
            built.append((self.weight.detach().numpy(), self.bias.detach().numpy()))  # views: they follow the training

    monkeypatch.setattr(torch.nn, "Linear", Noted)
    return built


def test_the_encoding_is_three_layers_with_relu_and_one_without(layers, digits):
    X, y, *_ = digits
    encode = train_network(X, y, penalty=0.01, epochs=1, random_state=0)
    assert [weights.shape for weights, _ in layers] == [(146, 64), (140, 146), (134, 140), (128, 134), (10, 128)]
    hidden = X
    for weights, bias in layers[:3]:
        hidden = np.maximum(hidden @ weights.T + bias, 0)
    weights, bias = layers[3]
    np.testing.assert_allclose(encode(X), hidden @ weights.T + bias, atol=1e-4)


def test_the_penalty_is_on_the_weights_of_the_three_layers_with_relu_alone(layers, digits):
    X, y, *_ = digits
    train_network(X, y, penalty=1e3, epochs=60, random_state=0)
    for number, (weights, bias) in enumerate(layers):
        assert (np.abs(weights).max() < 0.01) == (number < 3)
        assert np.abs(bias).max() > 0.05


def test_the_same_seed_gives_the_same_network_and_leaves_torch_alone(torch, digits):
    X, y, *_ = digits

    def encoding(seed):
        return train_network(X, y, penalty=0.01, epochs=2, random_state=seed)(X)

    state, n_threads = torch.get_rng_state(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first = encoding(3)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(n_threads)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(5)
    np.testing.assert_array_equal(encoding(3), first)
    assert not np.array_equal(encoding(4), first)


def test_the_network_takes_any_labels_and_shows_its_epochs(torch, digits, capsys):
    X, y, *_ = digits
    numbers, words = (
        train_network(X, labels, penalty=0.01, epochs=2, random_state=0, verbose=1)(X) for labels in (y, y.astype(str))
    )
    np.testing.assert_array_equal(numbers, words)
    assert "epochs of the network: 2 of 2" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"penalty=-1 is out of range"):
        train_network(X, y, penalty=-1, random_state=0)
