"""The side model that summarizes past sessions for a session (`auxiliary.session_search`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.core.prompt import Prompt
from hermes.models.side_model import SideModel
from hermes.recall.archive import MOST_SHOWN, RecapModel

if TYPE_CHECKING:
    from hermes.app.app import App

TASK = "session_search"


def recap_writer(app: App, session_id: str) -> RecapModel:
    """For a single search: the session's model may change after it."""
    session = app.require_session(session_id)
    transcript = session.transcript
    side_model = SideModel(app.models, app.run.settings, transcript, session.tell)

    async def ask(prompt: Prompt) -> str:
        reply = await side_model.ask(TASK, prompt, session.meter)
        return reply.message.text

    window = app.window(transcript.model, transcript.provider)
    half = window // 2 * CHARS_PER_TOKEN
    return RecapModel(ask=ask, most_chars=min(MOST_SHOWN, half))
