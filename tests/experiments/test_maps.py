"""What the pictures of pairs have in common."""

from __future__ import annotations

import matplotlib
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from simtree.experiments import _maps as maps

pytestmark = pytest.mark.slow


def test_a_map_puts_its_first_row_below_and_its_first_column_left():
    _, ax = plt.subplots()
    drawn = maps.draw_map(ax, np.array([[0.0, 1.0], [2.0, 3.0]]), low=-1.0, high=1.0, limits=(0.0, 3.0))
    assert drawn.origin == "lower"
    assert drawn.get_extent() == [-1.0, 1.0, -1.0, 1.0]
    orange, blue = drawn.cmap(0.0), drawn.cmap(1.0)
    assert orange[0] > orange[2]
    assert blue[2] > blue[0]
    plt.close("all")


def test_each_kind_has_its_own_marks():
    _, ax = plt.subplots()
    values = np.arange(5.0)
    maps.scatter_pairs(ax, values, -values, np.array([True, False, False, True, False]), size=5)
    same, different = ax.collections
    assert (same.get_label(), same.get_offsets()[:, 0].tolist()) == ("same", [0.0, 3.0])
    assert (different.get_label(), different.get_offsets()[:, 1].tolist()) == ("different", [-1.0, -2.0, -4.0])
    plt.close("all")
