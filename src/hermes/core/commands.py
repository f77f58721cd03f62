"""The commands that a surface can send to a session."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.core.events import GoalChanged
from hermes.core.messages import Image, ToolCall


class Say(Value, tag="say"):
    """A user message. It becomes a turn of its own, after the turns that already wait. `key` is the
    platform's id of the message; a known key is ignored. The turn begins with `calls` as if the
    model had made them: the person chose the tools."""

    text: str
    images: tuple[Image, ...] = ()
    key: str = ""
    origin: str = "user"
    calls: tuple[ToolCall, ...] = ()


class Steer(Value, tag="steer"):
    """Text for the running turn. Without a running turn it becomes the next one."""

    text: str
    key: str = ""


class AddContext(Value, tag="add_context"):
    """Text that the model sees with the next message and that asks for no answer. In a running turn
    it joins the turn. `key` and `origin` are as in `Say`."""

    text: str
    origin: str
    key: str = ""


class Withdraw(Value, tag="withdraw"):
    """Take back the message with this record number before its turn starts."""

    n: int


class Interrupt(Value, tag="interrupt"):
    """Stop the running turn within a second. Waiting messages stay."""


class Answer(Value, tag="answer"):
    """The answer to an ApprovalAsked or a QuestionAsked."""

    id: str
    # A scope or "deny" for an approval, the answer itself for a question.
    text: str
    by: str = "owner"
    # For the model, after "deny".
    reason: str = ""


class SwitchModel(Value, tag="switch_model"):
    model: str
    provider: str


class Rewind(Value, tag="rewind"):
    turns: int = 1


class Compact(Value, tag="compact"):
    """Compact what the model sees of this session now. The summary focuses on `topic`. The last
    `keep` exchanges stay unchanged; 0 leaves their number to the engine."""

    topic: str = ""
    keep: int = 0


class Overlay(Value, tag="overlay"):
    """Append `text` to the system prompt from the next request on. An empty text removes it."""

    name: str = ""
    text: str = ""


class Tune(Value, tag="tune"):
    """Change how the session works from its next turn on. None means the value in the settings."""

    effort: str | None = None
    tier: str | None = None
    mode: str | None = None


class Retitle(Value, tag="retitle"):
    title: str


class Archive(Value, tag="archive"):
    """Hide the session from listings, or show it again with `away=False`."""

    away: bool = True


class SetGoal(Value, tag="set_goal"):
    """Change the goal of the session. `say` is stored with the change: both or neither."""

    goal: GoalChanged
    say: Say | None = None


class End(Value, tag="end"):
    reason: str


Command = (
    Say | Steer | AddContext | Withdraw | Interrupt | Answer | SwitchModel | Rewind | Compact
    | Overlay | Tune | Retitle | Archive | SetGoal | End
)  # fmt: skip
