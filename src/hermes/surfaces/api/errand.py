"""What is to be said in a session on behalf of a client, and under which conditions."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.core.messages import Image, Message


class Errand(Value):
    """What is to be said, and where. A new session begins with `past`; `extra` are instructions:
    for a new session they join its system text, else they come with the message. `alone` waits
    until nobody else has a turn there. `again` is for a message that may have been received
    already. `confined` keeps to sessions of the same source, whose agent does not see the rest of
    the home's past either."""

    session_id: str
    text: str
    source: str
    images: tuple[Image, ...] = ()
    extra: str = ""
    past: tuple[Message, ...] = ()
    model: str = ""
    provider: str = ""
    create: Literal["never", "if_missing", "always"] = "never"
    attended: bool = False
    alone: bool = True
    again: bool = False
    confined: bool = False


def resumption(session_id: str) -> Errand:
    return Errand(session_id=session_id, text="", source="", alone=False, attended=True, again=True)


def words_of(errand: Errand, system: str) -> str:
    """The message, after instructions that the session does not have yet."""
    extra = errand.extra.strip()
    if not extra or extra in system:
        return errand.text
    return f"[Instructions for this request]\n{extra}\n\n{errand.text}"
