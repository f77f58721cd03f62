"""Replays recorded sessions with the real app in a replay environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hermes.app.app import App
from hermes.config.load import Config
from hermes.learning.rehearsals import LearningDeps
from hermes.replay.environment import ReplayEnvironment, ReplayOverrides
from hermes.replay.expected_events import Report
from hermes.replay.recording import Recording
from hermes.replay.replay import replay as replay_with


def replay_app(config: Config, environment: ReplayEnvironment) -> App:
    return App(config, env=environment.env, world=environment.world, replay=environment)


async def replay(
    session: Path | Recording,
    overrides: ReplayOverrides | None = None,
    *,
    env: Mapping[str, str] | None = None,
) -> Report:
    """Replay a recording. Raises UsageError when it cannot be replayed. Live tools start from `env`
    and work in a copy of the session's folder."""
    return await replay_with(session, overrides, open_app=replay_app, env=env)


def learning_deps(app: App) -> LearningDeps:
    return LearningDeps(app.context, app.journal, app.models, app.memory, app.skills, replay_app)
