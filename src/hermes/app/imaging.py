"""Pictures in this run: who can draw them, whether sessions are offered that, what it costs."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import plain
from hermes.config.image_settings import ImageGenSettings
from hermes.core.errors import ConfigError
from hermes.providers.scope import usable

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.core.ports import Meter
    from hermes.images.registry import ImageProviders
    from hermes.images.studio import Studio
    from hermes.images.tools import Drawer
    from hermes.providers.keys import Credential

TOOL = "image_generate"
AUTH_FILE = "auth.json"
FOLDER = "images"
MEGABYTE = 1024 * 1024
# The variables without which no bundled provider needs to be looked at.
KEYS = (
    "FAL_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "REPLICATE_API_TOKEN",
    "XAI_API_KEY",
)


class Imaging:
    """Nothing is loaded where nothing speaks for it: no key, no login, no setting, no plugin."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._slots: asyncio.Semaphore | None = None

    @cached_property
    def providers(self) -> ImageProviders:
        from hermes.images.registry import ImageProviders

        return ImageProviders(studio_of(self._app))

    def offer(self) -> None:
        """Give sessions that begin now the tool, if somebody can draw; take it away if not."""
        if "providers" not in self.__dict__ and not self._is_likely():
            return
        from hermes.images.tools import ImageTool
        from hermes.tools.catalogue import Entry

        providers = self.providers
        if providers.any_available():
            drawn = ImageTool(providers.get_active_provider)
            self._app.tools.offer(TOOL, Entry(drawn.spec, drawn))
        else:
            self._app.tools.offer(TOOL, None)

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

    def _is_likely(self) -> bool:
        app = self._app
        if app.settings.image_gen != ImageGenSettings():
            return True
        secret = app.config.secrets.get
        return any(usable(secret(name)) for name in KEYS) or (app.home.root / AUTH_FILE).exists()


def studio_of(app: App) -> Studio:
    from hermes.app.judging import policy_settings
    from hermes.app.safeguards import way_to_the_web
    from hermes.core.effects import Allow
    from hermes.images.cache import ImageCache
    from hermes.images.faults import ImageFault
    from hermes.images.pictures import MAX_BYTES
    from hermes.images.studio import Network, Studio
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
        network=Network(proxy=network.proxy, no_proxy=network.no_proxy, ca_file=network.ca_bundle),
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
