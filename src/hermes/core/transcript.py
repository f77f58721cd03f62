"""The state of a session as a fold over its records: what the model sees and what is unfinished."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from hermes.codec.values import JsonObject
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Archived,
    CallSettled,
    CapRaised,
    Compacted,
    ControlsChanged,
    EffectDecided,
    Erased,
    GoalChanged,
    HookAnswered,
    InnerCallFinished,
    InnerCallIntended,
    MessageReceived,
    ModelCalled,
    ModelSwitched,
    PersonalityChanged,
    QuestionAnswered,
    QuestionAsked,
    Record,
    ReplyAdded,
    Rewound,
    SessionEnded,
    SessionOpened,
    Steered,
    TitleChanged,
    ToolFinished,
    ToolIntended,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Withdrawn,
    inner_id,
)
from hermes.core.messages import (
    ATTACHED,
    WORKSPACE,
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    split_origins,
)
from hermes.core.prompt import CallNamed, Notice, ReasoningDelta, Restarted, TextDelta


class Transcript:
    """The state of a session. It changes only by `apply`, so folding the journal gives the live
    state."""

    def __init__(self) -> None:
        self.opened: SessionOpened | None = None
        self.title = ""
        self.model = ""
        self.provider = ""
        # All messages; `seen` is what the model sees of them.
        self.messages: list[Message] = []
        self.compactions: list[Compacted] = []
        self.overlay = PersonalityChanged(name="", text="")
        self.tuned = ControlsChanged()
        self.goal: GoalChanged | None = None
        # The provider's token count of the first `measured_upto` messages as the model sees them
        # now; 0 when unknown.
        self.measured = 0
        self.measured_upto = 0
        # The certain cost of calls.
        self.usage = Usage()
        # Calls without a certain cost, with their upper bound.
        self.unsettled: dict[str, CallSettled] = {}
        self.turn_id = ""
        self.turn_usage = Usage()
        self.last_prompt = 0
        self.waiting: dict[int, MessageReceived] = {}
        self.intended: dict[str, ToolIntended] = {}
        self.started: set[str] = set()
        # The inner calls of the newest reply's calls, by their ids.
        self.inner_intended: set[str] = set()
        self.inner_results: dict[str, ToolResult] = {}
        # The answers of hooks to calls of the newest reply, by call id.
        self.hook_answers: dict[str, HookAnswered] = {}
        # Added to the user message in requests of the running turn.
        self.hook_text = ""
        self.asked: dict[str, ApprovalAsked | QuestionAsked] = {}
        # The position in `messages` at which each turn begins.
        self.turn_starts: list[int] = []
        self._latest: dict[str, JsonObject] = {}
        self._origins = frozenset({"user"})
        self._open: set[str] = set()
        self._booked_turn: str | None = None
        self._numbers: dict[int, int] = {}

    def apply(self, record: Record) -> None:
        event = record.event
        self.remember_number(record)
        match event:
            case SessionOpened():
                self.opened = event
                self.model, self.provider = event.model, event.provider
                self._origins |= split_origins(event.origins)
            case TitleChanged():
                self.title = event.title
            case ModelSwitched():
                self.model, self.provider = event.model, event.provider
                self.measured = 0
            case MessageReceived():
                self.waiting[record.n] = event
                if event.past:
                    self._begin((record.n,))
            case Withdrawn():
                self.waiting.pop(event.n, None)
            case TurnStarted():
                self.turn_id, self.hook_text = record.turn_id, ""
                self.turn_usage = Usage()
                self._begin(event.takes)
            case Steered():
                self.messages.extend(self._take(event.takes))
            case ModelCalled():
                self._call(event, record.turn_id)
            case CallSettled():
                self._settle(event)
            case ReplyAdded():
                self._add_reply(event, record.turn_id)
            case ToolIntended():
                self.intended[event.call_id] = event
            case ToolStarted():
                self.started.add(event.call_id)
            case ToolFinished():
                self._add_result(event.result)
            case InnerCallIntended():
                self.inner_intended.add(inner_id(event.call_id, event.key))
            case InnerCallFinished(result=result):
                self.inner_results[result.call_id] = result
                self._origins |= split_origins((result.origin,))
            case ApprovalAsked() | QuestionAsked():
                self.asked[event.id] = event
            case ApprovalAnswered() | QuestionAnswered():
                self.asked.pop(event.id, None)
            case Rewound():
                self._rewind(event.turns)
            case Compacted():
                self.compactions.append(event)
                self._origins |= split_origins(event.origins)
                self.last_prompt = event.tokens_after
                self.measured = 0
            case PersonalityChanged():
                self.overlay = event
            case HookAnswered():
                self._origins |= split_origins(event.origins)
                if event.call_id:
                    self.hook_answers[event.call_id] = event
                elif event.action == "context":
                    self.hook_text = event.text
            case ControlsChanged():
                self.tuned = event
            case GoalChanged():
                self.goal = event
            case TurnEnded():
                self.turn_id = self.hook_text = ""
            case Archived() | SessionEnded() | CapRaised() | EffectDecided() | Erased():
                pass
            case (
                TextDelta()
                | ReasoningDelta()
                | CallNamed()
                | Notice()
                | Restarted()
                | ToolProgress()
            ):
                raise TypeError(f"{type(event).__name__} is not a durable event")
            case _:
                assert_never(event)

    @property
    def system(self) -> str:
        """The system prompt as the model sees it now, without the overlay."""
        newest = next((each.system for each in reversed(self.compactions) if each.system), "")
        return newest or (self.opened.system if self.opened else "")

    @property
    def seen(self) -> tuple[Message, ...]:
        """What the model sees: all messages, or the compacted head and the rest."""
        if not self.compactions:
            return tuple(self.messages)
        newest = self.compactions[-1]
        return (*newest.head, *self.messages[newest.upto :])

    def in_view(self) -> Iterable[Message]:
        """Return the text that this session works with: all messages, and results that a running
        call got from inner calls."""
        if not self.inner_results:
            return self.messages
        return (*self.messages, ToolMessage(results=tuple(self.inner_results.values())))

    def remember_number(self, record: Record) -> None:
        """Remember the record number of a message or result."""
        event = record.event
        if not record.n:
            return
        if isinstance(event, MessageReceived | ReplyAdded):
            self._numbers[id(event.message)] = record.n
        elif isinstance(event, ToolFinished):
            self._numbers[id(event.result)] = record.n

    def number_of(self, item: Message | ToolResult) -> int:
        """Return the record number of one of `messages` or of a result in them; 0 if unknown."""
        if isinstance(item, ToolMessage):
            return self.number_of(item.results[0]) if item.results else 0
        return self._numbers.get(id(item), 0)

    @property
    def unanswered(self) -> tuple[ToolCall, ...]:
        """The calls of the newest reply that have no result yet."""
        done: set[str] = set()
        for message in reversed(self.messages):
            match message:
                case ToolMessage():
                    done.update(result.call_id for result in message.results)
                case AssistantMessage():
                    return tuple(call for call in message.calls if call.id not in done)
                case UserMessage():
                    return ()
                case _:
                    assert_never(message)
        return ()

    @property
    def open_calls(self) -> tuple[CallSettled, ...]:
        """Calls without a settlement, each with its upper bound."""
        return tuple(self.unsettled[call] for call in self.unsettled if call in self._open)

    @property
    def has_only_message(self) -> bool:
        """Whether the turn has begun and holds nothing but its message."""
        is_new = bool(self.turn_starts) and self.turn_starts[-1] == len(self.messages) - 1
        return is_new and bool(self.turn_id)

    def oldest_waiting(self) -> int | None:
        """Return the record number of the oldest message that waits for a turn."""
        return min(self.waiting, default=None)

    def steers(self) -> tuple[int, ...]:
        """Return the record numbers of messages that wait to join the running turn."""
        return tuple(n for n, received in self.waiting.items() if received.steer)

    def latest(self, tool: str) -> JsonObject | None:
        """Return the details of that tool's newest successful result."""
        return self._latest.get(tool)

    def origins(self) -> frozenset[str]:
        """Return the sources of this session's text, including text that was rewound."""
        return self._origins

    def _begin(self, takes: tuple[int, ...]) -> None:
        self.turn_starts.append(len(self.messages))
        self.messages.extend(self._take(takes))

    def _take(self, takes: tuple[int, ...]) -> list[UserMessage]:
        taken = [self.waiting.pop(n).message for n in takes if n in self.waiting]
        self._origins |= split_origins(message.origin for message in taken)
        # Attached files are fenced; attached pages are messages of their own.
        if any("```" in message.text.partition(ATTACHED)[2] for message in taken):
            self._origins |= {f"{WORKSPACE}attached files"}
        return taken

    def _call(self, event: ModelCalled, turn_id: str) -> None:
        self._booked_turn = turn_id if event.call else None
        if event.call:
            self._open.add(event.call)
            self.unsettled[event.call] = CallSettled(
                call=event.call,
                usage=event.reserved or Usage(),
                certain=False,
                model=event.model,
                provider=event.provider,
            )

    def _settle(self, event: CallSettled) -> None:
        self._open.discard(event.call)
        if self.unsettled.pop(event.call, None) is None:
            return
        if event.certain:
            self.usage += event.usage
        else:
            self.unsettled[event.call] = event

    def _add_reply(self, event: ReplyAdded, turn_id: str) -> None:
        self.messages.append(event.message)
        if turn_id != self._booked_turn:
            # Old records have no settlements: there the reply holds the cost.
            self.usage += event.usage
        self.turn_usage += event.usage
        if event.message.stop != "interrupted":
            self.last_prompt = event.usage.prompt
        self.measured = event.usage.prompt + event.usage.output if event.usage.prompt else 0
        self.measured_upto = len(self.messages)
        self.intended.clear()
        self.started.clear()
        self.inner_intended.clear()
        self.inner_results.clear()
        self.hook_answers.clear()

    def _add_result(self, result: ToolResult) -> None:
        if not result.failed:
            self._latest[result.name] = result.details
        if result.origin not in self._origins:
            self._origins |= split_origins((result.origin,))
        last = self.messages[-1] if self.messages else None
        if not isinstance(last, ToolMessage):
            self.messages.append(ToolMessage(results=(result,)))
            return
        reply = self.messages[-2]
        assert isinstance(reply, AssistantMessage)
        positions = {call.id: index for index, call in enumerate(reply.calls)}
        results = sorted((*last.results, result), key=lambda each: positions.get(each.call_id, 0))
        self.messages[-1] = ToolMessage(results=tuple(results))

    def _forget_numbers(self, gone: list[Message]) -> None:
        """Forget the numbers of removed messages, because other objects may reuse their ids."""
        for message in gone:
            self._numbers.pop(id(message), None)
            for result in message.results if isinstance(message, ToolMessage) else ():
                self._numbers.pop(id(result), None)

    def _rewind(self, turns: int) -> None:
        for _ in range(turns):
            while self.turn_starts:
                start = self.turn_starts.pop()
                first = self.messages[start] if start < len(self.messages) else None
                self._forget_numbers(self.messages[start:])
                del self.messages[start:]
                if isinstance(first, UserMessage) and first.origin == "user":
                    break
        while self.compactions and self.compactions[-1].upto > len(self.messages):
            self.compactions.pop()
        self.measured = 0
        self._latest.clear()
        for message in self.messages:
            if isinstance(message, ToolMessage):
                for result in message.results:
                    if not result.failed:
                        self._latest[result.name] = result.details


def fold(records: Iterable[Record]) -> Transcript:
    transcript = Transcript()
    for record in records:
        transcript.apply(record)
    return transcript
