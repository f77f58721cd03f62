"""Starts learning for a session if the settings allow it; loads the package only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.config.extension_settings import SkillSettings
    from hermes.learning.rehearsals import LearningDeps


async def learn(
    settings: SkillSettings, session: Session, deps: Callable[[], LearningDeps]
) -> None:
    """Runs in the background while the session is open."""
    skills, opened = settings, session.transcript.opened
    if opened is None or not skills.enabled or "skill_view" not in opened.tools:
        return
    if not skills.review_calls and not skills.creation_nudge_interval:
        return
    from hermes.learning.learner import Learner

    await Learner(deps(), session, opened).follow(session.subscribe())
