"""Who answers: what was asked for, else what is there, best first and said aloud."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.config.load import Config
from hermes.config.settings import ProviderSettings
from hermes.core.errors import ConfigError
from hermes.core.ports import Provider
from hermes.core.world import World
from hermes.providers.connect import ConnectSettings, connect
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import Http, Timeouts
from hermes.providers.probe import find_local, first_model
from hermes.providers.vendor import Vendor, shipped

if TYPE_CHECKING:
    from hermes.providers.embedded.engines import Engines
    from hermes.providers.embedded.provider import EmbeddedModel

OFFLINE = "offline"
OFFLINE_MODEL = "offline-assistant"
EMBEDDED = "embedded"
CUSTOM = "custom"
OFFLINE_WINDOW = 1_000_000
OFFLINE_LINE = (
    "No model is configured: the offline assistant answers plain requests; it is not a language "
    "model. For a real one: set OPENAI_API_KEY (and OPENAI_BASE_URL), start Ollama, or run "
    "`hermes model install smollm2`."
)


class Choice(Value):
    """A model and who serves it. `line` is what the person should know about the choice;
    `reduced` means a model too small for tools and long instructions."""

    model: str
    provider: str
    window: int
    line: str = ""
    reduced: bool = False


class Models:
    """Finds and connects models for one run. Contacts nobody before it is asked to choose, and
    then only if nothing is configured."""

    def __init__(self, config: Config, world: World) -> None:
        self._config = config
        self._settings = config.settings
        self._world = world
        network = config.settings.network
        self.http = Http(
            proxy=network.proxy or None,
            no_proxy=network.no_proxy,
            ca_file=network.ca_bundle or None,
        )
        self._found: dict[str, Endpoint] = {}
        self._engines: Engines | None = None

    async def close(self) -> None:
        if self._engines is not None:
            await self._engines.close()
        await self.http.aclose()

    def asked_for(self) -> bool:
        """A model or provider was named for this very run."""
        keys = ("model.default", "model.provider")
        return any(self._config.explain(key).source.kind == "flag" for key in keys)

    async def choose(self) -> Choice:
        model, provider = self._settings.model.default, self._settings.model.provider
        if provider == OFFLINE:
            return Choice(model=OFFLINE_MODEL, provider=OFFLINE, window=OFFLINE_WINDOW)
        if provider == EMBEDDED or model.endswith(".gguf"):
            return self._embedded(model or self._any_weights())
        provider = provider or self._configured()
        if provider:
            return await self._at(provider, model)
        if found := await find_local(self.http, shipped()):
            self._found[CUSTOM] = found.endpoint
            return _choice(found.endpoint, line=found.line)
        if (weights := self._any_weights()) and _runtime_installed():
            return self._embedded(weights)
        return Choice(
            model=OFFLINE_MODEL, provider=OFFLINE, window=OFFLINE_WINDOW, line=OFFLINE_LINE
        )

    def reachable(self, model: str, provider: str) -> bool:
        """Whether this model could be connected as things are, without trying."""
        if provider in (OFFLINE, EMBEDDED):
            return provider == OFFLINE or (Path(model).is_file() and _runtime_installed())
        try:
            self._endpoint(model, provider)
        except ConfigError:
            return False
        return True

    def connect(self, model: str, provider: str) -> tuple[Provider, int]:
        """A provider for one session, and the model's window in tokens."""
        if provider == OFFLINE:
            from hermes.providers.offline.provider import OfflineAssistant

            return OfflineAssistant(), OFFLINE_WINDOW
        if provider == EMBEDDED:
            embedded = self._embedded_model(Path(model))
            return embedded, embedded.window
        endpoint = self._endpoint(model, provider)
        settings = ConnectSettings(
            attempts=self._settings.agent.api_max_retries,
            mark_life=self._settings.prompt_caching.cache_ttl,
            timeouts=self._timeouts(endpoint),
        )
        provided = connect(endpoint, http=self.http, world=self._world, settings=settings)
        return provided, endpoint.profile.window

    def _embedded_model(self, path: Path) -> EmbeddedModel:
        """All sessions of this run share one engine per file."""
        from hermes.providers.embedded.engines import Engines
        from hermes.providers.embedded.provider import EmbeddedModel

        if self._engines is None:
            self._engines = Engines()
        return EmbeddedModel(
            path,
            http=self.http,
            world=self._world,
            threads=self._settings.local.threads,
            engines=self._engines,
            window=self._settings.model.context_length,
        )

    def _configured(self) -> str:
        """The provider that the settings or keys point at, "" when there is none."""
        secrets = self._config.secrets
        if self._settings.model.base_url or secrets.get("OPENAI_BASE_URL"):
            return CUSTOM
        for name, own in self._settings.providers.items():
            if own.enabled and own.base_url:
                return name
        for vendor in shipped().vendors.values():
            if vendor.url and any(secrets.get(key) for key in vendor.keys):
                return vendor.name
        return ""

    async def _at(self, provider: str, model: str) -> Choice:
        line = ""
        if not model:
            own, vendor = self._own(provider), self._vendor(provider)
            model = own.default_model or vendor.default_model
            if not model:
                model = await first_model(self.http, self._endpoint("", provider))
            line = f"Using {model} ({provider}); name another with -m or `hermes config set model`."
        return _choice(self._endpoint(model, provider), line=line)

    def _endpoint(self, model: str, provider: str) -> Endpoint:
        if provider in self._found and self._found[provider].model == model:
            return self._found[provider]
        own, vendor = self._own(provider), self._vendor(provider)
        key = self._key(provider, own, vendor)
        url = self._url(provider, own, vendor)
        endpoint = shipped().endpoint(
            vendor,
            model,
            key=key,
            url=url,
            api_mode=own.api_mode or self._settings.model.api_mode,
            name=provider,
            headers=own.extra_headers,
            overrides=self._overrides(own, model),
        )
        if not key and vendor.keys and not endpoint.is_local and provider != CUSTOM:
            raise ConfigError(
                f"{vendor.label or provider} needs a key; run "
                f"`hermes config set {vendor.keys[0]} …` or choose another provider."
            )
        return endpoint

    def _own(self, provider: str) -> ProviderSettings:
        return self._settings.providers.get(provider, ProviderSettings())

    def _vendor(self, provider: str) -> Vendor:
        found = shipped().vendor(provider)
        if found is None and provider not in self._settings.providers:
            known = ", ".join((*shipped().vendors, *self._settings.providers, EMBEDDED, OFFLINE))
            raise ConfigError(f"There is no provider {provider!r}; there are {known}.")
        return found or shipped().vendors[CUSTOM]

    def _key(self, provider: str, own: ProviderSettings, vendor: Vendor) -> str:
        secrets = self._config.secrets
        if own.api_key or own.key_env:
            return own.api_key or secrets.get(own.key_env)
        if self._is_default(provider) and self._settings.model.api_key:
            return self._settings.model.api_key
        return next((value for key in vendor.keys if (value := secrets.get(key))), "")

    def _url(self, provider: str, own: ProviderSettings, vendor: Vendor) -> str:
        if own.base_url:
            return own.base_url
        if self._is_default(provider) and self._settings.model.base_url:
            return self._settings.model.base_url
        return self._config.secrets.get(vendor.url_env) if vendor.url_env else ""

    def _is_default(self, provider: str) -> bool:
        return provider == (self._settings.model.provider or CUSTOM)

    def _overrides(self, own: ProviderSettings, model: str) -> dict[str, object]:
        found: dict[str, object] = {}
        known = own.models.get(model)
        window = (known and known.context_length) or self._settings.model.context_length
        if window:
            found["window"] = window
        if known and known.max_output_tokens:
            found["max_output"] = known.max_output_tokens
        if own.extra_body:
            found["extra"] = own.extra_body
        return found

    def _timeouts(self, endpoint: Endpoint) -> Timeouts:
        own, network = self._own(endpoint.name), self._settings.network
        whole = own.request_timeout_seconds or network.request_timeout_seconds
        if endpoint.is_local:
            stale = own.stale_timeout_seconds or self._settings.agent.local_stream_stale_timeout
            return Timeouts(read=stale, stale=stale, whole=whole)
        return Timeouts(
            read=network.stream_read_timeout_seconds,
            stale=own.stale_timeout_seconds or network.stream_stale_timeout_seconds,
            whole=whole,
        )

    def _any_weights(self) -> str:
        """The file or model that the settings name, else one that was installed, else ""."""
        installed = sorted(self._config.home.models.glob("*.gguf"))
        return self._settings.local.model or (str(installed[0]) if installed else "")

    def _embedded(self, model: str) -> Choice:
        from hermes.providers.embedded.weights import describe, find

        if not model:
            raise ConfigError(
                "No model is installed; run `hermes model install smollm2`, or name a file with -m."
            )
        known = describe(find(model, self._config.home.models))
        return Choice(
            model=str(known.path),
            provider=EMBEDDED,
            window=self._settings.model.context_length or known.window,
            line=known.line,
            reduced=known.small,
        )


def _choice(endpoint: Endpoint, line: str = "") -> Choice:
    return Choice(
        model=endpoint.model, provider=endpoint.name, window=endpoint.profile.window, line=line
    )


def _runtime_installed() -> bool:
    return find_spec("xllamacpp") is not None
