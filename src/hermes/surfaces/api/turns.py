"""Starts the turn of a request: chooses its session, builds its run and waits for the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value, replace
from hermes.config.schema import Effort
from hermes.core.errors import NotFound
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.hosting.request import TurnRequest
from hermes.hosting.run import Run, session_of
from hermes.surfaces.api.bodies import ClientMessage, ModelOptions, ParsedInput, store_images
from hermes.surfaces.api.encoding import StreamEncoder, run_error, stream_run, wait_for_run
from hermes.surfaces.api.http import ApiRequest, ApiResponse, Headers, HttpError, json_response
from hermes.surfaces.api.server_context import ServerContext, claim_key, on_disconnect, run_once


class HistoryPoint(Value):
    """A point in a session: after record `n`, with its number of messages."""

    session_id: str
    n: int
    messages: int


def history_hash(client: str, system: str, messages: Sequence[ClientMessage]) -> str:
    """A hash of the history that ignores surrounding white space."""
    facts = [client, system.strip()]
    facts += [f"{each.role}\0{each.text.strip()}\0{' '.join(each.urls)}" for each in messages]
    return hashlib.sha256(encode(facts)).hexdigest()


async def find_point(server: ServerContext, hash: str) -> HistoryPoint | None:
    query = "SELECT session_id, n, messages FROM threads WHERE hash = ?"
    row = await server.store.run(lambda db: db.execute(query, (hash,)).fetchone())
    return HistoryPoint(session_id=row[0], n=row[1], messages=row[2]) if row else None


async def store_point(server: ServerContext, hashes: Sequence[str], point: HistoryPoint) -> None:
    now = server.app.context.world.clock.now()
    rows = [
        (hash, point.session_id, point.n, point.messages, now) for hash in dict.fromkeys(hashes)
    ]
    await server.store.change("INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?)", rows)


async def current_point(server: ServerContext, session_id: str, n: int) -> HistoryPoint:
    """The current point of a session."""
    info = await server.app.archive.info(session_id)
    return HistoryPoint(session_id=session_id, n=n, messages=info.message_count)


async def continue_from(server: ServerContext, point: HistoryPoint) -> str:
    """The session to continue: the same one, or a fork if it has grown since. Raises NotFound when
    it was deleted. It is claimed for the caller, who must start a run."""
    if server.run_executor.claim(point.session_id):
        try:
            info = await server.app.archive.info(point.session_id)
        except NotFound:
            server.run_executor.release_claim(point.session_id)
            raise
        if info.message_count == point.messages:
            return point.session_id
        server.run_executor.release_claim(point.session_id)
    return await server.app.archive.fork(point.session_id, at=point.n)


def effort_of(options: ModelOptions | None) -> Effort:
    return (options.reasoning_effort if options else None) or ""


def tier_of(*tiers: str | None) -> str:
    """The first tier given; `auto` and `default` mean none."""
    tier = next((each for each in tiers if each), "")
    return "" if tier in ("auto", "default") else tier


def run_headers(run: Run) -> Headers:
    return (
        (b"x-hermes-session-id", run.session_id.encode()),
        (b"x-hermes-run-id", run.id.encode()),
    )


def check_tools(server: ServerContext, *tools: list[JsonObject] | None) -> None:
    """Refuse tools in a request by default, because the agent never calls a client's tools."""
    if any(tools) and not server.settings.ignore_client_tools:
        message = (
            "The agent uses its own tools; client tools are not supported "
            "(api_server.ignore_client_tools accepts such requests without them)."
        )
        raise HttpError(400, "unsupported_parameter", message, param="tools")


async def turn_request(
    server: ServerContext,
    request: ApiRequest,
    parsed: ParsedInput,
    claim: IdempotencyClaim,
    *,
    param: str,
    images: Sequence[str] = (),
    **more: Any,
) -> TurnRequest:
    """The request of a client, without its session. `images` are URLs outside the messages."""
    model, provider = await server.model(request.body.model, request.body.provider)
    return TurnRequest(
        session_id="",
        text=parsed.now.text,
        images=await store_images(server.app.context, (*parsed.now.urls, *images), param),
        source=request.client.source,
        instructions=parsed.system,
        model=model,
        provider=provider,
        is_retry=bool(claim.run_id),
        confined=not request.client.is_owner,
        person=request.person,
        client=request.client.name,
        **more,
    )


async def start_run(
    server: ServerContext,
    request: TurnRequest,
    claim: IdempotencyClaim,
    *,
    persistent: bool = False,
    on_end: Callable[[Run], Awaitable[None]] | None = None,
) -> Run:
    """Start the run of a request; a repeated request gets the same run."""
    run_id = claim.run_id or server.run_executor.new_run_id(request.session_id)
    reserved = await server.idempotency.reserve_run(claim, run_id)
    if reserved != run_id:
        # A concurrent request with the same key was first.
        server.run_executor.release_claim(request.session_id)
        request = replace(
            request, session_id=session_of(reserved), create="if_missing", is_retry=True
        )
        run_id = reserved
    return await server.run_executor.start(run_id, request, persistent=persistent, on_end=on_end)


StartTurn = Callable[[IdempotencyClaim], Awaitable[Run]]


async def stream_turn(
    server: ServerContext,
    request: ApiRequest,
    start: StartTurn,
    make_encoder: Callable[[Run], StreamEncoder],
) -> None:
    """Run a turn and stream its events."""
    on_leave = on_disconnect(request, "interrupt")
    run = await start(await claim_key(server, request))
    encoder, headers = make_encoder(run), run_headers(run)
    await stream_run(server, request, run, encoder, on_leave=on_leave, headers=headers)


async def answer_turn(
    server: ServerContext,
    request: ApiRequest,
    start: StartTurn,
    encode_run: Callable[[Run], Awaitable[JsonObject]],
) -> ApiResponse:
    """Run a turn and answer with its result; a repeated request gets the same answer."""

    async def work(claim: IdempotencyClaim) -> ApiResponse:
        run = await start(claim)
        await wait_for_run(server, request, run, on_leave=on_disconnect(request, "interrupt"))
        if (failed := run_error(run)) is not None:
            raise failed
        return json_response(await encode_run(run), headers=run_headers(run))

    return await run_once(server, request, work)
