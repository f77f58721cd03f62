"""What a program changes in its session: first messages, stored texts, late steers and pauses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from hermes.codec.values import JsonObject, replace
from hermes.core.events import MessageReceived, Record, Steered, TurnEnded, TurnStarted, Withdrawn
from hermes.core.message_dicts import messages_from_dicts
from hermes.core.messages import Image, Message, Text, UserMessage
from hermes.core.prompt import Prompt, ToolSpec
from hermes.core.session import Session
from hermes.core.session_deps import SessionDeps, Toolbox, View
from hermes.core.tools import Tool, ToolContext, ToolOutput
from hermes.core.transcript import Transcript


class SessionChanges:
    """Adapts the dependencies of the session, and listens to its records. `held` are steers that
    wait for the next turn. `sent` has the texts that the model receives in place of stored ones and
    `timestamps` the times of messages, both by the key of the message."""

    def __init__(self, prefill: Sequence[JsonObject], tool_delay: float) -> None:
        self._first = messages_from_dicts(prefill)
        self._tool_delay = tool_delay
        self._specs: tuple[ToolSpec, ...] = ()
        self._keys: dict[int, str] = {}
        self._steers: dict[int, str] = {}
        self._late: list[str] = []
        # A turn runs that takes steers.
        self.is_running = False
        self.held: list[str] = []
        self.sent: dict[str, str] = {}
        self.timestamps: dict[str, float] = {}

    def adapt(self, _session_id: str, deps: SessionDeps) -> None:
        deps.withdraws_late_steers = True
        deps.view = self._wrap_view(deps.view)
        self._specs = deps.toolbox.specs
        if self._tool_delay > 0:
            sleep = partial(deps.world.clock.sleep, self._tool_delay)
            deps.toolbox = PacedToolbox(deps.toolbox, sleep)

    def push(self, record: Record) -> None:
        match record.event:
            case MessageReceived(steer=True, message=message):
                self._steers[record.n] = message.text
            case MessageReceived(key=key) if key in self.sent or key in self.timestamps:
                self._keys[record.n] = key
            case TurnStarted():
                self.is_running = True
            case TurnEnded():
                self.is_running = False
            case Steered(takes=takes):
                for n in takes:
                    self._steers.pop(n, None)
            case Withdrawn(n=n) if n in self._steers:
                self._late.append(self._steers.pop(n))
            case _:
                pass

    def close(self) -> None:
        self.is_running = False
        self._keys.clear()
        self._steers.clear()

    def take_late(self) -> list[str]:
        """Return the steers that came too late for their turn, once."""
        late, self._late = self._late, []
        return late

    def take_held(self) -> list[str]:
        held, self.held = self.held, []
        return held

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that the model sees."""
        return self._specs

    def add_timestamps(self, entries: Sequence[JsonObject], session: Session) -> None:
        """Add the times of messages that the program gave to their entries in the chat format."""
        transcript = session.transcript
        users = [each for each in transcript.messages if isinstance(each, UserMessage)]
        rows = [entry for entry in entries if entry["role"] == "user"]
        for message, entry in zip(users, rows, strict=True):
            key = self._keys.get(transcript.number_of(message), "")
            if key in self.timestamps:
                entry["timestamp"] = self.timestamps[key]

    def _wrap_view(self, view: View) -> View:
        def changed(transcript: Transcript) -> Prompt:
            prompt = view(transcript)
            if not self._first and not self.sent:
                return prompt
            sent = (self._as_sent(message, transcript) for message in prompt.messages)
            return replace(prompt, messages=(*self._first, *sent))

        return changed

    def _as_sent(self, message: Message, transcript: Transcript) -> Message:
        key = self._keys.get(transcript.number_of(message), "")
        if key not in self.sent or not isinstance(message, UserMessage):
            return message
        images = (part for part in message.parts if isinstance(part, Image))
        return replace(message, parts=(Text(text=self.sent[key]), *images))


class PacedToolbox:
    """A toolbox whose tools wait before each call but the first."""

    def __init__(self, inner: Toolbox, sleep: Callable[[], Awaitable[None]]) -> None:
        self._inner = inner
        self._sleep = sleep
        self._called = False

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._inner.specs

    def load(self, name: str) -> Tool | None:
        found = self._inner.load(name)
        return None if found is None else PacedTool(found, self._pause)

    async def _pause(self) -> None:
        if self._called:
            await self._sleep()
        self._called = True


class PacedTool(Tool):
    """A tool that waits before it runs."""

    def __init__(self, inner: Tool, pause: Callable[[], Awaitable[None]]) -> None:
        self.__dict__.update(inner.__dict__)
        self._inner = inner
        self._pause = pause

    @property
    def spec(self) -> ToolSpec:
        return self._inner.spec

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        await self._pause()
        return await self._inner(ctx, arguments)
