"""What a tape tells of the program that made it: settings, places, the way to each model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from hermes.codec.json import convert, plain
from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.config.load import Config
from hermes.config.schema import find_setting
from hermes.config.settings import Settings
from hermes.context.prefill import prefill_file
from hermes.core.errors import HermesError
from hermes.models.choice import IN_PROCESS, ModelRef
from hermes.models.models import Models, ref_of
from hermes.providers.catalogue import shipped_catalogue
from hermes.providers.endpoint import Endpoint
from hermes.providers.recorded.frames import TapeModel, TapeRun
from hermes.providers.recorded.masks import SecretMask
from hermes.version import __version__

# Stands for a key that was there; it can be sent nowhere.
ANY_KEY = "key-of-the-recording"


class RunFacts(Value):
    """`home` and `state` are the folders of the person and of Hermes, `root` that of the session,
    and `cwd` is where its shell was. `variables` are those that lead to providers, without the
    keys in them; `prefill` is the text of the file that requests began with."""

    settings: JsonObject
    home: str
    state: str
    attended: bool
    root: str = ""
    cwd: str = ""
    variables: dict[str, str] = {}
    prefill: str = ""


class KnownEndpoint(Value):
    """Where a wish for a model led."""

    provider: str
    model: str
    endpoint: Endpoint
    base_url: str = ""
    tier: str | None = None


class EndpointFacts(Value):
    known: tuple[KnownEndpoint, ...] = ()


def run_of(
    config: Config,
    *,
    mask: SecretMask,
    after: int,
    at: float,
    attended: bool,
    root: str,
    cwd: str,
) -> TapeRun:
    facts = RunFacts(
        settings=_without_secrets(plain(config.settings), ()),
        home=str(Path.home()),
        state=str(config.home.root.resolve()),
        attended=attended,
        root=root,
        cwd=cwd,
        variables=_variables(config),
        prefill=_prefill(config),
    )
    return TapeRun(version=__version__, after=after, at=at, facts=mask.json(plain(facts)))


def _prefill(config: Config) -> str:
    file = prefill_file(config.settings, config.home)
    try:
        return file.read_text("utf-8") if file is not None else ""
    except (OSError, ValueError):
        return ""


def endpoint_facts(
    models: Models,
    settings: Settings,
    mask: SecretMask,
    model: str,
    provider: str,
    tier: str | None = None,
) -> TapeModel:
    """Where this model and those to fall back to are asked, as far as they can be reached."""
    first = ModelRef(provider=provider, model=model, tier=tier)
    found = [_endpoint(lambda: models.endpoint(model, provider, tier=tier), first)]
    for entry in settings.fallback_providers:
        wish = ref_of(entry, tier=tier)
        found.append(_endpoint(partial(models.resolver.endpoint, wish), wish))
    facts = EndpointFacts(known=tuple(known for known in found if known is not None))
    return TapeModel(model=model, provider=provider, facts=mask.json(plain(facts)))


def _endpoint(find: Callable[[], Endpoint], wish: ModelRef) -> KnownEndpoint | None:
    if wish.provider in IN_PROCESS:
        return None
    try:
        found = find()
    except HermesError:
        return None
    bare = replace(found, key="", headers={}, url=_bare(found.url))
    return KnownEndpoint(
        provider=wish.provider,
        model=wish.model,
        base_url=_bare(wish.base_url),
        tier=wish.tier,
        endpoint=bare,
    )


def facts_in(run: TapeRun) -> RunFacts:
    return convert(RunFacts, run.facts)


def known_in(ways: tuple[TapeModel, ...]) -> Iterator[KnownEndpoint]:
    for way in ways:
        yield from convert(EndpointFacts, way.facts).known


def _without_secrets(value: JsonValue, path: tuple[str, ...]) -> Any:
    """Settings that hold a secret are left out; what else they say stays."""
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        here = (*path, key)
        setting = find_setting(Settings, here)
        if setting is None or not setting.secret:
            kept[key] = _without_secrets(item, here)
    return kept


def _variables(config: Config) -> dict[str, str]:
    """Which keys were there, each as another word, and the addresses that belong to them."""
    found = {
        name: f"{ANY_KEY}-{number}" for number, name in enumerate(config.secrets.names(), start=1)
    }
    for vendor in shipped_catalogue().vendors.values():
        if vendor.url_env and (url := config.secrets.get(vendor.url_env)):
            found[vendor.url_env] = _bare(url)
    return found


def _bare(url: str) -> str:
    """Without a name and a password before the host, or a query behind the path."""
    head, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{head}{separator}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
