"""Collects the recording of a session: its settings, events and tapes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.codec.json import convert, decode, encode, plain
from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.config.home import TAPES
from hermes.config.load import Config
from hermes.config.schema import find_setting
from hermes.config.settings import Settings
from hermes.context.prompting import prefill_file
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.core.events import ToolFinished
from hermes.core.ports import Provider, Workspace
from hermes.core.session_request import SessionRequest
from hermes.journal.body_templates import is_newer
from hermes.journal.journal import SqliteJournal
from hermes.journal.reading import LogRow, history_segments, read_rows
from hermes.models.model_ref import IN_PROCESS, ModelRef
from hermes.models.models import Models, ref_of
from hermes.providers.endpoint import Endpoint
from hermes.providers.model_catalogue import shipped_catalogue
from hermes.providers.recorded.frames import RecordedExchange, TapeModel, TapeRun
from hermes.providers.recorded.masks import SecretMask
from hermes.providers.recorded.player import InterceptedProvider
from hermes.providers.recorded.tape import TapedRun, TapeRecorder, plain_url, read_tapes, split_like
from hermes.replay.recording import RecordedLine, Recording, find_chain_damage
from hermes.version import __version__

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

# Placeholder for a configured key; it is never sent.
ANY_KEY = "key-of-the-recording"


class RunFacts(Value):
    """The circumstances of a run that a replay restores."""

    settings: JsonObject
    # The user's home folder.
    home: str
    # The Hermes home.
    state: str
    attended: bool
    # The session's folder.
    root: str = ""
    # The working directory of its shell.
    cwd: str = ""
    # Configure providers and contain no keys.
    variables: dict[str, str] = {}
    # Content of the prefill file.
    prefill: str = ""


class KnownEndpoint(Value):
    """The endpoint to which a model reference was resolved."""

    provider: str
    model: str
    endpoint: Endpoint
    base_url: str = ""
    tier: str | None = None


class EndpointFacts(Value):
    known: tuple[KnownEndpoint, ...] = ()


def run_of(
    config: Config,
    *,
    mask: SecretMask,
    after: int,
    at: float,
    attended: bool,
    root: str,
    cwd: str,
) -> TapeRun:
    prefill, file = "", prefill_file(config.settings, config.home)
    if file is not None:
        with suppress(OSError, ValueError):
            prefill = file.read_text("utf-8")
    facts = RunFacts(
        settings=_without_secrets(plain(config.settings), ()),
        home=str(Path.home()),
        state=str(config.home.root.resolve()),
        attended=attended,
        root=root,
        cwd=cwd,
        variables=_variables(config),
        prefill=prefill,
    )
    return TapeRun(version=__version__, after=after, at=at, facts=mask.json(plain(facts)))


def endpoint_facts(
    models: Models,
    settings: Settings,
    mask: SecretMask,
    model: str,
    provider: str,
    tier: str | None = None,
) -> TapeModel:
    """Return the endpoints of this model and its fallbacks, as far as they can be resolved."""
    first = ModelRef(provider=provider, model=model, tier=tier)
    found = [_endpoint(lambda: models.endpoint(model, provider, tier=tier), first)]
    for entry in settings.fallback_providers:
        ref = ref_of(entry, tier=tier)
        found.append(_endpoint(partial(models.resolver.endpoint, ref), ref))
    facts = EndpointFacts(known=tuple(known for known in found if known is not None))
    return TapeModel(model=model, provider=provider, facts=mask.json(plain(facts)))


def _endpoint(find: Callable[[], Endpoint], ref: ModelRef) -> KnownEndpoint | None:
    if ref.provider in IN_PROCESS:
        return None
    try:
        found = find()
    except HermesError:
        return None
    bare = replace(found, key="", headers={}, url=plain_url(found.url))
    return KnownEndpoint(
        provider=ref.provider,
        model=ref.model,
        base_url=ref.base_url and plain_url(ref.base_url),
        tier=ref.tier,
        endpoint=bare,
    )


def facts_in(run: TapeRun) -> RunFacts:
    return convert(RunFacts, run.facts)


def known_in(ways: tuple[TapeModel, ...]) -> Iterator[KnownEndpoint]:
    for tape_model in ways:
        yield from convert(EndpointFacts, tape_model.facts).known


def _without_secrets(value: JsonValue, path: tuple[str, ...]) -> Any:
    """Remove secret settings."""
    if not isinstance(value, dict):
        return value
    saved = {}
    for key, item in value.items():
        here = (*path, key)
        setting = find_setting(Settings, here)
        if setting is None or not setting.secret:
            saved[key] = _without_secrets(item, here)
    return saved


def _variables(config: Config) -> dict[str, str]:
    """Return a placeholder for each configured key, and the configured provider URLs."""
    variables = {
        name: f"{ANY_KEY}-{number}" for number, name in enumerate(config.secrets.names(), start=1)
    }
    for vendor in shipped_catalogue().vendors.values():
        if vendor.url_env and (url := config.secrets.get(vendor.url_env)):
            variables[vendor.url_env] = plain_url(url)
    return variables


async def collect_recording(run: RunContext, journal: SqliteJournal, session_id: str) -> Recording:
    """Collect the recording of a session. Raises NotFound for an unknown session, UsageError when a
    record is damaged."""
    mask = SecretMask(run.redactor.values())
    rows, shared = await journal.reading(lambda db: _rows(db, session_id))
    stored, _ = _lines(rows, shared, SecretMask(()))
    if why := find_chain_damage(session_id, stored, shared, 0):
        raise UsageError(
            f"Session {session_id} is damaged: {why}; `hermes sessions verify` shows details."
        )
    lines, masked = _lines(rows, shared, mask)
    folder = run.home.sessions / session_id
    tapes = await asyncio.to_thread(read_tapes, folder / TAPES)
    saved, more = await asyncio.to_thread(_saved_files, lines, mask, run.home.sessions)
    # Also masks values that became secrets after the tapes were written.
    cleaned = [
        TapedRun(
            run=replace(tape.run, facts=mask.json(tape.run.facts)),
            models=tuple(replace(each, facts=mask.json(each.facts)) for each in tape.models),
            exchanges=tuple(_clean(each, mask) for each in tape.exchanges),
        )
        for tape in tapes
    ]
    return Recording(
        session_id=session_id,
        version=__version__,
        lines=lines,
        now=run_of(
            run.config,
            mask=mask,
            after=0,
            at=run.world.clock.now(),
            attended=any(line.kind in ("approval_asked", "question_asked") for line in lines),
            root="",
            cwd="",
        ),
        shared=shared,
        tapes=tuple(cleaned),
        saved_results=saved,
        masked=masked + more + sum(e.masked for tape in cleaned for e in tape.exchanges),
    )


def _rows(db: sqlite3.Connection, session_id: str) -> tuple[list[LogRow], int]:
    """Return the rows of a session, and how many of them a fork inherits."""
    rows: list[LogRow] = []
    shared = 0
    for segment in history_segments(db, session_id):
        shared = len(rows)
        rows += read_rows(db, segment.session, upto=segment.upto).whole
    if not rows:
        raise NotFound(f"Session {session_id} has no records.")
    for number, row in enumerate(rows, start=1):
        if row.n != number:
            raise UsageError(
                f"Record {number} of {session_id} is damaged, so the session cannot be replayed; "
                "`hermes sessions verify` shows details."
            )
        if is_newer(row.kind, row.version):
            raise UsageError(
                f"Record {number} was written by a newer Hermes; update Hermes to replay it."
            )
    return rows, shared


def _lines(
    rows: Iterable[LogRow], shared: int, mask: SecretMask
) -> tuple[tuple[RecordedLine, ...], int]:
    """Return the lines with secrets masked, and the number of masked records. A masked record
    invalidates its hash and all later ones."""
    lines, masked = [], 0
    for number, row in enumerate(rows):
        body = row.body
        if mask.occurs_in(body):
            body = encode(mask.json(decode(dict, body)))
            masked += 1
        whole = not masked and number >= shared
        lines.append(
            RecordedLine(
                n=row.n,
                at=row.at,
                kind=row.kind,
                version=row.version,
                body=msgspec.Raw(body),
                turn_id=row.turn_id,
                hash=row.hash.hex() if whole else "",
            )
        )
    return tuple(lines), masked


def _saved_files(
    lines: Iterable[RecordedLine], mask: SecretMask, sessions: Path
) -> tuple[dict[str, str], int]:
    """Return the full texts of truncated results whose files still exist."""
    saved: dict[str, str] = {}
    masked = 0
    for line in lines:
        if line.kind != "tool_finished" or b'"persisted"' not in bytes(line.body):
            continue
        event = line.event
        assert isinstance(event, ToolFinished)
        path = event.result.details.get("persisted")
        if isinstance(path, str) and Path(path).is_relative_to(sessions.resolve()):
            try:
                text = Path(path).read_text("utf-8")
            except (OSError, UnicodeError):
                continue
            saved[path] = mask.text(text)
            masked += saved[path] != text
    return saved, masked


def _clean(exchange: RecordedExchange, mask: SecretMask) -> RecordedExchange:
    body, hidden = mask.data(exchange.body)
    answer, in_answer = mask.data(exchange.answer)
    answer, more = mask.stream(answer)
    if not hidden and not in_answer and not more:
        return exchange
    pieces = split_like(answer, list(exchange.pieces()))
    return replace(
        exchange,
        body=body,
        answer=answer,
        sizes=tuple(map(len, pieces)),
        masked=exchange.masked + hidden + in_answer + more,
    )


class ModelCallRecorder:
    """Records the model calls of one session in one process, which starts after `after` records.
    A resumed session gets its tape at once: the replay must know where the process started."""

    def __init__(
        self,
        context: RunContext,
        models: Models,
        session_id: str,
        request: SessionRequest,
        workspace: Workspace,
        after: int,
    ) -> None:
        self._models = models
        self._settings = context.settings
        self._mask = SecretMask(
            context.redactor.values(), context.redactor.marks, context.redactor.typed
        )
        run = run_of(
            context.config,
            mask=self._mask,
            after=after,
            at=context.world.clock.now(),
            attended=request.attended,
            root=workspace.root,
            cwd=workspace.cwd,
        )
        folder = context.home.sessions / session_id / TAPES
        self._tape = TapeRecorder(folder, run, mask=self._mask, clock=context.world.clock)
        if after:
            self._tape.open()

    def middleware(self, inner: Provider) -> Provider:
        return InterceptedProvider(inner, self._tape)

    def record_model(self, model: str, provider: str, tier: str | None) -> None:
        """Record the model to which the session connects."""
        tape_model = endpoint_facts(self._models, self._settings, self._mask, model, provider, tier)
        self._tape.record_model(tape_model)
