"""What happens to a message that arrives while a turn runs."""

from __future__ import annotations

from typing import Literal

from hermes.core.commands import Interrupt, Say, Steer
from hermes.core.session import Session

BusyMode = Literal["queue", "steer", "interrupt"]
Delivery = Literal["started", "queued", "steered", "interrupted"]
# Commands for the running turn; they must not wait for its end.
URGENT_COMMANDS = ("/steer", "/stop")


async def send_message(session: Session, say: Say, mode: BusyMode) -> Delivery:
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
