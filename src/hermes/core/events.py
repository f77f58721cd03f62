"""The events of a session. Durable events are written to the journal before anyone sees them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hermes.codec.values import JsonObject, Value
from hermes.core.effects import Decision, Effect, Principal
from hermes.core.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from hermes.core.prompt import CallNamed, Notice, ReasoningDelta, Restarted, TextDelta


class SessionOpened(Value, tag="session_opened"):
    """The first event of a session."""

    source: str
    cwd: str
    model: str
    provider: str
    # Sent verbatim until Compacted replaces it.
    system: str
    tools: tuple[str, ...] = ()
    principal: Principal = "owner"
    # The session that a fork or sub-session comes from.
    parent: str = ""
    # The last record that a fork shares with its parent.
    parent_n: int = 0
    # Costs are booked to this session; "" means the parent, or the session itself.
    job: str = ""
    # A member or guest, as their surface knows them; the owner needs no name.
    person: str = ""
    # The sources of files and memories in `system` that the person did not write.
    origins: tuple[str, ...] = ()
    # The turn that this sub-session works for; its costs count against the cap of that turn.
    task: str = ""


class SessionEnded(Value, tag="session_ended"):
    """The session was closed. A later event opens it again."""

    reason: str


class TitleChanged(Value, tag="titled"):
    """The session has a new title; an empty one removes the old title."""

    title: str


class Archived(Value, tag="archived"):
    """The session was hidden from listings, or shown again when not `away`. Search and lookup by
    name find it either way."""

    away: bool


class ModelSwitched(Value, tag="model_switched"):
    model: str
    provider: str


class MessageReceived(Value, tag="message_received"):
    """A message came in. It waits until a TurnStarted or Steered takes it by its record number."""

    message: UserMessage
    # The sender's id of the message; each key is received once.
    key: str = ""
    # The message joins the running turn.
    steer: bool = False
    # The message was answered elsewhere or asks for no answer; it enters the transcript at once.
    past: bool = False
    # The turn of the message begins with these calls.
    calls: tuple[ToolCall, ...] = ()


class Withdrawn(Value, tag="withdrawn"):
    """The sender took a message back before its turn started."""

    n: int


class TurnStarted(Value, tag="turn_started"):
    takes: tuple[int, ...]


class Steered(Value, tag="steered"):
    """Messages join the running turn after the newest tool results."""

    takes: tuple[int, ...]


class ModelCalled(Value, tag="model_called"):
    """A model request is about to be made."""

    model: str
    provider: str
    # The id that the request is settled under. Old records have none and are settled by their
    # ReplyAdded.
    call: str = ""
    cause: str = "chat"
    # The most that the request may cost.
    reserved: Usage | None = None


class CallSettled(Value, tag="call_settled"):
    """The cost of a request. If it is not `certain`, `usage` is an upper bound, and a later
    CallSettled of the same call may be more exact. It is `corrected` if the provider reported
    something that cannot be right."""

    call: str
    usage: Usage
    certain: bool = True
    model: str = ""
    provider: str = ""
    corrected: bool = False


CapScope = Literal["day", "month", "person", "job", "task"]


class CapRaised(Value, tag="cap_raised"):
    """A person allowed more than the settings do."""

    scope: CapScope
    # The day, month, person, job or turn.
    key: str
    # Both are added to the cap.
    usd: float = 0.0
    tokens: int = 0
    by: str = "owner"


class ReplyAdded(Value, tag="reply_added"):
    message: AssistantMessage
    usage: Usage
    model: str
    provider: str


class JudgedEffect(Value):
    """The policy's decision on one effect."""

    effect: Effect
    decision: Decision


RepeatRule = Literal["safe", "never"]


class ToolIntended(Value, tag="tool_intended"):
    """A call of the newest reply is about to run, with these effects. After a crash, a call that is
    safe to repeat runs again; any other gets the result "outcome unknown"."""

    call_id: str
    name: str
    repeat: RepeatRule
    judged: tuple[JudgedEffect, ...] = ()


class EffectDecided(Value, tag="effect_decided"):
    """The decision on an effect of a running call that its ToolIntended does not hold, or holds
    with another decision. `by` is "policy", or "judge" for a model that answered for a person."""

    call_id: str
    judged: JudgedEffect
    by: str = "policy"


class ToolStarted(Value, tag="tool_started"):
    call_id: str


class ToolFinished(Value, tag="tool_finished"):
    """A call has a result. `seconds` is the run time, for display."""

    result: ToolResult
    seconds: float = 0.0


class InnerCallIntended(Value, tag="inner_call_intended"):
    """The running call `call_id` is about to call another tool. `key` identifies the inner call
    among those of its caller; `inner_id` is its own id in all other events. The model sees only the
    result of the caller."""

    call_id: str
    key: str
    name: str
    arguments: JsonObject = {}


class InnerCallFinished(Value, tag="inner_call_finished"):
    """An inner call has a result. After a crash, a caller that runs again gets this result instead
    of calling the tool a second time."""

    call_id: str
    key: str
    result: ToolResult
    seconds: float = 0.0


def inner_id(call_id: str, key: str) -> str:
    return f"{call_id}/{key}"


HookAction = Literal["context", "block", "approve", "modify", "replace"]


class HookAnswered(Value, tag="hook_answered"):
    """A hook changed something."""

    hook: str
    # "context" adds `text` to the user message in the requests of this turn. "replace" puts `text`
    # in place of the text of the next reply. For a call, "block" uses `text` as its result,
    # "approve" asks a person because of `text`, and "modify" only changes its arguments.
    action: HookAction
    call_id: str = ""
    text: str = ""
    # The call runs with these instead of the model's.
    arguments: JsonObject | None = None
    # The plugins or other third parties behind the hook.
    origins: tuple[str, ...] = ()


class ApprovalAsked(Value, tag="approval_asked"):
    """A person must decide, with an Answer of this id. Without one in time, the answer is "deny".
    `lasting` are sentences about what cannot be undone."""

    id: str
    call_id: str
    effect: Effect
    reason: str
    category: str
    scopes: tuple[str, ...]
    expires_seconds: float
    lasting: tuple[str, ...] = ()


class ApprovalAnswered(Value, tag="approval_answered"):
    """A person, or a timeout, decided about an ApprovalAsked."""

    id: str
    # A scope or "deny".
    choice: str
    # Who or what decided.
    by: str
    reason: str = ""


class QuestionAsked(Value, tag="question_asked"):
    """A tool or Hermes asks a person. The answer to a `secret` question is neither displayed nor
    stored."""

    id: str
    call_id: str
    question: str
    choices: tuple[str, ...]
    expires_seconds: float
    secret: bool = False


class QuestionAnswered(Value, tag="question_answered"):
    """A QuestionAsked has an answer. `text` is empty when none came in time."""

    id: str
    text: str
    by: str


class Rewound(Value, tag="rewound"):
    """The last turns are hidden from the model. The journal keeps them."""

    turns: int


CompactionCause = Literal["threshold", "overflow", "asked"]


class Compacted(Value, tag="compacted"):
    """From here on, the model sees `head` instead of the first `upto` messages, which stay in the
    journal."""

    upto: int
    # The first message covers the first `summarised` messages; the others follow in short form.
    head: tuple[Message, ...]
    summarised: int = 0
    # The text that a model wrote for the first message of the head.
    summary: str = ""
    cause: CompactionCause = "threshold"
    topic: str = ""
    keep: int = 0
    window: int = 0
    # Estimates.
    tokens_before: int = 0
    tokens_after: int = 0
    # The provider's token count per estimated token.
    scale: float = 1.0
    # The new system prompt, if it changes.
    system: str = ""
    # The sources of memories in the new system prompt.
    origins: tuple[str, ...] = ()


class PersonalityChanged(Value, tag="overlaid"):
    """The session has a new personality: from here on, `text` ends the system prompt. An empty text
    removes it. `name` is for display."""

    name: str
    text: str


class ControlsChanged(Value, tag="tuned"):
    """The session controls from here on: reasoning effort, service tier and approval mode. None
    means the value in the settings."""

    effort: str | None = None
    tier: str | None = None
    mode: str | None = None


GoalState = Literal["active", "met", "blocked", "exhausted", "stopped"]


class GoalChanged(Value, tag="goal_changed"):
    """The session pursues a goal over several turns while it is active. `why` is the reason of the
    state."""

    id: str
    goal: str
    state: GoalState = "active"
    # A command that succeeds once the goal is met; "" lets a model decide.
    check: str = ""
    why: str = ""
    # Turns so far, and their limit.
    turns: int = 1
    max_turns: int = 20
    # In dollars: the limit (0 for none), and what the job had cost before.
    max_usd: float = 0.0
    usd_before: float = 0.0


class Erased(Value, tag="erased"):
    """Text was permanently removed from these records at a person's request."""

    records: tuple[int, ...]
    by: str = "owner"


EndReason = Literal[
    "done", "interrupted", "failed", "budget", "partial", "guardrail", "crashed", "paused"
]


class TurnEnded(Value, tag="turn_ended"):
    """The turn has ended."""

    reason: EndReason
    usage: Usage
    # The exact reason.
    detail: str = ""
    # A sentence for a person when the turn failed or paused at a spending cap.
    error: str = ""


class ToolProgress(Value, tag="tool_progress"):
    """What a running tool shows. `details` have the form of those of its result."""

    call_id: str
    text: str
    details: JsonObject = {}


DurableEvent: TypeAlias = (
    SessionOpened | SessionEnded | TitleChanged | ModelSwitched | MessageReceived | TurnStarted
    | Steered | ModelCalled | ReplyAdded | ToolIntended | ToolStarted | ToolFinished
    | ApprovalAsked | ApprovalAnswered | QuestionAsked | QuestionAnswered | Rewound | TurnEnded
    | CallSettled | CapRaised | EffectDecided | Compacted | PersonalityChanged | Erased | Withdrawn
    | HookAnswered | ControlsChanged | Archived | InnerCallIntended | InnerCallFinished
    | GoalChanged
)  # fmt: skip
LiveEvent: TypeAlias = TextDelta | ReasoningDelta | CallNamed | Notice | Restarted | ToolProgress
Event: TypeAlias = DurableEvent | LiveEvent


class Record(Value):
    """An event with its position: `n` counts the durable events of a session from 1; live events
    have n = 0. `at` is in seconds since 1970."""

    session_id: str
    n: int
    turn_id: str
    at: float
    event: Event
