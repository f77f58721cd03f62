"""The next steps after a model call that failed for good: which key, where to pay, what instead."""

from __future__ import annotations

from collections.abc import Callable

from hermes.core.errors import ProviderError
from hermes.models.near import near_names
from hermes.models.places import ProviderEntry
from hermes.models.resolver import Resolver
from hermes.providers.endpoint import Endpoint

SPARE = "name a spare model with `hermes fallback add NAME`"
CERTIFICATES = "`hermes config set network.ca_bundle FILE`"
TOOLS = (
    "Check that it was started for tools (vLLM: --enable-auto-tool-choice --tool-call-parser …; "
    "llama.cpp: --jinja), or try another model with /model."
)


class ErrorAdviser:
    """For one endpoint. `key` tells the variable or file that its key came from, "" if unknown; it
    is asked when advice is needed, which is seldom."""

    def __init__(
        self, resolver: Resolver, place: ProviderEntry, endpoint: Endpoint, key: Callable[[], str]
    ) -> None:
        self._resolver = resolver
        self._place = place
        self._endpoint = endpoint
        self._key = key

    def __call__(self, error: ProviderError) -> str:
        """The two most useful steps; "" where there is nothing better to say than usual."""
        match error.reason:
            case "auth" | "auth_permanent":
                return f"{self._key_step()}, or {SPARE}."
            case "billing":
                where = f" at {self._place.vendor.signup}" if self._place.vendor.signup else ""
                return f"Add credits{where}, or {SPARE}."
            case "rate_limit" | "upstream_rate_limit":
                return f"{_wait(error.retry_after)}, or {SPARE}."
            case "model_not_found":
                return self._model_step()
            case "timeout" if self._endpoint.is_local:
                port = self._endpoint.url.partition("://")[2].partition("/")[0]
                return f"Check that the server at {port} runs, or choose another model with /model."
            case "timeout":
                proxy = "`hermes config explain network.proxy`"
                return f"Check the network and the proxy ({proxy}), or {SPARE}."
            case "ssl_cert_verification":
                return f"Name the certificates of your network: {CERTIFICATES}."
            case "format_error" if self._endpoint.is_local:
                return TOOLS
            case _:
                return ""

    def _key_step(self) -> str:
        if key := self._key():
            return f"Correct {key} (`hermes config set {key} …`)"
        vendor = self._place.vendor
        if vendor.login != "api_key" or not vendor.keys:
            return f"Log in again with `hermes auth add {self._place.name}`"
        if self._endpoint.key:
            return f"Correct the key of {self._place.name} in config.yaml"
        return f"Give {self._place.name} a key (providers.{self._place.name}.key_env)"

    def _model_step(self) -> str:
        near = near_names(self._endpoint.model, tuple(self._resolver.known_models(self._place)))
        near = tuple(name for name in near if name != self._endpoint.model)
        if near:
            return f"Near: {', '.join(near)}; choose one with /model or `hermes model set`."
        return (
            f"`hermes model list {self._place.name}` shows what it has; "
            "choose one with /model or `hermes model set`."
        )


def _wait(seconds: float | None) -> str:
    if seconds is None:
        return "Wait a little"
    if seconds >= 120:
        return f"Wait {seconds / 60:.0f} minutes"
    return f"Wait {seconds:.0f} s"
