"""The model that recaps past sessions for one that looks back: metered there, and its own choice
in the settings (`auxiliary.session_search`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.prompt import Prompt
from hermes.models.side_model import SideModel
from hermes.recall.archive import MOST_SHOWN, RecapModel

if TYPE_CHECKING:
    from hermes.app.app import App

TASK = "session_search"
# Half of a window, at the four characters that a token has at least in most languages.
CHARS_PER_TOKEN = 2


def recap_writer(app: App, session_id: str) -> RecapModel:
    """For as long as one search takes: the session's model may be another one after it."""
    session = app.require_session(session_id)
    transcript = session.transcript
    auxiliary = SideModel(
        app.models,
        app.settings,
        main=lambda: (transcript.model, transcript.provider),
        tell=session.tell,
    )

    async def ask(prompt: Prompt) -> str:
        reply = await auxiliary.ask(TASK, prompt, session.meter)
        return reply.message.text

    window = app.window(transcript.model, transcript.provider)
    return RecapModel(ask=ask, most_chars=min(MOST_SHOWN, window * CHARS_PER_TOKEN))
