"""What is to be said in a session on behalf of a client, and under which conditions."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.config.kinds import Effort
from hermes.core.events import SessionOpened
from hermes.core.messages import Image, Message


class Errand(Value):
    """What is to be said, and where. A new session begins with `past`; `extra` are instructions:
    for a new session they join its system text, else they come with the message. `alone` waits
    until nobody else has a turn there. `again` is for a message that may have been received
    already. `confined` keeps to sessions of the same source, whose agent does not see the rest of
    the home's past either. `person` is whose memory the session has; sessions of other people are
    not there for them. `effort` and `tier` are for this turn only. A new session has the tools of
    `toolsets` only, if there are any."""

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


def resumption(session_id: str) -> Errand:
    return Errand(session_id=session_id, text="", source="", alone=False, attended=True, again=True)


def may_speak(errand: Errand, opened: SessionOpened) -> bool:
    """Whether the session is one of those that are there for whoever has sent the errand."""
    if errand.confined and opened.source != errand.source:
        return False
    return errand.person in ("", opened.source, opened.person)


def words_of(errand: Errand, system: str) -> str:
    """The message, after instructions that the session does not have yet."""
    extra = errand.extra.strip()
    if not extra or extra in system:
        return errand.text
    return f"[Instructions for this request]\n{extra}\n\n{errand.text}"
