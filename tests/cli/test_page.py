"""docs/cli.md says what the commands do: it is made anew and compared."""

from __future__ import annotations

import re

import numpy as np
import pytest

import make_cli
from simtree.cli._app import app

pytestmark = pytest.mark.slow


def test_the_page_is_what_the_commands_say():
    words, numbers = make_cli.comparable(make_cli.PAGE.read_text(encoding="utf-8"))
    new_words, new_numbers = make_cli.comparable(make_cli.make_page())
    remedy = "docs/cli.md is not what the commands say: run python docs/make_cli.py"
    assert words == new_words, remedy
    np.testing.assert_allclose(numbers, new_numbers, rtol=0.02, atol=1e-3, err_msg=remedy)


def test_every_verb_has_an_example():
    verbs = {info.name for info in [*app.registered_commands, *app.registered_groups]}
    assert verbs == set(make_cli.EXAMPLES)
    for verb, (_, examples) in make_cli.EXAMPLES.items():
        assert all(example.removeprefix("!").startswith(f"simtree {verb} ") for example in examples)
        assert examples


def test_times_are_not_compared_and_figures_are():
    assert make_cli.comparable("took 3 s, AUC 0.95") == make_cli.comparable("took   12 s, AUC 0.95")
    assert make_cli.comparable("AUC 0.95")[1] == [0.95]
    assert re.search("#", make_cli.comparable("1,000 pairs")[0])
    assert make_cli.comparable("1,000 pairs")[1] == [1000.0]
