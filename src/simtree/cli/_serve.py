"""``simtree serve``: a gallery over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simtree.cli._common import Jobs, friendly_errors, say
from simtree.cli._galleries import GalleryAddress, check_gallery
from simtree.gallery._address import parse_address


def serve(
    gallery: GalleryAddress,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    keys: Annotated[
        Path | None,
        typer.Option(
            "--keys", metavar="FILE", help="Keys of clients, as made by `simtree keys add`; without it, none is asked for."
        ),
    ] = None,
    certificate: Annotated[Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate of TLS (PEM).")] = None,
    private_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Private key of TLS (PEM).")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen on other addresses than loopback without keys or without TLS.")
    ] = False,
    audit: Annotated[
        Path | None,
        typer.Option("--audit", metavar="FILE", help="File of the audit; GALLERY.calls for a gallery in a file."),
    ] = None,
    max_body: Annotated[int, typer.Option("--max-body", metavar="BYTES", min=1, help="Size of a request.")] = 1 << 20,
    max_batch: Annotated[int, typer.Option("--max-batch", metavar="N", min=1, help="Samples per request.")] = 100,
    max_candidates: Annotated[int, typer.Option("--max-candidates", metavar="N", min=1, help="Candidates per sample.")] = 50,
    rate: Annotated[float, typer.Option("--rate", metavar="N", help="Requests per second and key, over time.")] = 50.0,
    burst: Annotated[int, typer.Option("--burst", metavar="N", min=1, help="Requests of a key that may come at once.")] = 100,
    max_in_flight: Annotated[
        int, typer.Option("--max-in-flight", metavar="N", min=1, help="Requests that are worked on or wait for it.")
    ] = 32,
    n_threads: Annotated[
        int,
        typer.Option("--threads", metavar="N", min=0, help="Requests that are worked on at once; 0 for the number of cores."),
    ] = 0,
    n_jobs: Jobs = 1,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Log each request; ids of people and keys are never logged.")
    ] = False,
) -> None:
    """Answer questions about a gallery over HTTP, with a page for people at /, until the process is asked to end.

    It listens on this machine only, unless there are keys and TLS. SIGTERM and Ctrl-C finish what is being worked on.
    """
    with friendly_errors(interrupted="Stopped."):
        try:
            from simtree.service._limits import Limits
            from simtree.service._server import Settings
            from simtree.service._server import serve as run
        except ImportError as error:
            raise ImportError(f'simtree serve needs {error.name}; install it with: pip install "simtree[service]"') from error
        check_gallery(gallery)
        limits = Limits(max_body, max_batch, max_candidates, rate, burst, max_in_flight)
        settings = Settings(
            gallery,
            host=host,
            port=port,
            keys=keys,
            audit=audit,
            certificate=certificate,
            private_key=private_key,
            insecure=insecure,
            limits=limits,
            n_threads=n_threads,
            n_jobs=n_jobs,
            verbose=verbose,
        )

        def announce(address: str) -> None:
            say(f"Serving {parse_address(gallery)} on {address}")
            if keys is None:
                say("No --keys: everybody who can reach this service may search, enrol and remove.")

        run(settings, announce)
