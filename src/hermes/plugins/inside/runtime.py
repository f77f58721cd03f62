"""The plugin side of the protocol: loads the plugin, describes it and answers calls; the same in
both isolation modes. Standard library only."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.plugins.inside.calling import PluginLoop, call_function
from hermes.plugins.inside.context import Ask, Context, Refused, load_plugin
from hermes.plugins.inside.legacy_imports import LegacyImports, remove_finders
from hermes.plugins.inside.providers import KINDS, describe_provider
from hermes.plugins.inside.studio import use_host_studio

IMAGE_METHODS = frozenset(("generate", "is_available"))


class Runtime:
    """Loads one plugin and runs its functions. `start_message` comes from the host: `place`,
    `module`, `attribute`, `manifest`, `config`, `data_dir`, `secrets`, `profile`."""

    def __init__(self, start_message: Mapping[str, Any], ask: Ask) -> None:
        self._start_message = start_message
        self._loop = PluginLoop()
        self._ask = ask
        self._module: Any = None
        self.context = Context(
            start_message["manifest"],
            config=start_message["config"],
            data_dir=Path(start_message["data_dir"]),
            secrets=start_message["secrets"],
            ask=ask,
            profile_name=start_message["profile"],
        )

        self._legacy = LegacyImports(
            self.context.register_image_gen_provider, self.context.registered.images
        )

    def load(self) -> dict[str, Any]:
        """Import the plugin and return its registrations."""
        start_message = self._start_message
        name = str(start_message["manifest"]["name"])
        register, self._module = load_plugin(
            start_message["place"],
            start_message["module"],
            start_message["attribute"],
            name,
            legacy=self._legacy,
        )
        call_function(self._loop, register, self.context)
        return self.surface()

    def surface(self) -> dict[str, Any]:
        own = self.context.registered
        return {
            "tools": self._describe_all(own.tools, "handler"),
            "hooks": [_without(each, "callback") for each in own.hooks],
            "commands": [{"name": n, **_without(e, "handler")} for n, e in own.commands.items()],
            "cli": [{"name": name, "help": each["help"]} for name, each in own.cli.items()],
            "skills": [{"name": name, **each} for name, each in own.skills.items()],
            "images": [self._image(each) for each in own.images.values()],
            "engines": list(own.engines),
            "services": [
                describe_provider(kind, each, self._is_available)
                for (kind, _), each in own.services.items()
            ],
            "platforms": self._describe_all(own.platforms, "factory", "validate", "setup"),
        }

    def call(self, kind: str, name: str, payload: Any, about: Mapping[str, Any]) -> Any:
        """Answer one call; pass on the plugin's exceptions."""
        own = self.context.registered
        match kind:
            case "tool":
                return call_function(self._loop, own.tools[name]["handler"], payload, **about)
            case "hook":
                return call_function(self._loop, own.hooks[int(name)]["callback"], **payload)
            case "command":
                return call_function(self._loop, own.commands[name]["handler"], payload)
            case "cli":
                return self._cli(name, payload)
            case "image":
                provider, _, method = name.rpartition(":")
                if method not in IMAGE_METHODS:
                    raise Refused(f"Image providers have no method {method!r}.")
                function = getattr(own.images[provider], method)
                with use_host_studio(self._ask):
                    return function(*payload.get("positional", ()), **payload.get("named", {}))
            case "service":
                service, provider, method = name.split(":", 2)
                if method not in KINDS[service].methods:
                    raise Refused(f"A {KINDS[service].label} has no method {method!r}.")
                function = getattr(own.services[service, provider], method)
                named = {**about, **payload.get("named", {})}
                return call_function(self._loop, function, *payload.get("positional", ()), **named)
            case _:
                raise Refused(f"There is no call kind {kind!r}.")

    def close(self) -> None:
        unregister = getattr(self._module, "unregister", None)
        if callable(unregister):
            call_function(self._loop, unregister)
        remove_finders(self._legacy)
        self._loop.close()

    def _describe_all(
        self, registered: Mapping[str, Mapping[str, Any]], *functions: str
    ) -> list[dict[str, Any]]:
        """Describe tools or platforms; the functions stay here."""
        return [
            {
                "name": name,
                "available": self._is_available(each["check"]),
                **_without(each, "check", *functions),
            }
            for name, each in registered.items()
        ]

    def _image(self, provider: Any) -> dict[str, Any]:
        return {
            "name": provider.name,
            "display_name": str(getattr(provider, "display_name", "") or provider.name.title()),
            "available": self._is_available(getattr(provider, "is_available", None)),
            "models": _call_or_default(provider, "list_models", []),
            "default_model": _call_or_default(provider, "default_model", None),
            "setup": _call_or_default(provider, "get_setup_schema", {}),
            "capabilities": _call_or_default(provider, "capabilities", {}),
        }

    def _is_available(self, check: Callable[[], Any] | None) -> bool:
        """Run the check of a tool. A check that fails is logged and counts as unavailable."""
        if check is None:
            return True
        try:
            return bool(call_function(self._loop, check))
        except Exception:
            self.context.logger.warning("the availability check failed", exc_info=True)
            return False

    def _cli(self, name: str, argv: list[str]) -> dict[str, Any]:
        """Run a command and capture the output, because the plugin has no terminal."""
        import argparse

        own = self.context.registered.cli[name]
        out = io.StringIO()
        parser = argparse.ArgumentParser(prog=f"hermes {name}", description=own["help"])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                if own["setup"] is not None:
                    own["setup"](parser)
                code = call_function(self._loop, own["handler"], parser.parse_args(argv))
            except SystemExit as leaving:
                code = leaving.code
        return {"code": code if isinstance(code, int) else 0, "output": out.getvalue()}


def _without(each: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in each.items() if name not in names}


def _call_or_default(provider: Any, method: str, otherwise: Any) -> Any:
    function = getattr(provider, method, None)
    return function() if callable(function) else otherwise
