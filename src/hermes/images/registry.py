"""Registers image providers, chooses provider and model, and lists them for setup."""

from __future__ import annotations

import importlib
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.schema import KeyPath as SettingPath
from hermes.core.errors import NotFound, UsageError
from hermes.images.provider import ImageGenProvider
from hermes.images.storage import ImageFault
from hermes.images.studio import Studio

if TYPE_CHECKING:
    from hermes.images.service import ImageGeneration

MANIFEST = "plugin.yaml"


class ImageProviderManifest(Value):
    """The manifest of a bundled image provider."""

    folder: str
    name: str
    requires_env: tuple[str, ...] = ()  # variables that must be set
    requires_login: str = ""  # an account that must be logged in
    # used only if the settings name it, because it is unknown whether its server runs
    opt_in: bool = False


def bundled_manifests(folder: Path) -> tuple[ImageProviderManifest, ...]:
    """Return the manifests of all folders in this folder, by name."""
    found = [_read_manifest(file) for file in folder.glob(f"*/{MANIFEST}")]
    return tuple(sorted(found, key=lambda each: each.name))


def _read_manifest(file: Path) -> ImageProviderManifest:
    """Read a manifest. Bundled manifests contain only `key: value` lines and lists in brackets."""
    fields: dict[str, str] = {}
    for line in file.read_text("utf-8").splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip().strip("\"'")
    return ImageProviderManifest(
        folder=file.parent.name,
        name=fields["name"],
        requires_env=tuple(
            name.strip() for name in fields.get("requires_env", "").strip("[]").split(",") if name
        ),
        requires_login=fields.get("requires_login", ""),
        opt_in=fields.get("opt_in") == "true",
    )


log = logging.getLogger(__name__)


def model_variable(provider: str) -> str:
    return f"{provider.upper().replace('-', '_')}_IMAGE_MODEL"


def choose_model(provider: ImageGenProvider, studio: Studio, asked: object = None) -> str:
    """Choose a model. A provider that lists no models gets any name. Otherwise names that it does
    not list are skipped, and never sent."""
    known = [str(row["id"]) for row in models_of(provider.list_models())]
    own = studio.options(provider.name).get("model")
    for name in (asked, studio.variable(model_variable(provider.name)), own):
        if not isinstance(name, str) or not (name := name.strip()):
            continue
        if not known or name in known:
            return name
        log.debug("a model that is not listed", extra={"provider": provider.name, "model": name})
    shared = str(studio.settings.get("model") or "").strip()
    if shared in known:
        return shared
    return provider.default_model() or ""


def models_of(rows: object) -> list[JsonObject]:
    """Return the rows of a provider's list that have an id."""
    if not isinstance(rows, list):
        return []
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]


BUNDLED = Path(__file__).parents[1] / "plugins" / "bundled" / "image_gen"
PACKAGE = "hermes.plugins.bundled.image_gen"
BUNDLED_SOURCE = "bundled"
# Where several are available and none was chosen, the first of these is used; then by name.
ORDER = ("fal", "openai", "xai", "openrouter")
FRESH_SECONDS = 60.0
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class ImageProviders:
    """The image providers of one process. A bundled provider is known by its manifest and imported
    on first use; a plugin's provider overrides a bundled one of the same name."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self._manifests = {each.name: each for each in bundled_manifests(BUNDLED)}
        self._bundled: dict[str, ImageGenProvider | None] = {}
        self._added: dict[str, dict[str, ImageGenProvider]] = {}
        self._looked = -FRESH_SECONDS
        self._any = False

    def register_provider(self, provider: ImageGenProvider, *, source: str) -> None:
        """Add a provider. `source` names its origin ("user", "pip", a plugin's key). The last one
        of a name wins; raise UsageError for an invalid provider or name."""
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
        if name in self._manifests and name not in self._bundled:
            self._bundled[name] = self._load(self._manifests[name])
        return self._bundled.get(name)

    def list_providers(self) -> list[ImageGenProvider]:
        """Return all providers, by name."""
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
        why; else the best available one. Raise ImageFault when there is none."""
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
        return min(ready, key=lambda each: ((*ORDER, each.name).index(each.name), each.name))

    def available(self) -> list[ImageGenProvider]:
        """Return the available providers, by name. Modules whose keys are missing are not
        imported."""
        available = []
        for name in self.names():
            if not self._added.get(name) and not self._has_needs(self._manifests[name]):
                continue
            provider = self.get_provider(name)
            if provider is not None and is_available(provider):
                available.append(provider)
        return available

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

    def _load(self, manifest: ImageProviderManifest) -> ImageGenProvider | None:
        """Return an object of the one provider class in the module; None when that fails."""
        try:
            module = importlib.import_module(f"{PACKAGE}.{manifest.folder}")
            kinds: list[Any] = [
                each
                for each in vars(module).values()
                if isinstance(each, type)
                and issubclass(each, ImageGenProvider)
                and each.__module__ == module.__name__
            ]
            provider: ImageGenProvider = kinds[0](self.studio)
        except Exception:
            log.exception("an image provider cannot be loaded", extra={"provider": manifest.name})
            return None
        return provider


def is_available(provider: ImageGenProvider) -> bool:
    """Return whether a provider is available. One that raises is unavailable."""
    try:
        return bool(provider.is_available())
    except Exception:
        log.exception("an image provider failed to report its availability")
        return False


class ProviderVariable(Value):
    """A variable that a provider needs, and whether it is set."""

    key: str
    prompt: str = ""
    url: str = ""
    secret: bool = True
    required: bool = True
    known: bool = False


class ImageRow(Value):
    """One provider in a list."""

    name: str
    label: str
    available: bool = False
    used: bool = False  # the provider that is active
    model: str = ""  # the model that would be used
    badge: str = ""
    tag: str = ""
    source: str = ""
    variables: tuple[ProviderVariable, ...] = ()
    models: tuple[JsonObject, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(each.key for each in self.variables if each.required and not each.known)


def image_rows(imaging: ImageGeneration) -> tuple[ImageRow, ...]:
    """Return the rows of all providers. Makes no request."""
    providers = imaging.providers
    try:
        used = providers.get_active_provider().name
    except ImageFault:
        used = ""
    return tuple(_row(providers, each, used) for each in providers.list_providers())


def image_row(imaging: ImageGeneration, name: str) -> ImageRow:
    """Return the row of a provider; raise NotFound that names the known providers."""
    rows = image_rows(imaging)
    for row in rows:
        if row.name == name:
            return row
    known = tuple(row.name for row in rows)
    raise NotFound(
        f"There is no image provider {name!r}; available: {', '.join(known)}.", near=known
    )


def settings_for_choice(row: ImageRow, model: str = "") -> dict[SettingPath, JsonValue]:
    """Return the settings that select this provider, with this model of its list; raise
    NotFound."""
    ids = [str(each["id"]) for each in row.models]
    if model and ids and model not in ids:
        raise NotFound(
            f"{row.label} has no model {model!r}; available: {', '.join(ids)}.", near=tuple(ids)
        )
    wanted: dict[SettingPath, JsonValue] = {("image_gen", "provider"): row.name}
    if model:
        wanted["image_gen", "model"] = model
    return wanted


def _row(providers: ImageProviders, provider: ImageGenProvider, used: str) -> ImageRow:
    schema = provider.get_setup_schema()
    variables = [
        ProviderVariable(
            key=(key := str(row["key"])),
            prompt=str(row.get("prompt") or key),
            url=str(row.get("url") or ""),
            secret=bool(row.get("secret", True)),
            required=bool(row.get("required", True)),
            known=bool(providers.studio.variable(key)),
        )
        for row in schema.get("env_vars") or []
        if row.get("key")
    ]
    return ImageRow(
        name=provider.name,
        label=str(schema.get("name") or provider.display_name),
        available=is_available(provider),
        used=provider.name == used,
        model=choose_model(provider, providers.studio),
        badge=str(schema.get("badge") or ""),
        tag=str(schema.get("tag") or ""),
        source=providers.source(provider.name),
        variables=tuple(variables),
        models=tuple(models_of(provider.list_models())),
    )
