"""`heedful serve`: an OpenAI-compatible endpoint with controlled memory."""

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.cli.options import Explore, Headers, ModelName, Patience, Store, Threads, Weights, refuse_idle
from heedful.cli.output import say
from heedful.errors import UsageError

if TYPE_CHECKING:
    from socket import socket

    from heedful.cli.serving import ServeOptions
    from heedful.serve.server import Address
    from heedful.serve.service import Service

LOOPBACK = ("127.0.0.1", "::1", "localhost")
HTTP = ("http:", "https:")


def serve(
    context: typer.Context,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A bundle from `heedful study export`, as FILE or NAME=FILE; may be repeated."),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            envvar="HEEDFUL_URL",
            help="Base URL of the OpenAI-compatible endpoint that answers [default: embedded model].",
        ),
    ] = None,
    model: ModelName = None,
    header: Headers = None,
    bank: Annotated[
        list[str] | None,
        typer.Option("--bank", "-b", help="Without --policy: a bank of the store; may be repeated."),
    ] = None,
    recall: Annotated[
        str, typer.Option(help="Without --policy: recall method: dense, bm25 or bm25_rerank.")
    ] = "dense",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse to start if anything changed since the lock.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on; without keys a loopback one.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")] = 8080,
    ready_file: Annotated[
        Path | None, typer.Option(help="Write the port to this file once requests are accepted.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="TOML file of callers' keys; see `heedful key new`.")
    ] = None,
    streaming: Annotated[
        Literal["hold", "speculate"],
        typer.Option(help="Streams: decide and then answer, or start both passes at once."),
    ] = "hold",
    query_turns: Annotated[
        int, typer.Option(min=1, help="Number of user turns that banks are searched with.")
    ] = 1,
    explore: Explore = 0.0,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Serve the first answers, and record what the policy would do.")
    ] = False,
    canary: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of users, or of conversations, that the policy answers."),
    ] = None,
    promote: Annotated[
        bool,
        typer.Option("--promote", help="Start only if the shadow decisions keep the harm within the limit."),
    ] = False,
    harm_limit: Annotated[
        float, typer.Option(help="With --promote: maximum share of answers that may be hurt.")
    ] = 0.02,
    patience: Patience = 60.0,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Time limit in seconds for each call of the upstream.")
    ] = 120.0,
    at_once: Annotated[int, typer.Option(min=1, help="Maximum number of requests in progress.")] = 256,
    max_body: Annotated[int, typer.Option(min=1, help="Maximum size of a request in bytes.")] = 4_000_000,
    weights: Weights = "smollm2-135m",
    threads: Threads = None,
    store: Store = None,
    telemetry: Annotated[
        bool,
        typer.Option("--telemetry", help="Make OpenTelemetry spans of decisions and passes, without texts."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log problems only, not every request.")] = False,
) -> None:
    """Serve chat completions; memory is consulted only when the model is unsure."""
    from heedful.cli.asking import rollout_of
    from heedful.cli.serve_banner import banner
    from heedful.cli.serving import ServeOptions, build_service
    from heedful.extras import require
    from heedful.memory.storage import names_new_file
    from heedful.serve.admission import ServeLimits
    from heedful.serve.request_log import log_to_stderr
    from heedful.serve.server import Address, listen

    require("serve")
    if not promote:
        refuse_idle(context, ("harm_limit",), "without --promote")
    elif shadow:
        raise UsageError("--promote ends the shadow; leave out --shadow")
    if policy:
        refuse_idle(context, ("bank", "recall", "header", "weights"), "with --policy, which decides it")
    else:
        refuse_idle(context, ("strict",), "without --policy")
    if not (upstream or "").strip():
        refuse_idle(context, ("upstream",), "if it is empty")
    if (upstream or "").startswith(HTTP) and {"?", "#"} & set(upstream or ""):
        raise UsageError("--upstream has a query or a fragment, which heedful does not send; leave it out")
    if not policy or upstream or model or threads:
        _refuse_idle_model_options(context, policy or (), upstream or "")
    if ready_file is not None:
        _refuse_unwritable(ready_file)
    if keys is None and host not in LOOPBACK:
        raise UsageError(f"without --keys the server listens on this machine only, not on {host}; add --keys")
    options = ServeOptions(
        policies=tuple(policy or ()),
        upstream=upstream or "",
        model=model or "",
        headers=tuple(header or ()),
        banks=tuple(bank or ()),
        recall=recall,
        strict=strict,
        keys=keys,
        streaming=streaming,
        query_turns=query_turns,
        explore=explore,
        rollout=rollout_of(context, shadow, canary),
        harm_limit=harm_limit if promote else None,
        patience=patience,
        limits=ServeLimits(at_once=at_once, body_bytes=max_body),
        timeout=timeout,
        weights=weights,
        threads=threads,
        store=store,
        telemetry=telemetry,
    )
    address = Address(host=host, port=port, ready_file=ready_file)
    listening = listen(address)
    new_store = names_new_file(store)
    try:
        service = build_service(options)
        log_to_stderr(logging.WARNING if quiet else logging.INFO)
        _run(service, options, address, listening, banner(service, options, new_store=new_store))
    finally:
        listening.close()


def _run(
    service: "Service", options: "ServeOptions", address: "Address", listening: "socket", notes: Sequence[str]
) -> None:
    from heedful.cli.serve_banner import served_at, trial_call
    from heedful.serve.app import make_app
    from heedful.serve.operator_pages import operator_pages
    from heedful.serve.server import run

    def announce(port: int) -> None:
        host = f"[{address.host}]" if ":" in address.host else address.host
        url, policies = f"http://{host}:{port}", service.shelf.policies
        first, last = served_at(policies, f"{url}/v1"), trial_call(policies, options, f"{url}/v1")
        for line in (first, *notes, f"dashboard: {url}/", last):
            say(f"heedful: {line}")

    pages = service.store.reopened()  # its own connections keep long searches out of the requests' way
    try:
        app = make_app(service, operator_pages(service, pages))
        run(app, service.reload, address, listening, announce)
    finally:
        asyncio.run(pages.aclose())


def _refuse_idle_model_options(context: typer.Context, policies: Sequence[str], upstream: str) -> None:
    """Refuse options of the embedded model with an endpoint, and those of an endpoint without one."""
    urls = [upstream]
    if policies and not upstream:
        from heedful.cli.serving import named
        from heedful.protocol.bundle import read_bundle

        urls = [read_bundle(file).model.settings.url for _, file in named(policies)]
    if not any(urls):
        refuse_idle(context, ("model", "header"), "on the embedded model; it needs --upstream")
    elif all(url.startswith(HTTP) for url in urls):
        refuse_idle(context, ("weights", "threads"), "on an endpoint (--upstream, HEEDFUL_URL or a policy)")


def _refuse_unwritable(file: Path) -> None:
    """Refuse a ready file that could not be written once the server has started."""
    problem = ""
    if file.is_dir():
        problem = "it is a folder"
    elif not os.access(file.parent, os.W_OK | os.X_OK):
        problem = f"the folder {file.parent} is missing or not writable"
    if problem:
        raise UsageError(f"cannot write the ready file {file}: {problem}; correct --ready-file")
