"""Which model goes on with a session that is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.commands import SwitchModel
from hermes.core.session import Session
from hermes.core.transcript import Transcript

if TYPE_CHECKING:
    from hermes.app.build import App


async def resume_model(app: App, session: Session, transcript: Transcript) -> None:
    """It keeps its model, unless another was asked for or it is out of reach. A replay is told by
    its record."""
    if app.run.offline:
        return
    wanted = app.models.is_explicit()
    if not wanted and app.models.is_reachable(transcript.model, transcript.provider):
        return
    choice = await app.models.choose()
    app.announce_choice(choice)
    if (choice.model, choice.provider) == (transcript.model, transcript.provider):
        return
    if not wanted:
        app.news.append(
            f"{transcript.model} ({transcript.provider}) is not available now; "
            f"{choice.model} goes on."
        )
    await session.send(SwitchModel(model=choice.model, provider=choice.provider))
