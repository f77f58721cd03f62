"""What all sessions of one run have in common: made once, or kept for a moment."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from hermes.app.session_environment import resume_folder
from hermes.app.session_prompt import SessionPrompt, session_prompt
from hermes.codec.ttl_cache import TtlCache
from hermes.codec.values import replace
from hermes.core.session_request import SessionRequest
from hermes.models.model_ref import ModelChoice
from hermes.policy.suspects.suspects import Suspects, suspects_of
from hermes.workspaces.confinement.sandbox import Confinement
from hermes.workspaces.placement import command_environment, confinement_settings, start_folder
from hermes.workspaces.shell import ShellSettings, shell_settings

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.journal.json_snapshots import JsonSnapshots


SECRET_SECONDS = 0.05


class RunShared:
    def __init__(self, app: App) -> None:
        self._app = app
        self._text = ""
        self._beginnings: TtlCache[SessionPrompt] = TtlCache()
        self._folders: TtlCache[str] = TtlCache()
        self._offers: TtlCache[None] = TtlCache()

    def enable_burst_caching(self, seconds: float) -> None:
        self._beginnings.seconds = self._folders.seconds = self._offers.seconds = seconds

    def session_prompt(
        self, opening: SessionRequest, choice: ModelChoice, cwd: str, memory: str
    ) -> SessionPrompt:
        """What the requests of a new session begin with."""
        if opening.tell_id or not self._beginnings.seconds:
            return session_prompt(self._app, opening, choice, cwd, memory=memory)
        alike = replace(opening, session_id="")
        return self._beginnings.get(
            (alike, choice, cwd, memory),
            lambda: session_prompt(self._app, alike, choice, cwd, memory=memory),
        )

    def start_folder(self, wanted: str) -> str:
        """Where a new session starts that wants this folder."""
        terminal = self._app.settings.terminal
        return self._folders.get(("start", wanted), lambda: start_folder(terminal, wanted))

    def root(self, cwd: str) -> str:
        """Where a session works that was opened in this folder."""
        return self._folders.get(("root", cwd), lambda: resume_folder(self._app, cwd))

    def offer_images(self) -> None:
        """Sessions that begin now may draw, if somebody can."""
        self._offers.get("images", self._app.images.offer)

    @cached_property
    def json_snapshots(self) -> JsonSnapshots:
        """Sessions that are written to files too."""
        from hermes.journal.json_snapshots import JsonSnapshots

        app = self._app
        return JsonSnapshots(app.run, app.archive, app.models.endpoint_url)

    async def on_session_closed(self, session_id: str) -> None:
        """A session is closed."""
        if "json_snapshots" in self.__dict__:
            await self.json_snapshots.on_session_closed(session_id)

    @cached_property
    def child_env(self) -> dict[str, str]:
        """What commands start from."""
        return command_environment(self._app.run)

    @cached_property
    def shell(self) -> ShellSettings:
        return shell_settings(self._app.settings.terminal)

    @cached_property
    def confinement(self) -> Confinement:
        return confinement_settings(self._app.run)

    @cached_property
    def suspects(self) -> Suspects:
        """Files that were written in sight of strangers, in whichever session."""
        return suspects_of(self._app.home.root)

    def intern(self, text: str) -> str:
        """This text; the one of the session before where that is equal, so that sessions which
        begin alike hold it once."""
        if text != self._text:
            self._text = text
        return self._text


def enable_burst_caching(app: App, seconds: float) -> None:
    """Sessions that open within this many seconds share what they would all look up."""
    app.shared.enable_burst_caching(seconds)
    app.skill_index_cache.cache.seconds = seconds
    app.models.enable_burst_caching(seconds)
    # A secret that another process has just stored is masked after this delay at the latest.
    app.secrecy.enable_burst_caching(min(seconds, SECRET_SECONDS))
