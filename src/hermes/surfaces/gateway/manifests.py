"""Finds the platforms that exist and those that the settings enable. Loads no platform library."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from hermes.app.app import App
from hermes.codec.values import replace
from hermes.config.extras import add_command
from hermes.config.gateway_settings import PlatformOptions, platform_options
from hermes.config.load import Config
from hermes.core.errors import ConfigError, LoginRejected, NotFound
from hermes.surfaces.gateway import platforms
from hermes.surfaces.gateway.platform import GatewayPorts, Manifest, Platform, PlatformContext

log = logging.getLogger(__name__)

# In tests: further manifests as `module:name`, comma-separated.
TEST_VARIABLE = "HERMES_TEST_PLATFORMS"


class ConfiguredPlatform(NamedTuple):
    """A platform with its settings."""

    manifest: Manifest
    options: PlatformOptions

    @property
    def missing(self) -> tuple[str, ...]:
        """The variables of required settings that have no value."""
        return tuple(
            field.env
            for field in self.manifest.fields
            if field.is_required and not self.options.variables.get(field.env)
        )

    @property
    def credential(self) -> str:
        """The secret that only one process may use; "" when there is none."""
        return self.options.variables.get(self.manifest.credential, "")


@cache
def bundled_manifests() -> tuple[Manifest, ...]:
    names = sorted(found.name for found in pkgutil.iter_modules(platforms.__path__) if found.ispkg)
    return tuple(import_module(f"{platforms.__name__}.{name}.manifest").MANIFEST for name in names)


def all_manifests(env: Mapping[str, str]) -> dict[str, Manifest]:
    """Every platform by name."""
    found = {each.name: each for each in bundled_manifests()}
    if env.get("HERMES_TESTING") == "1":
        for place in filter(None, env.get(TEST_VARIABLE, "").split(",")):
            manifest: Manifest = _load(place)
            found[manifest.name] = manifest
    return found


def find_manifest(env: Mapping[str, str], name: str) -> Manifest:
    known = all_manifests(env)
    if name not in known:
        raise NotFound(
            f"There is no platform {name!r}; known platforms: {', '.join(known) or 'none'}."
        )
    return known[name]


def configure(config: Config, manifest: Manifest) -> ConfiguredPlatform:
    """A platform with its settings, enabled or not."""
    further = (*(field.env for field in manifest.fields), *filter(None, [manifest.credential]))
    options = platform_options(config, manifest.name, further)
    defaults = {field.env: field.default for field in manifest.fields if field.default}
    variables = {**defaults, **options.variables}
    return ConfiguredPlatform(manifest, replace(options, variables=variables))


def enabled_platforms(config: Config, env: Mapping[str, str]) -> Iterator[ConfiguredPlatform]:
    """The platforms that the settings enable, or whose credentials are set."""
    for manifest in all_manifests(env).values():
        platform = configure(config, manifest)
        has_all = bool(platform.manifest.fields) and not platform.missing
        has_all = has_all and any(field.is_required for field in manifest.fields)
        if platform.options.enabled is False:
            if has_all:
                name = manifest.name
                log.warning("%s is configured, but platforms.%s.enabled is false.", name, name)
        elif platform.options.enabled or has_all:
            yield platform


def platform_context(
    app: App,
    platform: ConfiguredPlatform,
    commands: tuple[tuple[str, str], ...] = (),
    ports: GatewayPorts | None = None,
) -> PlatformContext:
    """What the adapter of a platform gets. `commands` are for its command menu."""
    home, name = app.context.home, platform.manifest.name
    return PlatformContext(
        settings=platform.options.variables,
        extra=platform.options.extra,
        folder=home.ensure_folder(home.root / "platforms" / name),
        media=home.ensure_folder(home.cache / "media" / name),
        max_media_bytes=app.context.settings.gateway.max_inbound_media_mb * 1_000_000,
        http=app.models.http,
        world=app.context.world,
        commands=commands,
        ports=ports,
    )


def build_adapter(platform: ConfiguredPlatform, context: PlatformContext) -> Platform:
    """The adapter of a platform. LoginRejected when a setting or a library is missing: nothing
    that passes with time."""
    manifest = platform.manifest
    if platform.missing:
        raise LoginRejected(
            f"{manifest.title} needs {' and '.join(platform.missing)}; run `hermes gateway setup "
            f"{manifest.name}`."
        )
    try:
        factory = _load(manifest.adapter)
    except ImportError as error:
        extra = f"; install it with `{add_command(manifest.extra)}`"
        raise LoginRejected(
            f"{manifest.title} needs a library that is missing ({error.name})"
            f"{extra if manifest.extra else ''}."
        ) from error
    try:
        adapter: Platform = factory(context)
    except ConfigError as error:
        raise LoginRejected(str(error)) from error
    return adapter


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
