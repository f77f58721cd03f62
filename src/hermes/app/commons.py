"""What all sessions of one run have in common: made once, or kept for a moment."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.terminal import shell_settings
from hermes.app.witnessing import suspects_of
from hermes.policy.suspects.suspects import Suspects
from hermes.workspaces.confinement.sandbox import Confinement
from hermes.workspaces.environment import child_environment
from hermes.workspaces.shell import ShellSettings

if TYPE_CHECKING:
    from hermes.app.build import App


class Commons:
    def __init__(self, app: App) -> None:
        self._app = app
        self._text = ""

    @cached_property
    def child_env(self) -> dict[str, str]:
        """What commands start from."""
        return child_environment(self._app.env, self._app.settings.terminal.env_passthrough)

    @cached_property
    def shell(self) -> ShellSettings:
        return shell_settings(self._app.settings.terminal)

    @cached_property
    def confinement(self) -> Confinement:
        terminal = self._app.settings.terminal
        return Confinement(
            wanted=terminal.confinement,
            network=terminal.confinement_network,
            ordinary=not terminal.confinement_strict,
            hidden=(self._app.state, *map(_at_home, terminal.confinement_hidden)),
            writable=tuple(map(_at_home, terminal.confinement_writable)),
            cache=str(self._app.home.cache / "confined"),
        )

    @cached_property
    def suspects(self) -> Suspects:
        """Files that were written in sight of strangers, in whichever session."""
        return suspects_of(self._app.config)

    def same(self, text: str) -> str:
        """This text; the one of the session before where that is equal, so that sessions which
        begin alike hold it once."""
        if text != self._text:
            self._text = text
        return self._text


def _at_home(path: str) -> str:
    return str(Path(path).expanduser())
