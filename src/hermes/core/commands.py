"""What a surface may ask of a session."""

from __future__ import annotations

from hermes.codec.values import Value, replace
from hermes.core.messages import Image


class Say(Value, tag="say"):
    """A user message: a turn of its own, after the turns that already wait. `key` is the
    platform's id of the message; one that was seen before is ignored."""

    text: str
    images: tuple[Image, ...] = ()
    key: str = ""
    origin: str = "user"


class Steer(Value, tag="steer"):
    """Words for the running turn; without one they become the next turn."""

    text: str
    key: str = ""


class Withdraw(Value, tag="withdraw"):
    """Take back a message that still waits for its turn: the one of this record number."""

    n: int


class Interrupt(Value, tag="interrupt"):
    """Stop the running turn within a second. Waiting messages stay."""


class Answer(Value, tag="answer"):
    """To ApprovalAsked: a scope or "deny", with the `reason` that the model is told. To
    QuestionAsked: the words themselves."""

    id: str
    text: str
    by: str = "owner"
    reason: str = ""


class SwitchModel(Value, tag="switch_model"):
    model: str
    provider: str


class Rewind(Value, tag="rewind"):
    turns: int = 1


class Compact(Value, tag="compact"):
    """Shorten what the model sees of this session now. `topic` is what the summary should dwell
    on; `keep` exchanges at the end stay as they are, 0 leaves that to the engine."""

    topic: str = ""
    keep: int = 0


class Overlay(Value, tag="overlay"):
    """Let the system text end with these words from the next request on; empty takes them away."""

    name: str = ""
    text: str = ""


class Tune(Value, tag="tune"):
    """Set how the session works, from its next turn on; None leaves that to the settings."""

    effort: str | None = None
    tier: str | None = None
    mode: str | None = None


class Retitle(Value, tag="retitle"):
    title: str


class Archive(Value, tag="archive"):
    """Take the session out of the lists, or, not `away`, let it stand in them again."""

    away: bool = True


class End(Value, tag="end"):
    reason: str


Command = (
    Say
    | Steer
    | Withdraw
    | Interrupt
    | Answer
    | SwitchModel
    | Rewind
    | Compact
    | Overlay
    | Tune
    | Retitle
    | Archive
    | End
)


def keyed(command: Say | Steer, key: str) -> Say | Steer:
    """The same words with an id of the sender."""
    return replace(command, key=key)
