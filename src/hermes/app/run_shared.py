"""State that all sessions of a run share, created once or cached briefly."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.app.session_environment import restore_folder
from hermes.app.session_prompt import SessionPrompt, session_prompt
from hermes.codec.ttl_cache import TtlCache
from hermes.codec.values import replace
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.credentials.redaction import SecretRedactor
from hermes.images.service import ImageGeneration
from hermes.models.model_ref import ModelChoice
from hermes.policy.taint.registry import TaintRegistry, open_taint_registry
from hermes.skills.session_index import SkillIndexCache, seeds_of
from hermes.workspaces.confinement.sandbox import Confinement
from hermes.workspaces.placement import command_environment, confinement_settings, start_folder
from hermes.workspaces.shell import ShellSettings, shell_settings

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.core.secrets import AskSecret, SecretStore
    from hermes.core.tools import Tool
    from hermes.cron.delivery import JobOrigin
    from hermes.journal.json_snapshots import JsonSnapshots
    from hermes.web.provider import WebProviders
    from hermes.web.run_web import RunWeb


SECRET_SECONDS = 0.05
CRONJOB = "cronjob"
WEB_TOOLS = ("web_extract", "web_search")

SessionTask = Callable[["App", Session], Coroutine[Any, Any, None]]


class RunShared:
    """What the sessions of one process share: caches, image generation and secrets."""

    def __init__(self, app: App, redactor: SecretRedactor) -> None:
        self.redactor = redactor
        self.images = ImageGeneration(app.context, app.models, app.tools, app.find_session)
        # Started with every interactive session.
        self.session_tasks: list[SessionTask] = []
        # Set once the home's default files exist.
        self.is_seeded = False
        self.skill_index_cache = SkillIndexCache()
        # Background sessions that a person stopped, while they end.
        self.stopped_tasks: set[str] = set()
        # The secrets that the commands of an open session may use, by session id.
        self.secret_stores: dict[str, SecretStore] = {}
        # Prompts the user for a secret without echo.
        self.ask_secret: AskSecret | None = None
        # The chat of a session, for jobs that are created in it; a gateway sets it.
        self.job_origin: Callable[[str], JobOrigin | None] = lambda _session_id: None
        self._app = app
        self._offers_cron = False
        self._offers_web = False
        self._text = ""
        self._prompts: TtlCache[SessionPrompt] = TtlCache()
        self._folders: TtlCache[str] = TtlCache()
        self._offers: TtlCache[None] = TtlCache()

    def enable_burst_caching(self, seconds: float) -> None:
        self._prompts.seconds = self._folders.seconds = self._offers.seconds = seconds

    def session_prompt(
        self, request: SessionRequest, choice: ModelChoice, cwd: str, memory: str
    ) -> SessionPrompt:
        """The fixed beginning of a new session's requests."""
        if request.tell_id or not self._prompts.seconds:
            return session_prompt(self._app, request, choice, cwd, memory=memory)
        shared = replace(request, session_id="")
        return self._prompts.get(
            (shared, choice, cwd, memory),
            lambda: session_prompt(self._app, shared, choice, cwd, memory=memory),
        )

    def start_folder(self, folder: str) -> str:
        """The folder of a new session that asks for this folder."""
        terminal = self._app.context.settings.terminal
        return self._folders.get(("start", folder), lambda: start_folder(terminal, folder))

    def root(self, cwd: str) -> str:
        """The working folder of a session that was opened in this folder."""
        return self._folders.get(("root", cwd), lambda: restore_folder(self._app, cwd))

    def offer_images(self) -> None:
        """Offer the image tool to new sessions if a provider is configured."""
        self._offers.get("images", self.images.offer)

    def offer_web(self) -> None:
        """Offer the web tools to new sessions. What they need is loaded with their first call."""
        app = self._app
        if self._offers_web:
            return
        from hermes.tools.catalogue import CatalogueEntry, declarations

        for name in WEB_TOOLS:
            entry = CatalogueEntry(declarations()[name].spec, partial(self._web_tool, name))
            app.tools.offer(name, entry)
        self._offers_web = True

    def web_providers(self) -> WebProviders:
        """The active web providers: built-in, of services, or of plugins."""
        from hermes.plugins.run_providers import web_of

        app = self._app
        return self._web.providers(web_of(app.plugins.services, app.context.settings.web))

    def _web_tool(self, name: str) -> Tool:
        from hermes.web.run_web import make_tool

        return make_tool(name, self.web_providers())

    @cached_property
    def _web(self) -> RunWeb:
        from hermes.web.run_web import RunWeb

        return RunWeb(self._app.context, self._app.models.http)

    def offer_moa(self) -> None:
        """Offer the mixture of agents to new sessions if its models can be used."""
        if self._app.context.settings.moa.presets:
            from hermes.moa.tools import offer_tool

            app = self._app
            self._offers.get("moa", lambda: offer_tool(app.context, app.models, app.tools))

    def offer_cron(self) -> None:
        """Offer the tool for scheduled jobs to new sessions in homes that have used them, or whose
        settings name it; others save its place in the prompt."""
        if self._offers_cron:
            return
        settings = self._app.context.settings
        lists = (settings.toolsets, *settings.platform_toolsets.values())
        is_named = any(CRONJOB in names for names in lists)
        if is_named or (self._app.context.home.root / "cron").is_dir():
            from hermes.tools.catalogue import CatalogueEntry, declarations

            declared = declarations()[CRONJOB]
            self._app.tools.offer(CRONJOB, CatalogueEntry(declared.spec, declared.target))
            self._offers_cron = True

    @cached_property
    def json_snapshots(self) -> JsonSnapshots:
        """The writer of sessions to JSON files."""
        from hermes.journal.json_snapshots import JsonSnapshots

        app = self._app

        def endpoint_url(model: str, provider: str) -> str:
            found = app.models.find_endpoint(model, provider)
            return found.url if found is not None else ""

        return JsonSnapshots(app.context, app.archive, endpoint_url)

    async def on_session_closed(self, session_id: str) -> None:
        if "json_snapshots" in self.__dict__:
            await self.json_snapshots.on_session_closed(session_id)

    @cached_property
    def child_env(self) -> dict[str, str]:
        """The base environment of commands."""
        return command_environment(self._app.context)

    @cached_property
    def shell(self) -> ShellSettings:
        return shell_settings(self._app.context.settings.terminal)

    @cached_property
    def confinement(self) -> Confinement:
        return confinement_settings(self._app.context)

    @cached_property
    def taint(self) -> TaintRegistry:
        """Files of any session that untrusted text may have influenced."""
        return open_taint_registry(self._app.context.home.root)

    def allow_always(self, subject: str) -> None:
        """Save a permanent approval in the settings, where the user can review it."""
        from hermes.config.edit import allow_always

        allow_always(self._app.context.home, subject)

    def is_as_shipped(self, path: str) -> bool:
        """Whether the file belongs to a bundled skill and is unchanged."""
        return seeds_of(self._app.context.home).is_as_shipped(Path(path))

    def mask(self, text: str) -> str:
        """The text without secrets, for the settings."""
        return self._app.context.redactor.text(text, "log")

    def intern(self, text: str) -> str:
        """The previous session's string if it is equal, so that sessions share one copy."""
        if text != self._text:
            self._text = text
        return self._text


def enable_burst_caching(app: App, seconds: float) -> None:
    """Sessions that open within this many seconds share cached lookups."""
    app.shared.enable_burst_caching(seconds)
    app.shared.skill_index_cache.cache.seconds = seconds
    app.models.enable_burst_caching(seconds)
    # A secret that another process has just stored is masked after this delay at the latest.
    app.shared.redactor.enable_burst_caching(min(seconds, SECRET_SECONDS))
