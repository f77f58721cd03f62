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
from hermes.plugins.inside.providers import KINDS, describe_provider

IMAGE_METHODS = frozenset(("generate", "is_available"))


class Runtime:
    """`birth` is the host's start message: `place`, `module`, `attribute`, `manifest`, `config`,
    `data_dir`, `secrets`, `profile`."""

    def __init__(self, birth: Mapping[str, Any], ask: Ask) -> None:
        self._birth = birth
        self._loop = PluginLoop()
        self._module: Any = None
        self.context = Context(
            birth["manifest"],
            config=birth["config"],
            data_dir=Path(birth["data_dir"]),
            secrets=birth["secrets"],
            ask=ask,
            profile_name=birth["profile"],
        )

    def load(self) -> dict[str, Any]:
        """Imports the plugin and returns its registrations."""
        birth = self._birth
        name = str(birth["manifest"]["name"])
        register, self._module = load_plugin(
            birth["place"], birth["module"], birth["attribute"], name
        )
        call_function(self._loop, register, self.context)
        return self.surface()

    def surface(self) -> dict[str, Any]:
        own = self.context.registered
        return {
            "tools": [self._tool(name, each) for name, each in own.tools.items()],
            "hooks": [_without(each, "callback") for each in own.hooks],
            "commands": [{"name": n, **_without(e, "handler")} for n, e in own.commands.items()],
            "cli": [{"name": name, "help": each["help"]} for name, each in own.cli.items()],
            "skills": [{"name": name, **each} for name, each in own.skills.items()],
            "images": [self._image(each) for each in own.images.values()],
            "engines": list(own.engines),
            "services": [self._service(kind, each) for (kind, _), each in own.services.items()],
            "platforms": [self._platform(name, each) for name, each in own.platforms.items()],
        }

    def call(self, kind: str, name: str, given: Any, about: Mapping[str, Any]) -> Any:
        """Answers one call; passes on the plugin's exceptions."""
        own = self.context.registered
        match kind:
            case "tool":
                return call_function(self._loop, own.tools[name]["handler"], given, **about)
            case "hook":
                return call_function(self._loop, own.hooks[int(name)]["callback"], **given)
            case "command":
                return call_function(self._loop, own.commands[name]["handler"], given)
            case "cli":
                return self._cli(name, given)
            case "image":
                return self._on_image(name, given)
            case "service":
                return self._on_service(name, given, about)
            case _:
                raise Refused(f"There is no call kind {kind!r}.")

    def close(self) -> None:
        unregister = getattr(self._module, "unregister", None)
        if callable(unregister):
            call_function(self._loop, unregister)
        self._loop.close()

    def _tool(self, name: str, each: Mapping[str, Any]) -> dict[str, Any]:
        fields = _without(each, "handler", "check")
        return {"name": name, "available": self._is_available(each["check"]), **fields}

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

    def _on_image(self, name: str, given: Mapping[str, Any]) -> Any:
        provider, _, method = name.rpartition(":")
        if method not in IMAGE_METHODS:
            raise Refused(f"Image providers have no method {method!r}.")
        own = getattr(self.context.registered.images[provider], method)
        return own(*given.get("positional", ()), **given.get("named", {}))

    def _service(self, kind: str, provider: Any) -> dict[str, Any]:
        return describe_provider(kind, provider, self._is_available)

    def _platform(self, name: str, each: Mapping[str, Any]) -> dict[str, Any]:
        fields = _without(each, "factory", "check", "validate", "setup")
        return {"name": name, "available": self._is_available(each["check"]), **fields}

    def _on_service(self, name: str, given: Mapping[str, Any], about: Mapping[str, Any]) -> Any:
        kind, provider, method = name.split(":", 2)
        if method not in KINDS[kind].methods:
            raise Refused(f"A {KINDS[kind].label} has no method {method!r}.")
        own = getattr(self.context.registered.services[kind, provider], method)
        named = {**about, **given.get("named", {})}
        return call_function(self._loop, own, *given.get("positional", ()), **named)

    def _is_available(self, check: Callable[[], Any] | None) -> bool:
        """A check that fails is logged and counts as unavailable."""
        if check is None:
            return True
        try:
            return bool(call_function(self._loop, check))
        except Exception:
            self.context.logger.warning("the availability check failed", exc_info=True)
            return False

    def _cli(self, name: str, words: list[str]) -> dict[str, Any]:
        """Captures the output, because the plugin has no terminal."""
        import argparse

        own = self.context.registered.cli[name]
        out = io.StringIO()
        parser = argparse.ArgumentParser(prog=f"hermes {name}", description=own["help"])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                if own["setup"] is not None:
                    own["setup"](parser)
                code = call_function(self._loop, own["handler"], parser.parse_args(words))
            except SystemExit as leaving:
                code = leaving.code
        return {"code": code if isinstance(code, int) else 0, "output": out.getvalue()}


def _without(each: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in each.items() if name not in names}


def _call_or_default(provider: Any, method: str, otherwise: Any) -> Any:
    function = getattr(provider, method, None)
    return function() if callable(function) else otherwise
