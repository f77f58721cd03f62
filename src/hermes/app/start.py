"""From the options of a command line to an App: home, settings, world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.app.build import App
from hermes.config.flags import flag_values
from hermes.config.home import resolve_home
from hermes.config.load import load
from hermes.config.logs import start_logging
from hermes.config.secrets import environment
from hermes.core.world import World, nothing_here


def start(options: Mapping[str, Any]) -> App:
    """The app for one run. Nothing is opened, made or contacted yet."""
    env = environment()
    home = resolve_home(env, profile=options.get("profile"))
    config = load(home, flags=flag_values(options), env=env)
    log_files = start_logging(config, verbose=bool(options.get("verbose")))
    return App(config, env=env, world=World(reach=_kill_points(env)), log_files=log_files)


def _kill_points(env: Mapping[str, str]) -> Any:
    """Tests may end the process at a named point; nobody else can."""
    if env.get("HERMES_TESTING") != "1" or not env.get("HERMES_KILL_AT"):
        return nothing_here
    from hermes.testing.kill import kill_points

    return kill_points(env["HERMES_KILL_AT"])
