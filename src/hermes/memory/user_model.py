"""Connects sessions to a memory provider: updated after turns, recalled before requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import JsonValue, replace
from hermes.core.errors import HermesError, ToolError
from hermes.core.events import SessionOpened
from hermes.core.messages import AssistantMessage, Message, Text, UserMessage, user_says
from hermes.core.ports import Middleware, Provider
from hermes.core.prompt import Delta, Prompt, Reply, TextDelta
from hermes.core.scrub import describe_leftover
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.memory.entries import OWNER, Operation, Target
from hermes.memory.provider import (
    CLOSE,
    OPEN,
    ApprovalCheck,
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
    from hermes.memory.local import UserModel
    from hermes.memory.memories import Memories
    from hermes.memory.service import MemoryService


# Digest of a message and the text added to it, by position.
_Recalls = dict[int, tuple[bytes, str]]


class RecallingProvider:
    """A provider that appends what is known about the user to each user message. A message keeps
    its addition, so that the beginning of a prompt never changes."""

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
        self._known: _Recalls | None = None
        self._made: dict[int, tuple[Message, Message]] = {}

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        """Request a reply with the additions, and remove echoes of them from the reply and its
        deltas."""
        asked = next(
            (
                (index, message)
                for index, message in reversed(list(enumerate(prompt.messages)))
                if isinstance(message, UserMessage) and message.origin == "user"
            ),
            None,
        )
        if self._known is None:
            self._known = await self._memories.recalls_of(self._session().id)
        if asked is not None and asked[0] == len(prompt.messages) - 1:
            await self._recall(self._known, *asked)
        known = self._known
        messages = tuple(self._with_block(known, *each) for each in enumerate(prompt.messages))
        echo = EchoFilter()
        async with aclosing(self._inner.reply(replace(prompt, messages=messages))) as parts:
            async for part in parts:
                if isinstance(part, TextDelta):
                    if text := echo.feed(part.text):
                        yield TextDelta(text=text)
                    continue
                if isinstance(part, Reply):
                    if text := echo.finish():
                        yield TextDelta(text=text)
                    part = replace(part, message=_without_echo(part.message))
                    if asked is not None and not part.message.calls:
                        self._attached.turn_ended(asked[1].text, part.message.text)
                yield part

    async def _recall(self, known: _Recalls, index: int, message: UserMessage) -> None:
        if index in known:
            return
        session = self._session()
        self._attached.before_turn(session.transcript.messages, session.transcript.turn_starts)
        if text := await self._attached.prefetch(message.text):
            known[index] = (_mark(message), text)
            await self._memories.record_recall(session.id, index, _mark(message), text)

    def _with_block(self, known: _Recalls, index: int, message: Message) -> Message:
        found = known.get(index)
        if found is None or not isinstance(message, UserMessage) or found[0] != _mark(message):
            return message
        before = self._made.get(index)
        if before is None or before[0] is not message:
            parts = (*message.parts, Text(text=f"\n\n{found[1]}"))
            before = (message, UserMessage(parts=parts, origin=message.origin))
            self._made[index] = before
        return before[1]


def _without_echo(message: AssistantMessage) -> AssistantMessage:
    if OPEN not in message.text and CLOSE not in message.text:
        return message
    parts = (
        Text(text=remove_echo(part.text)) if isinstance(part, Text) else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def _mark(message: UserMessage) -> bytes:
    return blake2b(message.text.encode(), digest_size=16).digest()


TASK = "user_model"
HONCHO_SECONDS = 60.0
HONCHO = "mcp:honcho"
BUILT_IN = ("local", "honcho")
HELD = "Nothing was changed: {}, and no one could approve. Tell the user the fact instead."
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

    def middleware(self, session_id: str, opened: SessionOpened) -> Middleware | None:
        """Return the middleware that adds what is known about the user to requests."""
        if not self._serves(opened):
            return None

        def wrap(inner: Provider) -> Provider:
            attached = self.attach(session_id, opened)
            if not attached.provider.is_available():
                return inner
            session = partial(self._memory.find_session, session_id)
            return RecallingProvider(inner, attached, self._memory.of(), session)

        return wrap

    def block(self, opened: SessionOpened | SessionRequest) -> str:
        """Return the provider's block for the system prompt, constant for the run."""
        if not self._serves(opened):
            return ""
        if self._block is None:
            provider = self._create("")
            self._block = provider.system_prompt_block() if provider.is_available() else ""
        return self._block

    def on_compaction(self, session_id: str) -> None:
        """Tell the provider that the conversation was compacted."""
        if (attached := self._attached.get(session_id)) is not None:
            attached.on_switch("compacted")

    async def summary_text(self, session_id: str, messages: Sequence[Message]) -> str:
        """Return what the summary of these messages should contain."""
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

            def is_trusted() -> bool:
                transcript = self._memory.find_session(session_id).transcript
                return not untrusted_in(transcript.origins() - {HONCHO})

            self._attached[session_id] = MemoryProviderSession(
                provider, context, trusted=is_trusted
            )
        return self._attached[session_id]

    async def detach(self, session_id: str) -> None:
        """End the session at the provider. The provider session of the parent receives the result
        of a subagent."""
        session = self._memory.find_session(session_id)
        messages, opened = session.transcript.messages, session.transcript.opened
        if opened and opened.source == "subagent" and (parent := self._attached.get(opened.parent)):
            requests = [each for each in messages if isinstance(each, UserMessage)]
            task = requests[0].text if requests else ""
            texts = (each.text for each in reversed(messages) if isinstance(each, AssistantMessage))
            result = next((text for text in texts if text.strip()), "")
            parent.queue(lambda provider: provider.on_delegation(task, result, session_id))
        if (attached := self._attached.pop(session_id, None)) is not None:
            await attached.close(tuple(messages))

    def notify_change(
        self, session_id: str, target: Target, operations: Sequence[Operation]
    ) -> None:
        """Report changes of the memory to the provider."""
        if (attached := self._attached.get(session_id)) is not None:

            async def report(provider: MemoryProvider) -> None:
                for each in operations:
                    await provider.on_memory_write(each.action, target, each.content)

            attached.queue(report)

    async def forget(self, remove_phrases: Callable[[str], str]) -> list[str]:
        """Remove phrases from the local store, whatever provider is configured, and from the
        provider. Return where they may remain."""
        from hermes.memory.local import PersonStore

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
        """Return files outside the home that a backup must include."""
        return self._create("").backup_paths() if self._name else ()

    def local_tool_service(self, session_id: str, opened: SessionOpened) -> UserModel:
        from hermes.memory.local import LocalModel, UserModel

        provider = self.attach(session_id, opened).provider if self._name == "local" else None
        model = provider if isinstance(provider, LocalModel) else None
        return UserModel(model, self._approval_check(session_id, opened))

    def honcho_tool_service(self, session_id: str, opened: SessionOpened) -> HonchoService:
        from hermes.memory.honcho.model import HonchoModel, HonchoService

        async def ready() -> HonchoModel:
            attached = self.attach(session_id, opened)
            await attached.ready()
            assert isinstance(attached.provider, HonchoModel)
            return attached.provider

        check = self._approval_check(session_id, opened)
        return HonchoService(ready if self._name == "honcho" else None, check)

    def _approval_check(self, session_id: str, opened: SessionOpened) -> ApprovalCheck:
        async def check(call_id: str) -> None:
            call = await self._memory.describe_call(session_id, opened, call_id, own=HONCHO)
            if call.held:
                raise ToolError(HELD.format(call.held))

        return check

    def _create(self, session_id: str) -> MemoryProvider:
        if (make := self._memory.providers.get(self._name)) is not None:
            return make()
        if self._name == "honcho":
            return self._honcho()
        from hermes.memory.local import LocalModel, PersonStore

        async def ask(system: str, question: str) -> str:
            session = self._memory.find_session(session_id)
            auxiliary = SideModel(
                self._memory.models, self._memory.run.settings, session.transcript
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
        variables = {name: run.config.secrets.get(name) for name in VARIABLES}
        return load_settings(run.home.root, Path(run.user_home), variables)

    def set_honcho(self, **changes: JsonValue) -> HonchoSettings:
        """Change settings by their names in `honcho.json`."""
        from hermes.memory.honcho.settings import change_settings

        change_settings(self._memory.run.home.root, Path(self._memory.run.user_home), **changes)
        return self.honcho_settings()

    async def honcho_identity(self, lines: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the server's card of the assistant; `lines` replace it."""
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
