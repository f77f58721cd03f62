"""The state that all handlers share: app, session pool, metrics, and the store in `api.db`."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, cast, get_args

from hermes.app.app import App
from hermes.codec.json import decode, encode
from hermes.config.settings import ApiServerSettings
from hermes.core.errors import HermesError, NotFound
from hermes.core.world import Clock
from hermes.cron.service import CronService
from hermes.hosting.admission import Admission
from hermes.hosting.idempotency import Idempotency, IdempotencyClaim, digest
from hermes.hosting.run import SESSION_ID
from hermes.hosting.run_executor import RunExecutor
from hermes.hosting.session_pool import SessionPool
from hermes.hosting.store import HostingStore
from hermes.journal.listing import SessionInfo
from hermes.models.browser import ModelBrowser
from hermes.surfaces.api.http import ApiRequest, ApiResponse, HttpError, invalid_value
from hermes.surfaces.api.tokens import ApiClient

TICK_SECONDS = 0.05
STORED_TICKS = 1_200


class Metrics:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.started_at = clock.now()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.streams = 0
        self._lags: deque[float] = deque(maxlen=STORED_TICKS)

    @property
    def worst_lag(self) -> float:
        """The worst lag of the last minute."""
        return max(self._lags, default=0.0)

    @property
    def uptime(self) -> float:
        return self._clock.now() - self.started_at

    async def watch_loop(self) -> None:
        """Measure how late the event loop is."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(TICK_SECONDS)
            self._lags.append(loop.time() - before - TICK_SECONDS)

    def text(self, gauges: dict[str, float], endings: dict[str, int]) -> str:
        lines = ["# TYPE hermes_requests_total counter"]
        for (method, route, status), count in sorted(self.requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(f"hermes_requests_total{{{labels}}} {count}")
        lines.append("# TYPE hermes_runs_total counter")
        for ending, count in sorted(endings.items()):
            lines.append(f'hermes_runs_total{{status="{ending}"}} {count}')
        own = {
            "hermes_uptime_seconds": self.uptime,
            "hermes_event_loop_worst_lag_seconds": self.worst_lag,
            "hermes_resident_bytes": float(resident_bytes()),
            "hermes_streams": float(self.streams),
        }
        for name, value in (gauges | own).items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


def resident_bytes() -> int:
    """Resident memory in bytes; 0 where the system does not report it."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * 4096


SCHEMA = """
CREATE TABLE IF NOT EXISTS threads (
    hash TEXT PRIMARY KEY, session_id TEXT, n INTEGER, messages INTEGER, at REAL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS threads_at ON threads (at);
CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY, client TEXT, session_id TEXT, n INTEGER, messages INTEGER,
    data BLOB, created_at REAL, accessed_at REAL
);
CREATE INDEX IF NOT EXISTS responses_accessed ON responses (accessed_at);
CREATE TABLE IF NOT EXISTS conversations (
    client TEXT, name TEXT, response_id TEXT, PRIMARY KEY (client, name)
) WITHOUT ROWID;
"""
# Earlier versions stored runs without their requests, and responses in another form. A retry of a
# request from before gets the response of the same run from the journal.
MIGRATION = """
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, at REAL) WITHOUT ROWID;
INSERT OR IGNORE INTO pending_runs SELECT id, NULL, at FROM runs;
DROP TABLE runs;
CREATE TABLE IF NOT EXISTS idempotency (
    key TEXT PRIMARY KEY, fingerprint TEXT, run_id TEXT, status INTEGER, body BLOB, headers TEXT,
    at REAL
) WITHOUT ROWID;
INSERT OR IGNORE INTO idempotency_keys SELECT key, fingerprint, run_id, NULL, at FROM idempotency;
DROP TABLE idempotency;
"""
THREAD_SECONDS = 90 * 86_400.0


def open_store(root: Path) -> HostingStore:
    return HostingStore(root / "api.db", SCHEMA + MIGRATION)


DEFAULT_NAME = "hermes-agent"
OnDisconnect = Literal["interrupt", "detach"]


class ServerContext:
    def __init__(self, app: App, store: HostingStore) -> None:
        self.app = app
        self.settings: ApiServerSettings = app.context.settings.api_server
        self.store = store
        self.pool = SessionPool(app)
        self.admission = Admission(
            max_active=self.settings.max_concurrent_runs,
            max_queued=self.settings.max_queued_runs,
            wait_seconds=self.settings.queue_seconds,
        )
        self.runner = RunExecutor(app, self.pool, self.admission, platform="api", store=store)
        self.jobs = CronService(app.context, app.journal)
        self.metrics = Metrics(app.context.world.clock)
        self.idempotency = Idempotency(store, app.context.world.clock)
        profile = app.context.home.profile
        own = DEFAULT_NAME if profile == "default" else profile
        self.model_name = self.settings.model_name or own

    async def model(self, model: str | None, provider: str | None) -> tuple[str, str]:
        """The model a request chooses: an alias, or any name if the settings allow it. Other names
        are placeholders of generic clients and mean the default model."""
        name = model or ""
        chosen = name in self.app.context.settings.model_aliases or bool(provider)
        if not name or name == self.model_name or not (chosen or self.settings.direct_models):
            return "", ""
        try:
            pick = await ModelBrowser(self.app.models).find(name, provider=provider or "")
        except HermesError as error:
            raise HttpError(404, "model_not_found", str(error), param="model") from error
        return pick.card.model, pick.card.provider

    async def session(self, session_id: str, client: ApiClient) -> SessionInfo:
        """A session that the client may see; HttpError 404 for any other."""
        info = await self.session_or_none(session_id, client)
        if info is None:
            raise session_not_found()
        return info

    async def session_or_none(self, session_id: str, client: ApiClient) -> SessionInfo | None:
        """Return the session like `session`, or None if the id is unused."""
        check_session_id(session_id)
        try:
            info = await self.app.archive.info(session_id)
        except NotFound:
            return None
        if not client.is_owner and info.source != client.source:
            raise session_not_found()
        return info


def check_session_id(session_id: str) -> None:
    if re.fullmatch(SESSION_ID, session_id, re.ASCII) is None:
        message = "A session id has 1 to 128 letters, digits or `._:-`, and starts with no sign."
        raise HttpError(400, "invalid_session_id", message, param="session_id")


def session_not_found() -> HttpError:
    return HttpError(404, "session_not_found", "There is no such session.")


def on_disconnect(request: ApiRequest, default: OnDisconnect) -> OnDisconnect:
    """What happens to the turn when the client disconnects: `interrupt` or `detach`."""
    chosen = (
        request.headers.get("x-hermes-on-disconnect")
        or request.query.get("on_disconnect")
        or default
    )
    if chosen not in get_args(OnDisconnect):
        raise invalid_value("`on_disconnect` must be `interrupt` or `detach`.", "on_disconnect")
    return cast(OnDisconnect, chosen)


async def delete_expired(server: ServerContext) -> None:
    """Delete expired threads and idempotency keys."""
    oldest = server.app.context.world.clock.now() - THREAD_SECONDS
    await server.store.change("DELETE FROM threads WHERE at < ?", [(oldest,)])
    await server.idempotency.delete_expired()


MAX_KEY_CHARS = 255
REPLAYED = (b"idempotency-replayed", b"true")


async def run_once(
    server: ServerContext,
    request: ApiRequest,
    work: Callable[[IdempotencyClaim], Awaitable[ApiResponse]],
) -> ApiResponse:
    """Execute the work, or return its stored response. Errors are not stored."""
    claim = await claim_key(server, request)
    if not claim.key:
        return await work(claim)

    async def encoded(claim: IdempotencyClaim) -> bytes:
        """A line with status and headers, then the body."""
        response = await work(claim)
        headers = [[name.decode(), value.decode()] for name, value in response.headers]
        return encode([response.status, headers]) + b"\n" + response.body

    data, is_replayed = await server.idempotency.once(claim, encoded)
    head, _, body = data.partition(b"\n")
    status, pairs = decode(tuple[int, list[tuple[str, str]]], head)
    headers = tuple((name.encode(), value.encode()) for name, value in pairs)
    return ApiResponse(
        status=status, body=body, headers=(*headers, REPLAYED) if is_replayed else headers
    )


async def claim_key(server: ServerContext, request: ApiRequest) -> IdempotencyClaim:
    """Claim the idempotency key of a request. Raises HttpError, IdempotencyConflict."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return IdempotencyClaim()
    if not 1 <= len(key) <= MAX_KEY_CHARS or not all("!" <= letter <= "~" for letter in key):
        message = f"An idempotency key has 1 to {MAX_KEY_CHARS} printable ASCII characters."
        raise HttpError(400, "invalid_idempotency_key", message, param="Idempotency-Key")
    session = f"{request.headers.get('x-hermes-session-id', '')}\0{request.session_key}"
    fingerprint = digest(request.path, session, request.raw.decode("utf-8", "replace"))
    return await server.idempotency.claim(request.client.name, request.route, key, fingerprint)
