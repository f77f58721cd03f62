"""Image generation in one process: providers, the offer of the tool, and cost."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, decode, encode_sorted, plain
from hermes.codec.values import Value
from hermes.config.home import replace_file
from hermes.core.errors import ConfigError
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool
from hermes.providers.endpoint import is_plausible_key
from hermes.tools.catalogue import CatalogueEntry
from hermes.version import __version__

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.ports import Meter
    from hermes.core.session import Session
    from hermes.images.registry import ImageProviders
    from hermes.images.studio import Studio
    from hermes.images.tools import ImageService
    from hermes.models.models import Models
    from hermes.providers.keys import Credential
    from hermes.tools.toolbox import SessionTools

AUTH_FILE = "auth.json"
# Without one of these variables, no bundled provider needs to be checked.
KEYS = (
    "FAL_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "REPLICATE_API_TOKEN", "XAI_API_KEY",
)  # fmt: skip
_FILE = "image_tool.json"
_ENDING = "_IMAGE_MODEL"


class CachedImageTool(Value):
    """The tool as it was offered last."""

    why: str  # identifies everything that the offer depends on
    spec: ToolSpec | None = None  # None without an available provider


def is_likely_available(run: RunContext) -> bool:
    """Return whether a key, a login or a setting suggests image generation."""
    secret = run.config.secrets.get
    return (
        run.settings.image_gen != type(run.settings.image_gen)()
        or any(is_plausible_key(secret(name)) for name in KEYS)
        or (run.home.root / AUTH_FILE).exists()
    )


def offer_key(run: RunContext) -> str:
    """Return a value that changes only when the offered tool may change. It depends on which keys
    are present, not on their values."""
    secret = run.config.secrets.get
    names = {*run.config.secrets.names(), *run.env}
    try:
        auth = (run.home.root / AUTH_FILE).stat().st_mtime_ns
    except OSError:
        auth = 0
    facts = (
        __version__,
        run.settings.image_gen,
        [bool(is_plausible_key(secret(name))) for name in KEYS],
        secret("OPENAI_BASE_URL"),
        sorted((name, secret(name)) for name in names if name.endswith(_ENDING)),
        auth,
    )
    return hashlib.sha256(encode_sorted(facts)).hexdigest()[:32]


TOOL = "image_generate"
FOLDER = "images"
MEGABYTE = 1024 * 1024


class ImageGeneration:
    """Offers image generation to sessions. Nothing is imported without a key, a login, a setting or
    a plugin."""

    def __init__(
        self,
        run: RunContext,
        models: Models,
        tools: SessionTools,
        find_session: Callable[[str], Session | None],
    ) -> None:
        self._run = run
        self._models = models
        self._tools = tools
        self._find_session = find_session
        self._slots: asyncio.Semaphore | None = None

    @cached_property
    def providers(self) -> ImageProviders:
        from hermes.images.registry import ImageProviders

        return ImageProviders(make_studio(self._run, self._models))

    def offer(self, *, only_look: bool = False) -> None:
        """Offer the tool to new sessions if a provider is available, and withdraw it if not. With
        `only_look`, nothing is written."""
        loaded = "providers" in self.__dict__
        if not loaded and not is_likely_available(self._run):
            return
        reason = "" if loaded else offer_key(self._run)
        file = self._run.home.cache / _FILE
        offer = CachedImageTool(why="")
        if reason:
            with suppress(OSError, DecodeError):
                offer = decode(CachedImageTool, file.read_bytes())
        if not reason or offer.why != reason:
            available = self.providers.any_available()
            offer = CachedImageTool(why=reason, spec=self._tool().spec if available else None)
            if reason and not only_look:
                # Without the cache, the next start takes a little longer.
                with suppress(ConfigError):
                    replace_file(self._run.home, file, encode_sorted(offer), durable=False)
        entry = _LateEntry(offer.spec, self._tool) if offer.spec is not None else None
        self._tools.offer(TOOL, entry)

    def _tool(self) -> Tool:
        from hermes.images.tools import ImageTool

        return ImageTool(self.providers.get_active_provider)

    def make_service(self, session_id: str) -> ImageService:
        """Make the service of one session: the cost of its images is booked there, under its
        caps."""
        from hermes.images.generator import ImageGenerator
        from hermes.images.tools import ImageService

        settings = self._run.settings.image_gen
        if self._slots is None:
            self._slots = asyncio.Semaphore(settings.max_parallel_requests)
            self.remove_old_images()

        def meter() -> Meter | None:
            session = self._find_session(session_id)
            return session.meter if session is not None else None

        return ImageService(
            ImageGenerator(
                self.providers,
                meter=meter,
                slots=self._slots,
                seconds=settings.timeout,
                clean=self._run.redactor.redact_known,
            )
        )

    def remove_old_images(self) -> int:
        """Remove old images as the settings say; return how many."""
        folder = self._run.home.cache / FOLDER
        if not folder.is_dir():
            return 0
        from hermes.images.storage import ImageCache

        settings = self._run.settings.image_gen
        return ImageCache(folder, self._run.world).sweep(
            max_days=settings.cache_days, max_bytes=settings.cache_mb * MEGABYTE
        )


class _LateEntry(CatalogueEntry):
    """A tool that is created on first use."""

    def __init__(self, spec: ToolSpec, make: Callable[[], Tool]) -> None:
        super().__init__(spec, "")
        self._make = make

    def load(self) -> Tool:
        return self._make()


def make_studio(run: RunContext, models: Models) -> Studio:
    from hermes.core.effects import Allow
    from hermes.credentials.accounts import http_client
    from hermes.images.storage import MAX_BYTES, ImageCache, ImageFault
    from hermes.images.studio import Studio
    from hermes.policy.rule_setup import policy_settings
    from hermes.policy.rules import SessionPolicy
    from hermes.web.access import web_access

    root = str(Path(run.settings.terminal.cwd).expanduser().resolve())
    rules = SessionPolicy(
        policy_settings(run.config, surface="image_gen"),
        root=root,
        home=run.user_home,
        state=run.state_dir,
        keep=lambda _subject: None,
        now=run.world.clock.monotonic,
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

    async def login(name: str) -> Credential | None:
        """Return the credential of an account, renewed if due; raise ProviderError."""
        vendor = models.resolver.catalogue.vendor(name)
        if vendor is None:
            return None
        keys = models.accounts.keys_for(name, vendor)
        credential = await keys.pick()
        keys.release(credential)
        return credential

    def logged_in(name: str) -> bool:
        try:
            exists = (run.home.root / AUTH_FILE).exists()
            return exists and name in models.accounts.store.auth_file.peek().providers()
        except ConfigError:
            return False

    return Studio(
        cache=ImageCache(run.home.cache / FOLDER, run.world),
        world=run.world,
        fetcher=web_access(run, rules),
        read=read,
        secret=run.config.secrets.get,
        settings=plain(run.settings.image_gen),
        connect=lambda: http_client(run.settings.network),
        login=login,
        logged_in=logged_in,
    )
