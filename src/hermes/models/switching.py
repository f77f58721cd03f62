"""Changes the model of a session between two turns, for good or for the next turn only."""

from __future__ import annotations

from hermes.core.commands import SwitchModel
from hermes.core.errors import UsageError
from hermes.core.events import TurnEnded
from hermes.core.recorder import Subscription
from hermes.core.session import Session


async def switch(session: Session, model: str, provider: str) -> None:
    """UsageError while a turn runs. When it fails, the session keeps its model."""
    if session.busy:
        raise UsageError("A turn is running; switch the model when it has ended, or stop it.")
    await session.send(SwitchModel(model=model, provider=provider))


async def switch_back(session: Session, events: Subscription, model: str, provider: str) -> None:
    """Wait for the end of the next turn. The turn after it, if one waits already, begins with the
    old model: nothing comes between the end of a turn and what follows here."""
    try:
        async for record in events:
            if isinstance(record.event, TurnEnded):
                await session.send(SwitchModel(model=model, provider=provider))
                return
    finally:
        events.close()
