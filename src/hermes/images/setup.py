"""Lists image providers for users, and computes the settings for a choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.schema import KeyPath as SettingPath
from hermes.core.errors import NotFound
from hermes.images.choice import choose_model, models_of
from hermes.images.faults import ImageFault
from hermes.images.provider import ImageGenProvider
from hermes.images.registry import ImageProviders, is_available

if TYPE_CHECKING:
    from hermes.images.service import ImageGeneration


class ProviderVariable(Value):
    """A variable that a provider needs, and whether it is set."""

    key: str
    prompt: str = ""
    url: str = ""
    secret: bool = True
    required: bool = True
    known: bool = False


class ImageRow(Value):
    """A provider. `model` is the model that would be used; `used` says that this provider is
    active."""

    name: str
    label: str
    available: bool = False
    used: bool = False
    model: str = ""
    badge: str = ""
    tag: str = ""
    source: str = ""
    variables: tuple[ProviderVariable, ...] = ()
    models: tuple[JsonObject, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(each.key for each in self.variables if each.required and not each.known)


def image_rows(imaging: ImageGeneration) -> tuple[ImageRow, ...]:
    """Makes no request."""
    providers = imaging.providers
    try:
        used = providers.get_active_provider().name
    except ImageFault:
        used = ""
    return tuple(_row(providers, each, used) for each in providers.list_providers())


def image_row(imaging: ImageGeneration, name: str) -> ImageRow:
    """NotFound names the known providers."""
    rows = image_rows(imaging)
    for row in rows:
        if row.name == name:
            return row
    known = tuple(row.name for row in rows)
    raise NotFound(
        f"There is no image provider {name!r}; there are {', '.join(known)}.", near=known
    )


def settings_for_choice(row: ImageRow, model: str = "") -> dict[SettingPath, JsonValue]:
    """Return the settings that select this provider, with this model of its list; NotFound."""
    ids = [str(each["id"]) for each in row.models]
    if model and ids and model not in ids:
        raise NotFound(
            f"{row.label} has no model {model!r}; there are {', '.join(ids)}.", near=tuple(ids)
        )
    wanted: dict[SettingPath, JsonValue] = {("image_gen", "provider"): row.name}
    if model:
        wanted["image_gen", "model"] = model
    return wanted


def _row(providers: ImageProviders, provider: ImageGenProvider, used: str) -> ImageRow:
    schema = provider.get_setup_schema()
    given = schema.get("env_vars") or []
    return ImageRow(
        name=provider.name,
        label=str(schema.get("name") or provider.display_name),
        available=is_available(provider),
        used=provider.name == used,
        model=choose_model(provider, providers.studio),
        badge=str(schema.get("badge") or ""),
        tag=str(schema.get("tag") or ""),
        source=providers.source(provider.name),
        variables=tuple(_variable(providers, each) for each in given if each.get("key")),
        models=tuple(models_of(provider.list_models())),
    )


def _variable(providers: ImageProviders, row: JsonObject) -> ProviderVariable:
    key = str(row["key"])
    return ProviderVariable(
        key=key,
        prompt=str(row.get("prompt") or key),
        url=str(row.get("url") or ""),
        secret=bool(row.get("secret", True)),
        required=bool(row.get("required", True)),
        known=bool(providers.studio.variable(key)),
    )
