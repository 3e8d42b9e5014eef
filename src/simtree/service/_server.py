"""Running a service: what it may listen on, and how it starts and ends."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from simtree.gallery._address import parse_address
from simtree.service._app import create_app
from simtree.service._calls import CallLog, CallLogError
from simtree.service._keys import KeyRing
from simtree.service._limits import Limits
from simtree.service._served import Served

# How long requests that are worked on may take to finish when the service is asked to end, in seconds.
DRAIN_SECONDS = 30
# Connections of clients, with a key or without, beyond which new ones are answered with 503 at once.
MAX_CONNECTIONS = 512
MAX_HEADER_BYTES = 16_384


@dataclass(frozen=True)
class Settings:
    """How a service is run.

    Parameters
    ----------
    gallery : str or Path
        The gallery: a file, or an address in PostgreSQL.
    host : str
        Address to listen on.
    port : int
        Port; 0 for a free one.
    keys : Path or None
        File of keys; None for a service that asks for none.
    audit : Path or None
        File of the audit; by default that of the gallery with ``.calls`` at its end, if it is a file.
    certificate, private_key : Path or None
        Files of TLS.
    insecure : bool
        Whether to listen on other addresses than loopback without keys or TLS.
    limits : Limits
        How often and with how much clients may ask.
    n_threads : int
        Number of requests that are worked on at once; 0 for the number of cores.
    n_jobs : int
        Number of parallel jobs per search.
    verbose : bool
        Whether to log each request.
    """

    gallery: str | Path
    host: str = "127.0.0.1"
    port: int = 8000
    keys: Path | None = None
    audit: Path | None = None
    certificate: Path | None = None
    private_key: Path | None = None
    insecure: bool = False
    limits: Limits = field(default_factory=Limits)
    n_threads: int = 0
    n_jobs: int = 1
    verbose: bool = False

    @property
    def has_tls(self) -> bool:
        """Whether the service speaks TLS."""
        return self.certificate is not None

    @property
    def audit_file(self) -> Path:
        """The file of the audit."""
        address = parse_address(self.gallery)
        if self.audit is not None:
            return self.audit
        if not isinstance(address, Path):
            raise ValueError(f"{address} is not a file that an audit can stand beside; give --audit FILE.")
        return address.with_name(address.name + ".calls")

    def check(self) -> None:
        """Raise if the service would be open to others without protection."""
        if (self.certificate is None) != (self.private_key is None):
            raise ValueError("--tls-cert and --tls-key belong together; give both, or none.")
        for file in (self.certificate, self.private_key):
            if file is not None and not file.is_file():
                raise FileNotFoundError(f"there is no file {file}; give the certificate and the key of TLS.")
        self.audit_file  # noqa: B018 - raises if there is none
        if is_loopback(self.host) or self.insecure:
            return
        needed = {"--keys": self.keys is not None, "--tls-cert and --tls-key": self.has_tls}
        missing = [name for name, is_given in needed.items() if not is_given]
        if missing:
            raise ValueError(
                f"--host {self.host} can be reached by others, and there is no {' and no '.join(missing)}; give that, listen "
                "on 127.0.0.1, or give --insecure if something else protects the service."
            )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "people.example")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(settings: Settings, announce: Callable[[str], None]) -> None:
    """Answer requests until the process is asked to end.

    SIGTERM and Ctrl-C finish what is being worked on.

    Parameters
    ----------
    settings : Settings
        How to run.
    announce : callable
        Is given the address when the service listens.
    """
    settings.check()
    keys = KeyRing(settings.keys)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("simtree.service").setLevel(logging.INFO if settings.verbose else logging.WARNING)
    # A duplicate is part of the answer; the warning about it names people, who do not belong into logs.
    warnings.filterwarnings("ignore", category=UserWarning, module="simtree.service")
    with ExitStack() as stack:
        listener = stack.enter_context(_listen(settings.host, settings.port))
        served = Served(settings.gallery, settings.n_jobs)
        stack.callback(served.close)
        try:
            calls = CallLog(settings.audit_file)
        except CallLogError as error:
            raise ValueError(str(error)) from error
        app = create_app(
            served,
            keys=keys,
            limits=settings.limits,
            calls=calls,
            is_local=is_loopback(settings.host),
            has_tls=settings.has_tls,
            n_threads=settings.n_threads or (os.cpu_count() or 1),
        )
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,  # it would have the ids in paths
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            limit_concurrency=MAX_CONNECTIONS,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.private_key,
        )
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        host, port = listener.getsockname()[:2]
        announce(f"{'https' if settings.has_tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}")
        uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    It names its protocol: asyncio sends small packets at once only for sockets that do, and otherwise an answer waits some 40
    milliseconds for the client to confirm its first packet.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(MAX_CONNECTIONS)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise OSError(f"--host {host} --port {port} cannot be listened on ({error.strerror}); choose others.") from error
    listener.setblocking(False)
    return listener
