"""What models the user joined to an app: told of every turn, asked before the next."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.auxiliary import Auxiliary
from hermes.app.suspicion import scan_for_threats, untrusted_in
from hermes.codec.values import replace
from hermes.core.errors import HermesError
from hermes.core.events import SessionOpened
from hermes.core.messages import Message, Text, UserMessage, user_says
from hermes.core.parts import Connect
from hermes.core.ports import Meter, Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.turn import Limits
from hermes.memory.attached import Attached
from hermes.memory.entries import OWNER, Operation, Source, Target
from hermes.memory.provider import Began, MemoryProvider

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.memory.honcho.client import Answer
    from hermes.memory.honcho.modelling import HonchoModel
    from hermes.memory.honcho.tools import HonchoDesk
    from hermes.memory.local.modelling import LocalModel
    from hermes.memory.local.tools import UserModel
    from hermes.memory.memories import Memories

TASK = "user_model"
HONCHO_SECONDS = 60.0
HONCHO = "mcp:honcho"


class Modelling:
    """For all sessions of an app; where no provider is chosen, it does nothing."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._name = app.settings.memory.provider
        self._attached: dict[str, Attached] = {}

    def around(self, session_id: str, opened: SessionOpened, connect: Connect) -> Connect:
        """The way to models, past what is known of the user."""
        if not self._name or opened.principal not in ("owner", "system") or opened.parent:
            return connect

        def through(model: str, provider: str, meter: Meter) -> tuple[Provider, Limits]:
            inner, limits = connect(model, provider, meter)
            attached = self.attached(session_id, opened)
            if not attached.provider.is_available():
                return inner, limits
            return Recalling(inner, attached, self._app.memory.of(), session_id), limits

        return through

    def attached(self, session_id: str, opened: SessionOpened) -> Attached:
        if session_id not in self._attached:
            began = Began(
                session_id=session_id,
                cwd=opened.cwd,
                platform=opened.source,
                context="cron" if opened.source == "cron" else "primary",
            )
            provider = self._made(session_id)
            self._attached[session_id] = Attached(
                provider, began, trusted=lambda: self._is_trusted(session_id)
            )
        return self._attached[session_id]

    async def detach(self, session_id: str) -> None:
        """The session is over here; what it has left to tell is told."""
        if (attached := self._attached.pop(session_id, None)) is not None:
            await attached.close()

    def heard(
        self, session_id: str, target: Target, wishes: Sequence[Operation], _source: Source
    ) -> None:
        """What was remembered is told to the provider as well."""
        attached = self._attached.get(session_id)
        for wish in wishes if attached else ():

            async def write(provider: MemoryProvider, wish: Operation = wish) -> None:
                await provider.on_memory_write(wish.action, target, wish.content)

            assert attached is not None
            attached.memory_written(write)

    async def forget(self, erased: Callable[[str], str]) -> list[str]:
        """From all that was ever kept here, whatever is chosen now; and from the server."""
        from hermes.memory.local.people import People

        people = People(self._app.home.memories / "people.db", OWNER)
        await people.erase(erased)
        people.close()
        if self._name != "honcho":
            return []
        model = self._honcho()
        try:
            return await model.forget(erased)
        except HermesError as error:
            return [f"Honcho could not be asked to forget ({error})"]

    def local_desk(self, session_id: str, opened: SessionOpened) -> UserModel:
        from hermes.memory.local.modelling import LocalModel
        from hermes.memory.local.tools import UserModel

        provider = self.attached(session_id, opened).provider if self._name == "local" else None
        model = provider if isinstance(provider, LocalModel) else None
        return UserModel(model, self._against(session_id, opened))

    def honcho_desk(self, session_id: str, opened: SessionOpened) -> HonchoDesk:
        from hermes.memory.honcho.modelling import HonchoModel
        from hermes.memory.honcho.tools import HonchoDesk

        async def ready() -> HonchoModel:
            attached = self.attached(session_id, opened)
            await attached.ready()
            assert isinstance(attached.provider, HonchoModel)
            return attached.provider

        return HonchoDesk(
            ready if self._name == "honcho" else None, self._against(session_id, opened)
        )

    def _against(self, session_id: str, opened: SessionOpened) -> Callable[[str], Awaitable[str]]:
        async def against(call_id: str) -> str:
            return (await self._app.memory.witnessed(session_id, opened, call_id, own=HONCHO)).held

        return against

    def _made(self, session_id: str) -> MemoryProvider:
        return self._honcho() if self._name == "honcho" else self._local(session_id)

    def _local(self, session_id: str) -> LocalModel:
        from hermes.memory.local.modelling import LocalModel
        from hermes.memory.local.people import People

        async def ask(system: str, question: str) -> str:
            session = self._app.session(session_id)
            auxiliary = Auxiliary(
                self._app.models,
                self._app.settings,
                main=lambda: (session.transcript.model, session.transcript.provider),
                tell=lambda _text: None,
            )
            prompt = Prompt(system=system, messages=(user_says(question),), effort="low")
            return (await auxiliary.ask(TASK, prompt, session.meter)).message.text

        return LocalModel(
            People(self._app.home.memories / "people.db", OWNER),
            ask=ask,
            scan=scan_for_threats,
            clock=self._app.world.clock,
        )

    def _honcho(self) -> HonchoModel:
        from hermes.memory.honcho.client import Client
        from hermes.memory.honcho.modelling import HonchoModel
        from hermes.memory.honcho.settings import VARIABLES, load_settings

        app = self._app
        given = {name: app.config.secrets.get(name) for name in VARIABLES}
        settings = load_settings(app.home.root, Path(app.person), given)
        if not settings.api_key and not settings.base_url:
            app.news.append("Honcho has no key: set HONCHO_API_KEY, or HONCHO_BASE_URL.")
        client = Client(self._fetch, settings.url, settings.api_key, settings.workspace)
        return HonchoModel(settings, client)

    async def _fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        from hermes.memory.honcho.client import Answer
        from hermes.providers.http import Timeouts

        timeouts = Timeouts(read=HONCHO_SECONDS, stale=HONCHO_SECONDS)
        async with self._app.models.http.send(
            method, url, body=body, headers=headers, timeouts=timeouts
        ) as answer:
            wait = answer.headers.get("retry-after", "")
            raw = await answer.read()
        seconds = float(wait) if wait.replace(".", "", 1).isdigit() else 0.0
        return Answer(status=answer.status, body=raw, retry_after=seconds)

    def _is_trusted(self, session_id: str) -> bool:
        return not untrusted_in(self._app.session(session_id).transcript.origins() - {HONCHO})


class Recalling:
    """A provider that shows the model, beside each message of the user, what is known about them.
    What stood beside a message once stays there, so that prompts only grow."""

    def __init__(
        self, inner: Provider, attached: Attached, memories: Memories, session_id: str
    ) -> None:
        self._inner = inner
        self._attached = attached
        self._memories = memories
        self._session_id = session_id
        self._known: dict[int, tuple[bytes, str]] | None = None
        self._made: dict[int, tuple[Message, Message]] = {}

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        said = _last_said(prompt.messages)
        messages = await self._with_recalled(prompt.messages, said)
        async with aclosing(self._inner.reply(_with(prompt, messages))) as parts:
            async for part in parts:
                if isinstance(part, Reply) and not part.message.calls and said is not None:
                    asked = prompt.messages[said]
                    assert isinstance(asked, UserMessage)
                    self._attached.turn_ended(asked.text, part.message.text)
                yield part

    async def _with_recalled(
        self, messages: tuple[Message, ...], said: int | None
    ) -> tuple[Message, ...]:
        if self._known is None:
            self._known = await self._memories.recalled(self._session_id)
        if said is not None and said == len(messages) - 1 and said not in self._known:
            message = messages[said]
            assert isinstance(message, UserMessage)
            if text := await self._attached.prefetch(message.text):
                self._known[said] = (_mark(message), text)
                await self._memories.note_recalled(self._session_id, said, _mark(message), text)
        return tuple(self._shown(place, message) for place, message in enumerate(messages))

    def _shown(self, place: int, message: Message) -> Message:
        found = (self._known or {}).get(place)
        if found is None or not isinstance(message, UserMessage) or found[0] != _mark(message):
            return message
        before = self._made.get(place)
        if before is None or before[0] is not message:
            parts = (*message.parts, Text(text=f"\n\n{found[1]}"))
            before = (message, UserMessage(parts=parts, origin=message.origin))
            self._made[place] = before
        return before[1]


def _with(prompt: Prompt, messages: tuple[Message, ...]) -> Prompt:
    return replace(prompt, messages=messages)


def _last_said(messages: tuple[Message, ...]) -> int | None:
    """The place of the newest message of the user."""
    return next(
        (
            place
            for place in range(len(messages) - 1, -1, -1)
            if isinstance(message := messages[place], UserMessage) and message.origin == "user"
        ),
        None,
    )


def _mark(message: UserMessage) -> bytes:
    return blake2b(message.text.encode(), digest_size=16).digest()
