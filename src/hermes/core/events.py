"""What happens in a session. Durable events are journaled before anybody sees them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hermes.codec.values import JsonObject, Value
from hermes.core.effects import Decision, Effect, Principal
from hermes.core.messages import AssistantMessage, Message, ToolResult, Usage, UserMessage
from hermes.core.prompt import CallNamed, Notice, ReasoningDelta, Restarted, TextDelta


class SessionOpened(Value, tag="session_opened"):
    """The first event of a session. `system` is sent verbatim for as long as the session lives.
    A fork names its parent and the number of the last record it shares with it. `job` is what the
    session is a part of, for the accounts; empty means its parent, else the session itself.
    `person` is who a member or a guest is, as their surface knows them; the owner needs no name."""

    source: str
    cwd: str
    model: str
    provider: str
    system: str
    tools: tuple[str, ...] = ()
    principal: Principal = "owner"
    parent: str = ""
    parent_n: int = 0
    job: str = ""
    person: str = ""


class SessionEnded(Value, tag="session_ended"):
    """Nobody is in the session any more; a later event opens it again."""

    reason: str


class Titled(Value, tag="titled"):
    """An empty title takes the old one away."""

    title: str


class Archived(Value, tag="archived"):
    """The session was put away: it is in no list but that of such sessions. Not `away` brings it
    back. Whoever knows its name or its words finds it in either case."""

    away: bool


class ModelSwitched(Value, tag="model_switched"):
    model: str
    provider: str


class MessageReceived(Value, tag="message_received"):
    """Somebody spoke. The message waits until a TurnStarted or a Steered takes it by its record
    number; a `past` one was answered elsewhere and takes its place in the transcript at once.
    `key` is the sender's own id of it: the same key is received once only."""

    message: UserMessage
    key: str = ""
    steer: bool = False
    past: bool = False


class Withdrawn(Value, tag="withdrawn"):
    """Whoever sent a message took it back before its turn came."""

    n: int


class TurnStarted(Value, tag="turn_started"):
    takes: tuple[int, ...]


class Steered(Value, tag="steered"):
    """Messages that join the running turn after the newest tool results."""

    takes: tuple[int, ...]


class ModelCalled(Value, tag="model_called"):
    """A request is about to be made; `reserved` is the most that it may cost. `call` is its own
    id, under which it is settled. Without one it is an old record, settled by the ReplyAdded."""

    model: str
    provider: str
    call: str = ""
    cause: str = "chat"
    reserved: Usage | None = None


class CallSettled(Value, tag="call_settled"):
    """What a request has cost. If that is not `certain`, `usage` is the most that it can be, and
    a later CallSettled of the same call may say it better."""

    call: str
    usage: Usage
    certain: bool = True
    model: str = ""
    provider: str = ""


CapScope = Literal["day", "month", "person", "job", "task"]


class CapRaised(Value, tag="cap_raised"):
    """A person allowed more than the settings do. `key` names the day, month, person, job or turn
    that it is for; `usd` and `tokens` come on top."""

    scope: CapScope
    key: str
    usd: float = 0.0
    tokens: int = 0
    by: str = "owner"


class ReplyAdded(Value, tag="reply_added"):
    message: AssistantMessage
    usage: Usage
    model: str
    provider: str


class Judged(Value):
    """What the policy said of one effect."""

    effect: Effect
    decision: Decision


RepeatRule = Literal["safe", "never"]


class ToolIntended(Value, tag="tool_intended"):
    """A call of the newest reply is going to be run, with these effects. After a crash a call
    that may be repeated runs again; any other is answered with "outcome unknown"."""

    call_id: str
    name: str
    repeat: RepeatRule
    judged: tuple[Judged, ...] = ()


class EffectDecided(Value, tag="effect_decided"):
    """What was decided about an effect of a running call that its ToolIntended does not tell, or
    tells otherwise. `by` is "policy", or "judge" for a model that answered in a person's place."""

    call_id: str
    judged: Judged
    by: str = "policy"


class ToolStarted(Value, tag="tool_started"):
    call_id: str


class ToolFinished(Value, tag="tool_finished"):
    """`seconds` is how long it ran, for the screen."""

    result: ToolResult
    seconds: float = 0.0


HookAction = Literal["context", "block", "approve", "modify", "replace"]


class HookAnswered(Value, tag="hook_answered"):
    """A hook has changed something. "context" is `text` beside the person's words in the requests
    of this turn, "replace" is `text` in place of the words of the reply that follows. Of a call:
    "block" has `text` in place of a result, "approve" asks a person because of `text`; with
    `arguments`, the call is made with these instead of the model's ("modify" does only that).
    `origins` are strangers whose wish it is, such as plugins."""

    hook: str
    action: HookAction
    call_id: str = ""
    text: str = ""
    arguments: JsonObject | None = None
    origins: tuple[str, ...] = ()


class ApprovalAsked(Value, tag="approval_asked"):
    """A person must decide; an Answer with this id does, or time does ("deny"). `lasting` are
    sentences about what could not be taken back."""

    id: str
    call_id: str
    effect: Effect
    reason: str
    category: str
    scopes: tuple[str, ...]
    expires_seconds: float
    lasting: tuple[str, ...] = ()


class ApprovalAnswered(Value, tag="approval_answered"):
    """`choice` is a scope or "deny"; `by` names who or what decided, `reason` is why, if they said
    so."""

    id: str
    choice: str
    by: str
    reason: str = ""


class QuestionAsked(Value, tag="question_asked"):
    """The answer to a `secret` one is shown to nobody while it is typed, and kept nowhere."""

    id: str
    call_id: str
    question: str
    choices: tuple[str, ...]
    expires_seconds: float
    secret: bool = False


class QuestionAnswered(Value, tag="question_answered"):
    """`text` is empty when nobody answered in time."""

    id: str
    text: str
    by: str


class Rewound(Value, tag="rewound"):
    """The last turns are hidden from the model; the journal keeps them."""

    turns: int


CompactionCause = Literal["threshold", "overflow", "asked"]


class Compacted(Value, tag="compacted"):
    """From here on the model sees `head` in place of the first `upto` messages; they themselves
    stay where they are. The first `summarised` of them are told of in the head's first message,
    `summary` being what a model wrote for it; the others stand in the head, shortened. Tokens are
    estimated: `scale` is how many the provider counted for one of ours so far. `system` is the
    system text from here on, where it is another one."""

    upto: int
    head: tuple[Message, ...]
    summarised: int = 0
    summary: str = ""
    cause: CompactionCause = "threshold"
    topic: str = ""
    keep: int = 0
    window: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    scale: float = 1.0
    system: str = ""


class Overlaid(Value, tag="overlaid"):
    """From here on `text` stands at the end of the system text; an empty one takes it away. `name`
    is what a person calls it."""

    name: str
    text: str


class Tuned(Value, tag="tuned"):
    """How a person has set the session from here on: how hard the model thinks, the service tier
    that is asked for, who decides about risky effects. None is as the settings say."""

    effort: str | None = None
    tier: str | None = None
    mode: str | None = None


class Erased(Value, tag="erased"):
    """Words were taken out of these records of the session for ever, as a person wished."""

    records: tuple[int, ...]
    by: str = "owner"


EndReason = Literal[
    "done", "interrupted", "failed", "budget", "partial", "guardrail", "crashed", "paused"
]


class TurnEnded(Value, tag="turn_ended"):
    """`detail` is the finer reason, `error` a sentence for a person when the turn failed or was
    paused at a spending cap."""

    reason: EndReason
    usage: Usage
    detail: str = ""
    error: str = ""


class ToolProgress(Value, tag="tool_progress"):
    call_id: str
    text: str


DurableEvent: TypeAlias = (
    SessionOpened
    | SessionEnded
    | Titled
    | ModelSwitched
    | MessageReceived
    | TurnStarted
    | Steered
    | ModelCalled
    | ReplyAdded
    | ToolIntended
    | ToolStarted
    | ToolFinished
    | ApprovalAsked
    | ApprovalAnswered
    | QuestionAsked
    | QuestionAnswered
    | Rewound
    | TurnEnded
    | CallSettled
    | CapRaised
    | EffectDecided
    | Compacted
    | Overlaid
    | Erased
    | Withdrawn
    | HookAnswered
    | Tuned
    | Archived
)
LiveEvent: TypeAlias = TextDelta | ReasoningDelta | CallNamed | Notice | Restarted | ToolProgress
Event: TypeAlias = DurableEvent | LiveEvent


class Record(Value):
    """An event with its place: `n` counts the durable events of a session from 1, live ones have
    n = 0. `at` is seconds since 1970."""

    session_id: str
    n: int
    turn_id: str
    at: float
    event: Event
