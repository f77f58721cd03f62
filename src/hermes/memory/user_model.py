"""Connects sessions to a memory provider: updated after turns, recalled before requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import JsonValue, replace
from hermes.core.errors import HermesError
from hermes.core.events import SessionOpened
from hermes.core.messages import AssistantMessage, Message, Text, UserMessage, user_says
from hermes.core.ports import Meter, Provider
from hermes.core.prompt import Delta, Prompt, Reply, TextDelta
from hermes.core.scrub import describe_leftover
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.turn import Connect, TurnLimits
from hermes.memory.entries import OWNER, ChangeSource, Operation, Target
from hermes.memory.provider import (
    CLOSE,
    OPEN,
    EchoFilter,
    MemoryProvider,
    MemoryProviderSession,
    ProviderContext,
    remove_echo,
)
from hermes.models.side_model import SideModel
from hermes.policy.threat_scan import scan_for_threats, untrusted_in

if TYPE_CHECKING:
    from hermes.memory.honcho.client import HonchoResponse
    from hermes.memory.honcho.model import HonchoModel, HonchoService
    from hermes.memory.honcho.settings import HonchoSettings
    from hermes.memory.local.model import LocalModel, UserModel
    from hermes.memory.memories import Memories
    from hermes.memory.service import MemoryService


class RecallingProvider:
    """Appends what is known about the user to each user message. A message keeps its addition, so
    that prompts only grow."""

    def __init__(
        self,
        inner: Provider,
        attached: MemoryProviderSession,
        memories: Memories,
        session: Callable[[], Session],
    ) -> None:
        self._inner = inner
        self._attached = attached
        self._memories = memories
        self._session = session
        self._known: dict[int, tuple[bytes, str]] | None = None
        self._made: dict[int, tuple[Message, Message]] = {}

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        index = _last_message(prompt.messages)
        messages = await self._with_recalled(prompt.messages, index)
        async with aclosing(_clean(self._inner.reply(_with(prompt, messages)))) as parts:
            async for part in parts:
                if isinstance(part, Reply) and not part.message.calls and index is not None:
                    asked = prompt.messages[index]
                    assert isinstance(asked, UserMessage)
                    self._attached.turn_ended(asked.text, part.message.text)
                yield part

    async def _with_recalled(
        self, messages: tuple[Message, ...], index: int | None
    ) -> tuple[Message, ...]:
        if self._known is None:
            self._known = await self._memories.recalls_of(self._session().id)
        if index is not None and index == len(messages) - 1 and index not in self._known:
            message = messages[index]
            assert isinstance(message, UserMessage)
            transcript = self._session().transcript
            self._attached.before_turn(transcript.messages, transcript.turn_starts)
            if text := await self._attached.prefetch(message.text):
                self._known[index] = (_mark(message), text)
                await self._memories.record_recall(self._session().id, index, _mark(message), text)
        return tuple(self._with_block(i, message) for i, message in enumerate(messages))

    def _with_block(self, index: int, message: Message) -> Message:
        found = (self._known or {}).get(index)
        if found is None or not isinstance(message, UserMessage) or found[0] != _mark(message):
            return message
        before = self._made.get(index)
        if before is None or before[0] is not message:
            parts = (*message.parts, Text(text=f"\n\n{found[1]}"))
            before = (message, UserMessage(parts=parts, origin=message.origin))
            self._made[index] = before
        return before[1]


async def _clean(
    parts: AsyncGenerator[Delta | Reply],
) -> AsyncGenerator[Delta | Reply]:
    """Removes echoes of the recalled blocks from the reply, including its deltas."""
    echo = EchoFilter()
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, TextDelta):
                if text := echo.feed(part.text):
                    yield TextDelta(text=text)
                continue
            if isinstance(part, Reply):
                if text := echo.finish():
                    yield TextDelta(text=text)
                part = replace(part, message=_without_echo(part.message))
            yield part


def _without_echo(message: AssistantMessage) -> AssistantMessage:
    if OPEN not in message.text and CLOSE not in message.text:
        return message
    parts = (
        Text(text=remove_echo(part.text)) if isinstance(part, Text) else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def _with(prompt: Prompt, messages: tuple[Message, ...]) -> Prompt:
    return replace(prompt, messages=messages)


def _last_message(messages: tuple[Message, ...]) -> int | None:
    """Returns the index of the newest user message."""
    return next(
        (
            index
            for index in range(len(messages) - 1, -1, -1)
            if isinstance(message := messages[index], UserMessage) and message.origin == "user"
        ),
        None,
    )


def _mark(message: UserMessage) -> bytes:
    return blake2b(message.text.encode(), digest_size=16).digest()


TASK = "user_model"
HONCHO_SECONDS = 60.0
HONCHO = "mcp:honcho"
BUILT_IN = ("local", "honcho")
NO_KEY = "Honcho has no key: set HONCHO_API_KEY, or HONCHO_BASE_URL."


class UserModels:
    """The memory provider of all sessions of a run; does nothing if none is configured."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory
        self._name = memory.run.settings.memory.provider
        if self._name not in ("", *BUILT_IN, *memory.providers):
            memory.run.notices.append(f"Unknown memory provider {self._name!r}; none is used.")
            self._name = ""
        self._attached: dict[str, MemoryProviderSession] = {}
        self._block: str | None = None

    def wrap(self, session_id: str, opened: SessionOpened, connect: Connect) -> Connect:
        """Wraps `connect` so that requests include what is known about the user."""
        if not self._serves(opened):
            return connect

        def connect_recalling(
            model: str, provider: str, meter: Meter
        ) -> tuple[Provider, TurnLimits]:
            inner, limits = connect(model, provider, meter)
            attached = self.attach(session_id, opened)
            if not attached.provider.is_available():
                return inner, limits
            session = partial(self._memory.find_session, session_id)
            return RecallingProvider(inner, attached, self._memory.of(), session), limits

        return connect_recalling

    def block(self, opened: SessionOpened | SessionRequest) -> str:
        """Returns the provider's block for the system prompt, constant for the run."""
        if not self._serves(opened):
            return ""
        if self._block is None:
            provider = self._create("")
            self._block = provider.system_prompt_block() if provider.is_available() else ""
        return self._block

    def on_compaction(self, session_id: str) -> None:
        """Tells the provider that the conversation was compacted."""
        if (attached := self._attached.get(session_id)) is not None:
            attached.on_switch("compacted")

    async def summary_text(self, session_id: str, messages: Sequence[Message]) -> str:
        """Returns what the summary of these messages should contain."""
        attached = self._attached.get(session_id)
        return await attached.text_to_keep(messages) if attached else ""

    def _serves(self, session: SessionOpened | SessionRequest) -> bool:
        if session.person or session.parent:
            return False
        return bool(self._name and session.principal in ("owner", "system"))

    def attach(self, session_id: str, opened: SessionOpened) -> MemoryProviderSession:
        if session_id not in self._attached:
            context = ProviderContext(
                session_id=session_id,
                cwd=opened.cwd,
                platform=opened.source,
                context="cron" if opened.source == "cron" else "primary",
            )
            provider = self._create(session_id)
            self._attached[session_id] = MemoryProviderSession(
                provider, context, trusted=lambda: self._is_trusted(session_id)
            )
        return self._attached[session_id]

    async def detach(self, session_id: str) -> None:
        """Ends the session at the provider. The provider session of the parent receives the result
        of a subagent."""
        session = self._memory.find_session(session_id)
        messages, opened = session.transcript.messages, session.transcript.opened
        if opened and opened.source == "subagent" and (parent := self._attached.get(opened.parent)):
            requests = [each for each in messages if isinstance(each, UserMessage)]
            task = requests[0].text if requests else ""
            parent.on_delegation_end(task, _last_text(messages), session_id)
        if (attached := self._attached.pop(session_id, None)) is not None:
            await attached.close(tuple(messages))

    def notify_change(
        self,
        session_id: str,
        target: Target,
        operations: Sequence[Operation],
        _source: ChangeSource,
    ) -> None:
        """Reports changes of the memory to the provider."""
        attached = self._attached.get(session_id)
        for operation in operations if attached else ():

            async def write(provider: MemoryProvider, operation: Operation = operation) -> None:
                await provider.on_memory_write(operation.action, target, operation.content)

            assert attached is not None
            attached.memory_written(write)

    async def forget(self, remove_phrases: Callable[[str], str]) -> list[str]:
        """Removes phrases from the local store, whatever provider is configured, and from the
        provider. Returns where they may remain."""
        from hermes.memory.local.person_store import PersonStore

        people = PersonStore(self._memory.run.home.memories / "people.db", OWNER)
        left = [] if await people.forget(remove_phrases) else [describe_leftover(people.path)]
        people.close()
        if self._name in ("", "local"):
            return left
        try:
            return [*left, *await self._create("").forget(remove_phrases)]
        except HermesError as error:
            return [*left, f"{self._name.capitalize()} could not be cleaned ({error})"]

    def backup_paths(self) -> tuple[Path, ...]:
        """Returns files outside the home that a backup must include."""
        return self._create("").backup_paths() if self._name else ()

    def local_tool_service(self, session_id: str, opened: SessionOpened) -> UserModel:
        from hermes.memory.local.model import LocalModel, UserModel

        provider = self.attach(session_id, opened).provider if self._name == "local" else None
        model = provider if isinstance(provider, LocalModel) else None
        return UserModel(model, self._against(session_id, opened))

    def honcho_tool_service(self, session_id: str, opened: SessionOpened) -> HonchoService:
        from hermes.memory.honcho.model import HonchoModel, HonchoService

        async def ready() -> HonchoModel:
            attached = self.attach(session_id, opened)
            await attached.ready()
            assert isinstance(attached.provider, HonchoModel)
            return attached.provider

        return HonchoService(
            ready if self._name == "honcho" else None, self._against(session_id, opened)
        )

    def _against(self, session_id: str, opened: SessionOpened) -> Callable[[str], Awaitable[str]]:
        async def against(call_id: str) -> str:
            return (await self._memory.describe_call(session_id, opened, call_id, own=HONCHO)).held

        return against

    def _create(self, session_id: str) -> MemoryProvider:
        if (make := self._memory.providers.get(self._name)) is not None:
            return make()
        return self._honcho() if self._name == "honcho" else self._local(session_id)

    def _local(self, session_id: str) -> LocalModel:
        from hermes.memory.local.model import LocalModel
        from hermes.memory.local.person_store import PersonStore

        async def ask(system: str, question: str) -> str:
            session = self._memory.find_session(session_id)
            auxiliary = SideModel(
                self._memory.models,
                self._memory.run.settings,
                main=lambda: (session.transcript.model, session.transcript.provider),
                tell=lambda _text: None,
            )
            prompt = Prompt(system=system, messages=(user_says(question),), effort="low")
            return (await auxiliary.ask(TASK, prompt, session.meter)).message.text

        return LocalModel(
            PersonStore(self._memory.run.home.memories / "people.db", OWNER),
            ask=ask,
            scan=scan_for_threats,
            clock=self._memory.run.world.clock,
        )

    def honcho_settings(self) -> HonchoSettings:
        from hermes.memory.honcho.settings import VARIABLES, load_settings

        run = self._memory.run
        given = {name: run.config.secrets.get(name) for name in VARIABLES}
        return load_settings(run.home.root, Path(run.user_home), given)

    def set_honcho(self, **changes: JsonValue) -> HonchoSettings:
        """Changes settings by their names in `honcho.json`."""
        from hermes.memory.honcho.settings import change_settings

        change_settings(self._memory.run.home.root, Path(self._memory.run.user_home), **changes)
        return self.honcho_settings()

    async def honcho_identity(self, lines: Sequence[str] | None = None) -> tuple[str, ...]:
        """Returns the server's card of the assistant; `lines` replace it."""
        model = self._honcho()
        await model.client.ensure((model.user, model.ai))
        if lines is not None:
            return await model.client.set_card(model.ai, lines)
        return await model.client.card(model.ai)

    def _honcho(self) -> HonchoModel:
        from hermes.memory.honcho.client import HonchoClient
        from hermes.memory.honcho.model import HonchoModel
        from hermes.memory.honcho.settings import shared_settings

        run, settings = self._memory.run, self.honcho_settings()
        if not settings.api_key and not settings.base_url and NO_KEY not in run.notices:
            run.notices.append(NO_KEY)
        client = HonchoClient(self._fetch, settings.url, settings.api_key, settings.workspace)
        return HonchoModel(settings, client, outside=shared_settings(Path(run.user_home)))

    async def _fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> HonchoResponse:
        from hermes.memory.honcho.client import HonchoResponse
        from hermes.net.http import Timeouts

        timeouts = Timeouts(read=HONCHO_SECONDS, stale=HONCHO_SECONDS)
        async with self._memory.models.http.send(
            method, url, body=body, headers=headers, timeouts=timeouts
        ) as answer:
            wait = answer.headers.get("retry-after", "")
            raw = await answer.read()
        seconds = float(wait) if wait.replace(".", "", 1).isdigit() else 0.0
        return HonchoResponse(status=answer.status, body=raw, retry_after=seconds)

    def _is_trusted(self, session_id: str) -> bool:
        return not untrusted_in(
            self._memory.find_session(session_id).transcript.origins() - {HONCHO}
        )


def _last_text(messages: Sequence[Message]) -> str:
    texts = (each.text for each in reversed(messages) if isinstance(each, AssistantMessage))
    return next((text for text in texts if text.strip()), "")
