"""Models that run in this process: a GGUF file, and the offline assistant."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.load import Config
from hermes.core.errors import ConfigError
from hermes.core.ports import Provider
from hermes.core.world import World
from hermes.models.model_ref import (
    EMBEDDED,
    OFFLINE,
    OFFLINE_ALIASES,
    OFFLINE_MODEL,
    OFFLINE_WINDOW,
    ModelChoice,
)
from hermes.net.http import HttpClient

if TYPE_CHECKING:
    from hermes.providers.embedded.engines import EnginePool
    from hermes.providers.embedded.provider import EmbeddedModel


class InProcessModels:
    """All sessions of a run share one engine per file."""

    def __init__(self, config: Config, world: World, http: HttpClient) -> None:
        self._config = config
        self._world = world
        self._http = http
        self._engines: EnginePool | None = None

    async def close(self) -> None:
        if self._engines is not None:
            await self._engines.close()

    def has(self, model: str, provider: str) -> bool:
        return provider == OFFLINE or (Path(model).is_file() and _runtime_installed())

    def provider(self, model: str, provider: str) -> Provider:
        if provider == OFFLINE:
            from hermes.providers.offline.provider import OfflineAssistant

            return OfflineAssistant()
        return self._embedded_model(model)

    def window(self, model: str, provider: str) -> int:
        return OFFLINE_WINDOW if provider == OFFLINE else self._embedded_model(model).window

    def default_choice(self) -> ModelChoice | None:
        """Return the file named in the settings or the first installed one that is large enough,
        if the runtime is installed."""
        model = self._default_weights()
        return self.choice(model, EMBEDDED) if model and _runtime_installed() else None

    def is_installed(self, model: str) -> bool:
        """Return whether a file in the home has this name."""
        return bool(model) and (self._config.home.models / f"{model}.gguf").is_file()

    def choice(self, model: str, provider: str) -> ModelChoice:
        """Choose a model by name or path, or the default one. Raise ConfigError when it cannot be
        used."""
        if provider == OFFLINE:
            if model not in ("", OFFLINE_MODEL, *OFFLINE_ALIASES):
                raise ConfigError(
                    f"The offline assistant has no model {model!r}; name another provider with "
                    "--provider, or leave out the model."
                )
            return ModelChoice(model=OFFLINE_MODEL, provider=OFFLINE, window=OFFLINE_WINDOW)
        from hermes.providers.embedded.model_file import describe_model_file, find_model_file

        model = model or self._default_weights()
        if not model:
            raise ConfigError(
                "No model file is chosen; name one with -m FILE, or run `hermes setup`, which "
                "finds the files on this machine."
            )
        file = describe_model_file(find_model_file(model, self._config.home.models))
        return ModelChoice(
            model=str(file.path),
            provider=EMBEDDED,
            window=self._config.settings.model.context_length or file.window,
            line=file.summary,
            reduced=file.small,
        )

    def _embedded_model(self, model: str) -> EmbeddedModel:
        from hermes.providers.embedded.engines import EnginePool
        from hermes.providers.embedded.provider import EmbeddedModel

        if self._engines is None:
            self._engines = EnginePool()
        return EmbeddedModel(
            Path(model),
            http=self._http,
            world=self._world,
            threads=self._config.settings.local.threads,
            engines=self._engines,
            window=self._config.settings.model.context_length,
        )

    def _default_weights(self) -> str:
        """Return the chosen file, else the first installed one that is large enough for tools."""
        if chosen := self._config.settings.local.model:
            return chosen
        from hermes.providers.embedded.model_file import describe_model_file

        for path in sorted(self._config.home.models.glob("*.gguf")):
            with suppress(ConfigError):
                if not describe_model_file(path).small:
                    return str(path)
        return ""


def _runtime_installed() -> bool:
    return find_spec("xllamacpp") is not None
