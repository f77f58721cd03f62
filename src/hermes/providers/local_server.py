"""Local model servers: silent truncation, refusals, and waiting while a server makes progress."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import lru_cache
from typing import Literal, TypeVar

from hermes.codec.values import Value
from hermes.core.errors import ProviderError
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply
from hermes.core.world import Clock
from hermes.net.http import HttpClient
from hermes.providers.endpoint import Endpoint
from hermes.providers.model_servers import ServerQuery, query_endpoint
from hermes.providers.wire.events import objects_of, parse_json
from hermes.providers.wire.format import request_headers
from hermes.providers.wire.usage import estimate_prompt_tokens

_ADVICE = (
    (
        r"enable-auto-tool-choice|tool-call-parser",
        "vLLM at {host} was started without tool support; restart it with"
        " `--enable-auto-tool-choice --tool-call-parser hermes` (or the model's own parser).",
    ),
    (
        r"--jinja|tools param requires|jinja template.{0,40}tool",
        "llama.cpp at {host} was started without tool support; restart `llama-server` with"
        " `--jinja`.",
    ),
    (
        r"does not support tools|tools? (?:is|are) not supported|tool use is not supported",
        "{model} at {host} does not support tools: choose a model that does (`ollama pull qwen3`),"
        " or use this one without tools.",
    ),
)


def explain_refusal(error: ProviderError, endpoint: Endpoint) -> ProviderError:
    """Return the same error with better advice if it is a refusal of tools."""
    text = error.body or str(error)
    for pattern, advice in _ADVICE:
        if error.status is not None and re.search(pattern, text, re.IGNORECASE):
            return ProviderError(
                advice.format(host=endpoint.host, model=endpoint.model),
                reason="format_error",
                status=error.status,
                body=error.body,
            )
    return error


LABELS = {"ollama": "Ollama", "llamacpp": "llama.cpp", "lmstudio": "LM Studio", "vllm": "vLLM"}
_RAISE = {
    "ollama": "set `model.ollama_num_ctx`, or start it with OLLAMA_CONTEXT_LENGTH={tokens}",
    "llamacpp": "start llama-server with `-c {tokens}` (it is divided by `--parallel`)",
    "lmstudio": "load the model with a context length of {tokens}",
    "vllm": "start it with `--max-model-len {tokens}`",
}
WANTED = 32_768


class ServerWindow(Value):
    """The context window that a local server reports."""

    server: str  # its kind; "" if unknown
    tokens: int | None = None  # the window in use; None if unknown
    most: int | None = None  # the model's maximum

    @property
    def label(self) -> str:
        return LABELS.get(self.server, "The server")

    def advice(self, wanted: int = WANTED) -> str:
        """Return how to get that many tokens, as a clause."""
        form = _RAISE.get(self.server, "raise the context length in its settings")
        return form.format(tokens=wanted)


async def query_window(http: HttpClient, endpoint: Endpoint) -> ServerWindow:
    """Ask the server for its window. This costs a few small requests and no completion. A server
    that does not report its window gets no number."""
    server, info = await query_endpoint(http, endpoint)
    if info is None:
        return ServerWindow(server=server)
    # vLLM lists the window it was started with; others list the model's maximum.
    runs = info.loaded or server == "vllm"
    return ServerWindow(
        server=server, tokens=info.window if runs else None, most=None if runs else info.window
    )


# No common tokenizer merges two words, or a word and a number, into one token, except for fixed
# phrases; _SHARE allows for those.
_RUNS = re.compile(r"[^\W\d_]+|\d+")
_SHARE = 0.85


class TokenLowerBound:
    """Counts a growing prompt; each message is counted once."""

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._count = 0

    def of_prompt(self, prompt: Prompt) -> int:
        """Count system text and messages. Tools are excluded: a template may leave them and their
        calls out."""
        known = len(self._seen)
        if prompt.messages[:known] != self._seen:
            known, self._count = 0, 0
        self._count += sum(map(_count_message, prompt.messages[known:]))
        self._seen = prompt.messages
        return int((self._count + _count_system(prompt.system)) * _SHARE)


@lru_cache(maxsize=8)
def _count_system(text: str) -> int:
    """Return the minimum number of tokens of a system text. Cached: many sessions share it."""
    return _count_runs(text)


def _count_message(message: Message) -> int:
    match message:
        case UserMessage() | AssistantMessage():
            return _count_runs(message.text)
        case ToolMessage(results=results):
            return sum(_count_runs(result.text) for result in results)


def _count_runs(text: str) -> int:
    return len(_RUNS.findall(text))


# Smaller differences are noise.
_LEAST = 256
_SURPLUS = 1.1
# Two counts suggest the same window when the smaller is at least this part of the larger.
_ALIKE = 0.5


class LocalServerProvider:
    """Detects prompts that a local server truncated. There is one per session, around a single
    request. A server that counts fewer tokens than the prompt must have has truncated it. That is
    reported once, with the window and how to raise it, and passed to `learned`. Some servers count
    only uncached tokens, so the window is looked up; where it is unknown, two consecutive counts
    must agree."""

    def __init__(
        self,
        inner: Provider,
        endpoint: Endpoint,
        *,
        http: HttpClient,
        learned: Callable[[int], None] | None = None,
    ) -> None:
        self._inner = inner
        self._endpoint = endpoint
        self._http = http
        self._learned = learned
        self._counting = TokenLowerBound()
        self._reported = False
        self._doubted = 0

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        failed: ProviderError | None = None
        try:
            async with aclosing(self._inner.reply(prompt)) as stream:
                async for item in stream:
                    if isinstance(item, Reply) and (notice := await self._check(prompt, item)):
                        yield notice
                    yield item
        except ProviderError as error:
            failed = explain_refusal(error, self._endpoint)
        if failed is not None:
            raise failed

    async def _check(self, prompt: Prompt, reply: Reply) -> Notice | None:
        counted = reply.usage.prompt
        if self._reported or reply.usage.estimated or reply.usage.requests != 1 or not counted:
            return None
        least = self._counting.of_prompt(prompt)
        if least <= counted * _SURPLUS or least - counted <= _LEAST:
            return None
        asked = await query_window(self._http, self._endpoint)
        estimate = estimate_prompt_tokens(prompt)
        if asked.tokens is not None:
            tokens, about, proven = asked.tokens, "", asked.tokens < estimate
        else:
            low, tokens = sorted((self._doubted, counted))
            about, proven = "about ", low >= tokens * _ALIKE and low > _LEAST
            self._doubted = counted
        if not proven:
            return None
        self._reported = True
        if self._learned is not None:
            self._learned(tokens)
        wanted = 8_192
        while wanted < estimate * 2:
            wanted *= 2
        return Notice(
            text=f"{asked.label} truncated the start of the conversation: its window is"
            f" {about}{tokens} tokens. To raise it, {asked.advice(wanted)}.",
            kind="warn",
        )


Activity = Literal["busy", "alive", "idle", "gone"]
"""busy   it reports work
alive  it responds but reports nothing about work
idle   it reports no work
gone   it does not respond
"""

_PROBE_SECONDS = 5.0
_RUNNING = re.compile(rb"^vllm:num_requests_(?:running|waiting)\S*\s+([0-9.e+]+)", re.MULTILINE)
# Paths that report work first, then paths that any server answers.
_PATHS = ("/slots", "/metrics", "/health", "/api/ps", "/v1/models")


class ActivityProbe:
    """Asks a local server whether it is busy. It asks the path that responded last, and all paths
    when that one no longer responds."""

    def __init__(self, http: HttpClient, endpoint: Endpoint) -> None:
        headers = {**request_headers(endpoint), "accept": "*/*"}
        self._server = ServerQuery(http, endpoint.url, headers=headers, seconds=_PROBE_SECONDS)
        self._path = ""

    async def check(self) -> Activity:
        for path in (self._path, *_PATHS) if self._path else _PATHS:
            found = _activity(path, *await self._server.send("GET", path))
            if found is not None:
                self._path = path
                return found
        self._path = ""
        return "gone"


def _activity(path: str, status: int, body: bytes) -> Activity | None:
    if not status:
        return None
    if path == "/health" and status == 503:
        # The model is still loading.
        return "busy"
    if path == "/v1/models" and status < 500:
        return "alive"
    if status != 200:
        return None
    if path not in ("/slots", "/metrics"):
        return "alive"
    if path == "/slots":
        slots = (slot.get("is_processing") for slot in objects_of(parse_json(body)))
        work = [flag for flag in slots if isinstance(flag, bool)]
    else:
        work = [float(count) > 0 for count in _RUNNING.findall(body)]
    return ("busy" if any(work) else "idle") if work else None


T = TypeVar("T")

ALIVE_SECONDS = 4 * 3600.0
IDLE_SECONDS = 180.0
GONE_SECONDS = 60.0
_DEADLINES: dict[Activity, tuple[float, str]] = {
    "alive": (ALIVE_SECONDS, "has sent nothing for {hours} hours; restart it"),
    "idle": (IDLE_SECONDS, "has lost the request and is idle; try again"),
    "gone": (GONE_SECONDS, "no longer responds; check that it is running"),
}
_POLL_SECONDS = 15.0
_FIRST_SECONDS = 1.0


class LocalStallPolicy:
    """Decides how long a silent local server may take, since processing a long prompt can take an
    hour without a byte. While the server reports work, there is no limit. A server that only
    responds gets four hours of silence, one that reports no work three minutes (the request was
    lost), and one that does not respond one minute."""

    def __init__(
        self,
        probe: ActivityProbe,
        clock: Clock,
        *,
        host: str,
        first_seconds: float = _FIRST_SECONDS,
        poll_seconds: float = _POLL_SECONDS,
    ) -> None:
        self._probe = probe
        self._clock = clock
        self._host = host
        self._first_seconds = first_seconds
        self._poll_seconds = poll_seconds

    async def wait_for(self, attempt: Callable[[float], Awaitable[T]]) -> T:
        """Run the attempt for as long as the server works on it. Short waits cost nothing beyond
        the attempt."""
        try:
            return await attempt(self._first_seconds)
        except TimeoutError:
            pass
        waiting = asyncio.ensure_future(attempt(float("inf")))
        try:
            await self._watch(waiting)
            return await waiting
        finally:
            waiting.cancel()
            await asyncio.wait((waiting,))

    async def _watch(self, waiting: asyncio.Future[T]) -> None:
        """Return when the wait is over; raise ProviderError when waiting is pointless."""
        since = self._clock.monotonic()
        activity: Activity = "busy"
        while True:
            timer = asyncio.ensure_future(self._clock.sleep(self._poll_seconds))
            try:
                await asyncio.wait((waiting, timer), return_when=asyncio.FIRST_COMPLETED)
            finally:
                timer.cancel()
            if waiting.done():
                return
            newest = await self._probe.check()
            if waiting.done():
                return
            now = self._clock.monotonic()
            since = since if newest == activity else now
            activity = newest
            self._check_deadline(activity, now - since)

    def _check_deadline(self, activity: Activity, seconds: float) -> None:
        limit, why = _DEADLINES.get(activity, (float("inf"), ""))
        if seconds >= limit:
            why = why.format(hours=round(seconds / 3600))
            text = f"The server at {self._host} {why}."
            raise ProviderError(text, reason="timeout", retryable=True)
