"""Pictures in this run: who can draw them, whether sessions are offered that, what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import plain
from hermes.core.errors import ConfigError
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool
from hermes.images.offer import AUTH_FILE, Offer, is_likely, remember, remembered, why
from hermes.tools.catalogue import Entry

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.core.ports import Meter
    from hermes.images.registry import ImageProviders
    from hermes.images.studio import Studio
    from hermes.images.tools import Drawer
    from hermes.providers.keys import Credential

TOOL = "image_generate"
FOLDER = "images"
MEGABYTE = 1024 * 1024


class Imaging:
    """Nothing is loaded where nothing speaks for it: no key, no login, no setting, no plugin."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._slots: asyncio.Semaphore | None = None

    @cached_property
    def providers(self) -> ImageProviders:
        from hermes.images.registry import ImageProviders

        return ImageProviders(studio_of(self._app))

    def offer(self, *, only_look: bool = False) -> None:
        """Give sessions that begin now the tool, if somebody can draw; take it away if not. Who
        will `only_look` leaves the home as it is."""
        loaded = "providers" in self.__dict__
        if not loaded and not is_likely(self._app.run):
            return
        reason = "" if loaded else why(self._app.run)
        offer = remembered(self._app.run, reason) if reason else None
        if offer is None:
            offer = Offer(why=reason, spec=self._spec())
            if reason and not only_look:
                remember(self._app.run, offer)
        entry = _LateEntry(offer.spec, self._tool) if offer.spec is not None else None
        self._app.tools.offer(TOOL, entry)

    def _spec(self) -> ToolSpec | None:
        return self._tool().spec if self.providers.any_available() else None

    def _tool(self) -> Tool:
        from hermes.images.tools import ImageTool

        return ImageTool(self.providers.get_active_provider)

    def drawer(self, session_id: str) -> Drawer:
        """For one session: what its pictures cost is booked there, under its caps."""
        from hermes.images.drawing import Drawing
        from hermes.images.tools import Drawer

        settings = self._app.settings.image_gen
        if self._slots is None:
            self._slots = asyncio.Semaphore(settings.max_parallel_requests)
            self.tidy()

        def meter() -> Meter | None:
            session = self._app.opened(session_id)
            return session.meter if session is not None else None

        return Drawer(
            Drawing(
                self.providers,
                meter=meter,
                slots=self._slots,
                seconds=settings.timeout,
                clean=self._app.secrecy.known,
            )
        )

    def tidy(self) -> int:
        """Remove old pictures as the settings say; how many went."""
        folder = self._app.home.cache / FOLDER
        if not folder.is_dir():
            return 0
        from hermes.images.cache import ImageCache

        settings = self._app.settings.image_gen
        return ImageCache(folder, self._app.world).sweep(
            max_days=settings.cache_days, max_bytes=settings.cache_mb * MEGABYTE
        )


class _LateEntry(Entry):
    """A tool that is made when it is first used."""

    def __init__(self, spec: ToolSpec, make: Callable[[], Tool]) -> None:
        super().__init__(spec, "")
        self._make = make

    def load(self) -> Tool:
        return self._make()


def studio_of(app: App) -> Studio:
    from hermes.app.policy.safeguards import way_to_the_web
    from hermes.core.effects import Allow
    from hermes.images.cache import ImageCache
    from hermes.images.faults import ImageFault
    from hermes.images.pictures import MAX_BYTES
    from hermes.images.studio import Network, Studio
    from hermes.policy.rule_setup import policy_settings
    from hermes.policy.rules import Rules

    network = app.settings.network
    root = str(Path(app.settings.terminal.cwd).expanduser().resolve())
    rules = Rules(
        policy_settings(app.config, surface="image_gen"),
        root=root,
        home=app.person,
        state=app.state,
        keep=lambda _subject: None,
        now=app.world.clock.monotonic,
    )

    def read(path: str) -> bytes:
        if not isinstance(decision := rules.files.read(path), Allow):
            raise ImageFault(f"{path} may not be read: {decision.reason}", kind="invalid_argument")
        try:
            with Path(root, path).expanduser().open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except OSError as error:
            why = error.strerror or "it cannot be opened"
            raise ImageFault(f"{path} cannot be read ({why}).", kind="invalid_argument") from error

    return Studio(
        cache=ImageCache(app.home.cache / FOLDER, app.world),
        world=app.world,
        fetcher=way_to_the_web(app, rules),
        read=read,
        secret=app.config.secrets.get,
        settings=plain(app.settings.image_gen),
        network=Network(
            proxy=network.proxy,
            no_proxy=network.no_proxy,
            ca_file=network.ca_bundle,
            only_ipv4=network.force_ipv4,
        ),
        login=lambda name: _login(app, name),
        logged_in=lambda name: _is_logged_in(app, name),
    )


async def _login(app: App, name: str) -> Credential | None:
    """The credential of an account, renewed where that is due; ProviderError when it cannot be."""
    vendor = app.models.resolver.catalogue.vendor(name)
    if vendor is None:
        return None
    keys = app.models.accounts.keys_for(name, vendor)
    credential = await keys.pick()
    keys.release(credential)
    return credential


def _is_logged_in(app: App, name: str) -> bool:
    if not (app.home.root / AUTH_FILE).exists():
        return False
    try:
        return name in app.models.accounts.wallet.store.peek().providers()
    except ConfigError:
        return False
