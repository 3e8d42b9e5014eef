"""The public names, and that docstrings name the parameters that exist."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys

import pytest

import simtree
from simtree import datasets, metrics, plots, splitters

PUBLIC = [getattr(simtree, name) for name in simtree.__all__ if name not in ("__version__", "ModelFileError")]
FUNCTIONS = [
    obj
    for module in (metrics, datasets, plots)
    for name, obj in vars(module).items()
    if not name.startswith("_") and callable(obj) and getattr(obj, "__module__", "").startswith(module.__name__)
]


def test_all_is_sorted_and_complete():
    assert simtree.__all__ == sorted(simtree.__all__)
    for name in simtree.__all__:
        assert hasattr(simtree, name)
    assert set(splitters.BY_NAME.values()) <= set(PUBLIC)


@pytest.mark.parametrize("obj", [*PUBLIC, *FUNCTIONS], ids=lambda obj: obj.__qualname__)
def test_documented_parameters_are_those_of_the_signature(obj):
    doc = inspect.getdoc(obj) or ""
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z][A-Za-z ]+\n-+\n|\Z)", doc, re.DOTALL)
    parameters = [name for name in inspect.signature(obj).parameters if name not in ("self", "args", "kwargs")]
    if not parameters:
        return
    if section is None:
        assert obj not in PUBLIC, f"{obj.__qualname__} has no Parameters section"
        return
    documented = [name.strip() for line in re.findall(r"^(\w[\w, ]*) :", section[1], re.MULTILINE) for name in line.split(",")]
    assert documented == parameters
    assert ">>>" in doc, f"{obj.__qualname__} has no example"


# All in one interpreter: an import takes seconds.
FRESH = """
import json, signal, sys
import simtree
at_once, ctrl_c = sorted(sys.modules), signal.getsignal(signal.SIGINT) is signal.default_int_handler
simtree.datasets.make_tree_law, simtree.metrics.roc_curve, simtree.plots.RocDisplay
import simtree.evaluation, simtree.models
print(json.dumps([at_once, ctrl_c, sorted(sys.modules)]))
"""


@pytest.fixture(scope="module")
def fresh():
    """Return what is imported with the package, whether Ctrl-C is Python's own, and what is imported with public modules."""
    return json.loads(subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_public_modules_come_when_asked_for(fresh):
    assert {"simtree.datasets", "simtree.metrics", "simtree.plots"} <= set(fresh[2])
    with pytest.raises(AttributeError, match="no attribute 'dataset'"):
        simtree.dataset  # noqa: B018


@pytest.mark.slow
def test_import_brings_only_what_is_needed_at_once(fresh):
    """No plots, frames or command line, and not the slow parts of scikit-learn (which itself imports pandas if it is there)."""
    assert not {"matplotlib", "polars", "typer", "torch", "sklearn.metrics", "sklearn.svm"} & set(fresh[0])


@pytest.mark.slow
@pytest.mark.parametrize("library", ["dask", "distributed", "matplotlib"])
def test_libraries_for_clusters_and_pictures_are_imported_for_these_alone(fresh, library):
    assert library not in fresh[2]


@pytest.mark.slow
def test_the_library_leaves_ctrl_c_alone(fresh):
    assert fresh[1] is True
