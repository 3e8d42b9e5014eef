"""`make system-deps` installs what is missing, and says what to do where it cannot; programs of the system are stand-ins."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "system-deps"
NOBODY = 65534
pytestmark = pytest.mark.skipif(os.name != "posix" or shutil.which("bash") is None, reason="needs bash")


@pytest.fixture
def folder():
    """A folder that every user can look into, to be the whole path."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    for program in ("bash", "env", "grep"):
        (made / program).symlink_to(shutil.which(program))
    yield made
    shutil.rmtree(made)


def add(folder, name, script):
    (folder / name).write_text(f"#!{shutil.which('bash')}\n{script}\n")
    (folder / name).chmod(0o755)


def run(folder, *, as_nobody=False):
    # Not as a program: who runs it may not be allowed to look into the folders above.
    command = [shutil.which("bash"), "-s"]
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if as_nobody and os.geteuid() == 0 else {}
    return subprocess.run(
        command,
        input=SCRIPT.read_text(),
        env={"PATH": str(folder)},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        **user,
    )


def has(folder, *packages):
    """Let only these packages be installed."""
    names = " ".join(f"[[ $4 == {package} ]] && echo 'install ok installed';" for package in packages)
    add(folder, "dpkg-query", f"{names} true")


def test_nothing_is_installed_twice(folder):
    has(folder, "postgresql", "strace", "chromium")
    done = run(folder)
    assert (done.returncode, done.stdout) == (0, "system-deps: postgresql strace chromium are installed.\n")


@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root installs without sudo")
def test_root_installs_what_is_missing(folder):
    has(folder, "postgresql", "chromium")
    add(folder, "apt-get", 'echo "$DEBIAN_FRONTEND $*"')
    done = run(folder)
    assert done.stdout == " update --quiet\nnoninteractive install --quiet --yes --no-install-recommends strace\n"
    assert done.returncode == 0


def test_others_install_with_sudo(folder):
    has(folder)
    add(folder, "apt-get", 'echo "$DEBIAN_FRONTEND $*"')
    done = run(folder, as_nobody=True)
    assert done.returncode == 1
    assert done.stderr == "system-deps: postgresql strace chromium can be installed only by root, and there is no sudo.\n"
    add(folder, "sudo", 'echo "as root:"; "$@"')
    done = run(folder, as_nobody=True)
    assert done.returncode == 0
    assert done.stdout.splitlines()[::2] == ["as root:", "as root:"]
    assert done.stdout.endswith("noninteractive install --quiet --yes --no-install-recommends postgresql strace chromium\n")


def test_other_systems_are_told_what_to_install(folder):
    done = run(folder)
    assert done.returncode == 1
    assert "this system has no apt-get; install postgresql strace chromium yourself" in done.stderr
