"""Builds an App from command line options: home, settings and logging."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.app.app import App
from hermes.codec.values import JsonValue
from hermes.config.environment import env_flag, process_environment, set_time_zone
from hermes.config.home import resolve_home
from hermes.config.layers import flag_values
from hermes.config.load import load
from hermes.config.logs import start_logging
from hermes.core.caps import StepBudget
from hermes.core.world import World, no_kill_point
from hermes.credentials.redaction import SecretRedactor

if TYPE_CHECKING:
    from hermes.core.session import Session


def start(
    options: Mapping[str, Any],
    *,
    settings: Mapping[str, JsonValue] | None = None,
    home: str | None = None,
    budget: StepBudget | None = None,
    journal: Path | None = None,
) -> App:
    """The app for one run. Nothing is opened, created or contacted yet. Raises InvalidConfig if
    config.yaml cannot be read. `settings` are keyed by
    setting (`model.default`) and rank like options; `budget` limits the steps of all turns
    together. `journal` is the database file, if it is not that of the home."""
    env = process_environment()
    location = resolve_home(
        env, explicit=Path(home) if home else None, profile=options.get("profile")
    )
    if journal is not None:
        location.journal, location.index = journal, journal.with_suffix(".index.db")
    flags = {**flag_values(options), **(settings or {})}
    use_file = not options.get("ignore_config")
    config = load(location, flags=flags, env=env, use_file=use_file)
    config.refuse_unreadable()
    zone = config.settings.timezone
    fault = set_time_zone(zone) if zone else ""
    redactor = SecretRedactor(config, env)
    log_files = start_logging(config, redact=redactor.line, verbose=bool(options.get("verbose")))
    world = World(kill_point=_kill_points(env))
    app = App(config, env=env, world=world, log_files=log_files, budget=budget, redactor=redactor)
    if fault:
        app.context.notices.append(fault)
    app.shared.session_tasks.append(run_learning)
    if env_flag(env, "HERMES_DUMP_REQUESTS"):
        # For debugging; not loaded otherwise.
        from hermes.models.request_dump import dump_requests

        dump_requests(app.context)
    return app


async def run_learning(app: App, session: Session) -> None:
    """Learn from the session in the background while it is open, if the settings allow it."""
    skills, opened = app.context.settings.skills, session.transcript.opened
    if opened is None or not skills.enabled or "skill_view" not in opened.tools:
        return
    if not skills.review_calls and not skills.creation_nudge_interval:
        return
    from hermes.app.replay import learning_deps
    from hermes.learning.learner import Learner

    await Learner(learning_deps(app), session, opened).follow(session.subscribe())


def _kill_points(env: Mapping[str, str]) -> Any:
    """Tests can end the process at a named point."""
    if env.get("HERMES_TESTING") != "1" or not env.get("HERMES_KILL_AT"):
        return no_kill_point
    from hermes.testing.kill import kill_points

    return kill_points(env["HERMES_KILL_AT"])
