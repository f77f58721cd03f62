"""Registers image providers, bundled and from plugins, and chooses the active one."""

from __future__ import annotations

import importlib
import logging
import re
from pathlib import Path

from hermes.core.errors import UsageError
from hermes.images.faults import ImageFault
from hermes.images.manifests import ImageProviderManifest, bundled_manifests
from hermes.images.provider import ImageGenProvider
from hermes.images.studio import Studio

log = logging.getLogger(__name__)

BUNDLED = Path(__file__).parents[1] / "plugins" / "bundled" / "image_gen"
PACKAGE = "hermes.plugins.bundled.image_gen"
BUNDLED_SOURCE = "bundled"
# Where several are available and none was chosen, the first of these is used; then by name.
ORDER = ("fal", "openai", "xai", "openrouter")
FRESH_SECONDS = 60.0
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class BundledContext:
    """What the `register` function of a bundled provider receives."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.registered: list[ImageGenProvider] = []

    def register_image_gen_provider(self, provider: ImageGenProvider) -> None:
        self.registered.append(provider)


class ImageProviders:
    """For one process. A bundled provider is known by its manifest and imported on first use; a
    plugin's provider overrides a bundled one of the same name."""

    def __init__(self, studio: Studio, *, folder: Path = BUNDLED, package: str = PACKAGE) -> None:
        self.studio = studio
        self._package = package
        self._manifests = {each.name: each for each in bundled_manifests(folder)}
        self._bundled: dict[str, ImageGenProvider | None] = {}
        self._added: dict[str, dict[str, ImageGenProvider]] = {}
        self._looked = -FRESH_SECONDS
        self._any = False

    def register_provider(self, provider: ImageGenProvider, *, source: str) -> None:
        """`source` names its origin ("user", "pip", a plugin's key). The last one of a name wins;
        UsageError for an invalid provider or name."""
        if not isinstance(provider, ImageGenProvider):
            raise UsageError(f"{type(provider).__name__} is not an ImageGenProvider.")
        name: object = provider.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a valid provider name; use lower-case letters and '-'."
            )
        held = self._added.setdefault(name, {})
        held.pop(source, None)
        held[source] = provider
        self._looked = -FRESH_SECONDS

    def get_provider(self, name: str) -> ImageGenProvider | None:
        if added := self._added.get(name):
            return list(added.values())[-1]
        return self._from_bundle(name)

    def list_providers(self) -> list[ImageGenProvider]:
        """All providers, by name."""
        found = (self.get_provider(name) for name in self.names())
        return [provider for provider in found if provider is not None]

    def names(self) -> tuple[str, ...]:
        added = (name for name, held in self._added.items() if held)
        return tuple(sorted({*self._manifests, *added}))

    def source(self, name: str) -> str:
        """Return the origin of the provider, and whether it overrides another."""
        held = list(self._added.get(name, ()))
        if not held:
            return BUNDLED_SOURCE
        overrides = held[-2] if len(held) > 1 else BUNDLED_SOURCE if name in self._manifests else ""
        return f"{held[-1]} (overrides {overrides})" if overrides else held[-1]

    def get_active_provider(self) -> ImageGenProvider:
        """Return the provider from the settings, even if it is unavailable, so that its error says
        why; else the best available one. ImageFault when there is none."""
        wanted = self.studio.wanted
        if wanted:
            if (provider := self.get_provider(wanted)) is not None:
                return provider
            known = ", ".join(self.names())
            raise ImageFault(
                f"image_gen.provider is {wanted!r}, which is not one of {known}; "
                "choose one with `hermes tools images`.",
                kind="invalid_argument",
            )
        ready = self.available()
        if not ready:
            raise ImageFault(
                "No image provider is configured; set one up with `hermes tools images`.",
                kind="provider_error",
            )
        return min(ready, key=lambda each: (_rank(each.name), each.name))

    def available(self) -> list[ImageGenProvider]:
        """Return the available providers, by name. Modules whose keys are missing are not
        imported."""
        found = []
        for name in self.names():
            if not self._added.get(name) and not self._has_needs(self._manifests[name]):
                continue
            provider = self.get_provider(name)
            if provider is not None and is_available(provider):
                found.append(provider)
        return found

    def any_available(self) -> bool:
        """Return whether the tool should be offered; checked once a minute."""
        now = self.studio.world.clock.monotonic()
        if now - self._looked >= FRESH_SECONDS:
            self._looked = now
            # A chosen provider is always offered: its own error says best what is missing.
            chosen = bool(self.studio.wanted) and self.get_provider(self.studio.wanted) is not None
            self._any = chosen or bool(self.available())
        return self._any

    def _has_needs(self, manifest: ImageProviderManifest) -> bool:
        studio = self.studio
        chosen = manifest.name == studio.wanted or any(studio.options(manifest.name).values())
        if manifest.opt_in and not chosen:
            return False
        if manifest.requires_login and not studio.logged_in(manifest.requires_login):
            return False
        return all(studio.key(name) for name in manifest.requires_env)

    def _from_bundle(self, name: str) -> ImageGenProvider | None:
        if name not in self._manifests:
            return None
        if name not in self._bundled:
            self._bundled[name] = self._load(self._manifests[name])
        return self._bundled[name]

    def _load(self, manifest: ImageProviderManifest) -> ImageGenProvider | None:
        context = BundledContext(self.studio)
        try:
            module = importlib.import_module(f"{self._package}.{manifest.folder}")
            module.register(context)
        except Exception:
            log.exception("an image provider cannot be loaded", extra={"provider": manifest.name})
            return None
        return next((each for each in context.registered if each.name == manifest.name), None)


def is_available(provider: ImageGenProvider) -> bool:
    """A provider that raises is unavailable."""
    try:
        return bool(provider.is_available())
    except Exception:
        log.exception("an image provider failed to report its availability")
        return False


def _rank(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)
