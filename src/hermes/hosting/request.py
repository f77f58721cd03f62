"""A request for one turn in a session."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.config.schema import Effort
from hermes.core.events import SessionOpened
from hermes.core.messages import Image, Message


class TurnRequest(Value):
    """The message and its session. `past` is the history of a new session; `extra` are
    instructions, added to the system text of a new session or else to the message. `alone` waits
    for other turns in the session. `again` means that the message may be in the journal already.
    `confined` allows only sessions of the same source, without access to other history. `person`
    is whose memory the session uses; other people's sessions are invisible. `effort` and `tier`
    hold for this turn only. `toolsets` limits the tools of a new session."""

    session_id: str
    text: str
    source: str
    images: tuple[Image, ...] = ()
    extra: str = ""
    past: tuple[Message, ...] = ()
    model: str = ""
    provider: str = ""
    effort: Effort = ""
    tier: str = ""
    create: Literal["never", "if_missing", "always"] = "never"
    attended: bool = False
    alone: bool = True
    again: bool = False
    confined: bool = False
    person: str = ""
    toolsets: tuple[str, ...] = ()


def resume_request(session_id: str) -> TurnRequest:
    return TurnRequest(
        session_id=session_id, text="", source="", alone=False, attended=True, again=True
    )


def may_use(errand: TurnRequest, opened: SessionOpened) -> bool:
    """Whether the client may use the session."""
    if errand.confined and opened.source != errand.source:
        return False
    return errand.person in ("", opened.source, opened.person)


def message_text(errand: TurnRequest, system: str) -> str:
    """The message, preceded by instructions that the system text does not contain."""
    extra = errand.extra.strip()
    if not extra or extra in system:
        return errand.text
    return f"[Instructions for this request]\n{extra}\n\n{errand.text}"
