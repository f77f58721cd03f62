"""Whether a session is one to learn from; what learning takes is loaded only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.app.build import App


async def learn(app: App, session: Session) -> None:
    """Beside a session, for as long as it is open."""
    skills, opened = app.settings.skills, session.transcript.opened
    if opened is None or not skills.enabled or "skill_view" not in opened.tools:
        return
    if not skills.review_calls and not skills.creation_nudge_interval:
        return
    from hermes.app.learning.learning import Learning

    await Learning(app, session, opened).follow(session.subscribe())
