"""A private PostgreSQL server for tests: its data and its socket are in a temporary folder, and it listens on no port."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import psycopg

# Space for the data of a server.
MIN_BYTES = 1 << 30
DATABASE = "simtree_tests"
# It keeps what it confirms, as a server in use does, but is small.
SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "max_connections": "30",
    "max_wal_size": "256MB",
    "synchronous_commit": "off",  # galleries must ask for what they need
    "autovacuum": "off",  # nothing happens by chance
    "log_min_messages": "fatal",
}


def programs():
    """The folder with the programs of the server, or None; Debian has them outside the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    found = shutil.which("initdb")
    candidates = [*folders, *([Path(found).resolve().parent] if found else [])]
    return next((folder for folder in candidates if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


def why_not():
    """Why no server can be started here; None if one can."""
    if os.name != "posix" or programs() is None:
        return "PostgreSQL is not installed; make system-deps installs it on Debian and Ubuntu"
    if os.geteuid() == 0 and _owner() is None:
        return "PostgreSQL refuses to run as root, and there is no user postgres"
    return None


def _owner():
    """The user that the server runs as, if it cannot be the one who runs the tests."""
    if os.geteuid() != 0:
        return None
    import pwd  # which not all systems have

    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return None


def _fast_folder():
    """A folder in memory, where waiting for the disk takes no time, if it has enough space."""
    memory = Path("/dev/shm")
    with contextlib.suppress(OSError):
        return memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MIN_BYTES else None
    return None


class Server:
    """A server with one empty database, whose superuser is `postgres` and needs no password."""

    def __init__(self):
        # A short name: the path of a socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=_fast_folder()))
        owner = _owner()
        self._as = {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        if owner is not None:
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        self.data = self.folder / "data"
        self._run(
            "initdb", "--pgdata", self.data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--no-sync"
        )
        # This user, and only this one, needs a password.
        rules = "local all locked scram-sha-256\nlocal all all trust\n"
        (self.data / "pg_hba.conf").write_text(rules)
        self.start()
        with self.connected("postgres") as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def _run(self, program, *arguments):
        command = [programs() / program, *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, env={"LC_ALL": "C"}, **self._as)

    def start(self):
        options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [programs() / "postgres", "-D", self.data, "-k", self.folder, *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder, env={"LC_ALL": "C"}, **self._as
        )
        end = time.monotonic() + 300.0
        while True:
            try:
                self.connected("postgres").close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, "the server has ended"
                assert time.monotonic() < end
                time.sleep(0.02)

    def crash(self):
        """End the server without letting it write anything more, and start it again."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        self.start()

    def close(self):
        self.process.send_signal(signal.SIGQUIT)  # at once: what it would write is deleted
        self.process.wait()
        shutil.rmtree(self.folder)

    def connected(self, database=DATABASE, **options):
        return psycopg.connect(host=str(self.folder), user="postgres", dbname=database, autocommit=True, **options)

    def address(self, schema, user="postgres", database=DATABASE):
        return f"postgresql://{user}@{quote(str(self.folder), safe='')}/{database}?schema={schema}"
