"""A request for one turn in a session, and what happens to it while a turn runs."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.config.schema import Effort
from hermes.core.commands import Interrupt, Say, Steer
from hermes.core.effects import Principal
from hermes.core.events import SessionOpened
from hermes.core.messages import Image, Message
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest

BusyMode = Literal["queue", "steer", "interrupt"]
SentAs = Literal["started", "queued", "steered", "interrupted"]
# Commands for the running turn; they must not wait for its end.
URGENT_COMMANDS = ("/steer", "/stop")


async def send_message(session: Session, say: Say, mode: BusyMode) -> SentAs:
    """Send a message. While a turn runs, it waits (`queue`), joins the turn at its next step
    (`steer`), or replaces it (`interrupt`). A message with images cannot join a turn; it waits."""
    if not session.busy:
        await session.send(say)
        return "started"
    if mode == "steer" and not say.images:
        await session.send(Steer(text=say.text, key=say.key))
        return "steered"
    if mode == "interrupt":
        await session.send(Interrupt())
        await session.send(say)
        return "interrupted"
    await session.send(say)
    return "queued"


def is_urgent(text: str) -> bool:
    """Whether the text is a command that must be executed while a turn runs."""
    return text.partition(" ")[0] in URGENT_COMMANDS


class TurnRequest(Value, rename={"client": "principal"}):
    """A message and the session that it is for. Stored requests of persistent runs name the client
    `principal`."""

    session_id: str
    text: str
    source: str
    origin: str = "user"
    images: tuple[Image, ...] = ()
    # Added to the system text of a new session, or else to the message.
    instructions: str = ""
    # The earlier messages of a new session.
    history: tuple[Message, ...] = ()
    model: str = ""
    provider: str = ""
    # Effort and tier hold for this turn only.
    effort: Effort = ""
    tier: str = ""
    create: Literal["never", "if_missing", "always"] = "never"
    attended: bool = False
    # Waits for other turns in the session.
    exclusive: bool = True
    # The message may be in the journal already.
    is_retry: bool = False
    # Only sessions of the same source, without access to other history.
    confined: bool = False
    # Whose memory the session uses; other people's sessions are invisible.
    person: str = ""
    # On whose behalf the session acts; empty follows from `confined`.
    acts_for: Principal | Literal[""] = ""
    # The platform whose toolsets and hints apply; empty for that of the executor.
    platform: str = ""
    # Where the session works, also when it is resumed; empty for the folder of the settings.
    folder: str = ""
    # Limits the tools of a new session.
    toolsets: tuple[str, ...] = ()
    # The client whose share of the capacity the run uses.
    client: str = ""
    # How a new session is opened, for what the other fields cannot say.
    opening: SessionRequest | None = None
    # What happens to a running turn; needs `exclusive=False`.
    busy_mode: BusyMode = "queue"


def continuation_request(session_id: str) -> TurnRequest:
    return TurnRequest(
        session_id=session_id,
        text="",
        source="",
        exclusive=False,
        attended=True,
        is_retry=True,
    )


def may_use(request: TurnRequest, opened: SessionOpened) -> bool:
    """Whether the client may use the session."""
    if request.confined and opened.source != request.source:
        return False
    return request.person in ("", opened.source, opened.person)


def message_text(request: TurnRequest, system: str) -> str:
    """The message, preceded by instructions that the system text does not contain."""
    extra = request.instructions.strip()
    if not extra or extra in system:
        return request.text
    return f"[Instructions for this request]\n{extra}\n\n{request.text}"
