"""The `ctx` object of a plugin and the import of its code. Standard library only."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from hermes.plugins.inside.calling import accepted_arguments
from hermes.plugins.inside.legacy_imports import LegacyImports, PluginFinder, PluginLoader
from hermes.plugins.inside.providers import EngineFactory, provider_fault

Ask = Callable[[str, dict[str, Any]], Any]


class Refused(Exception):
    """The host denied a request, or a registration is invalid."""


class HostModel:
    """The host's model, for plugins with the grant `llm`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        request = {"prompt": prompt, "system": system, "max_tokens": max_tokens}
        return str(self._ask("llm.complete", request))

    def complete_structured(
        self, schema: dict[str, Any], prompt: str, *, system: str = "", max_tokens: int = 1024
    ) -> Any:
        """Return the model's JSON answer for the schema; raise Refused when it is not JSON."""
        import json

        instruction = f"Answer only with one JSON value that matches this schema:\n{schema}"
        reply = self.complete(
            prompt, system=f"{system}\n{instruction}".strip(), max_tokens=max_tokens
        )
        text = reply.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
        try:
            return json.loads(text)
        except ValueError as error:
            raise Refused("The model did not answer with JSON.") from error


class Registrations:
    """All registrations of a plugin."""

    def __init__(self) -> None:
        self.tools: dict[str, dict[str, Any]] = {}
        self.hooks: list[dict[str, Any]] = []
        self.commands: dict[str, dict[str, Any]] = {}
        self.cli: dict[str, dict[str, Any]] = {}
        self.skills: dict[str, dict[str, Any]] = {}
        self.images: dict[str, Any] = {}
        self.engines: dict[str, EngineFactory] = {}
        self.services: dict[tuple[str, str], Any] = {}
        self.platforms: dict[str, dict[str, Any]] = {}


class Context:
    """The `ctx` of `register(ctx)`."""

    def __init__(
        self,
        manifest: Mapping[str, Any],
        *,
        config: Mapping[str, Any],
        data_dir: Path,
        secrets: Mapping[str, str],
        ask: Ask,
        profile_name: str = "default",
    ) -> None:
        self.manifest = dict(manifest)
        self.config = dict(config)
        self.data_dir = data_dir
        self.profile_name = profile_name
        self.logger = logging.getLogger(f"hermes.plugin.{manifest['name']}")
        self.llm = HostModel(ask)
        self.registered = Registrations()
        self._secrets = dict(secrets)
        self._ask = ask

    def register_tool(
        self,
        name: str,
        toolset: str,
        schema: dict[str, Any],
        handler: Callable[..., Any],
        check_fn: Callable[[], bool] | None = None,
        requires_env: list[str] | None = None,
        is_async: bool = False,
        emoji: str = "",
        override: bool = False,
    ) -> None:
        """Register a tool. `handler(args, **ctx)` returns text or a JSON value. `is_async` is
        optional: awaitable results are awaited."""
        about = {
            "toolset": toolset,
            "schema": schema,
            "handler": handler,
            "check": check_fn,
            "requires_env": list(requires_env or ()),
            "emoji": emoji,
            "override": override,
        }
        _add(self.registered.tools, name, about, "tool")

    def register_hook(
        self,
        hook: str,
        callback: Callable[..., Any],
        priority: int = 100,
        timeout: float | None = None,
        fail_closed: bool = False,
    ) -> None:
        """Register a callback for an event. `callback(**payload)` must accept unknown keys."""
        about = {"priority": priority, "timeout": timeout, "fail_closed": fail_closed}
        self.registered.hooks.append({"hook": hook, "callback": callback, **about})

    def register_command(
        self, name: str, handler: Callable[..., Any], description: str = "", args_hint: str = ""
    ) -> None:
        """Register a slash command: `handler(raw_args)` returns text to show, or None."""
        name = name.removeprefix("/")
        about = {"handler": handler, "description": description, "args_hint": args_hint}
        _add(self.registered.commands, name, about, "command")

    def register_cli_command(
        self,
        name: str,
        help: str,
        setup_fn: Callable[[Any], None] | None,
        handler_fn: Callable[[Any], Any],
    ) -> None:
        """Register `hermes NAME`: `setup_fn(parser)` adds argparse arguments; output of
        `handler_fn(args)` is shown and its result is the exit code."""
        about = {"help": help, "setup": setup_fn, "handler": handler_fn}
        _add(self.registered.cli, name, about, "command of `hermes`")

    def register_skill(self, name: str, path: str | Path, description: str = "") -> None:
        """Register a folder with a SKILL.md inside the plugin."""
        about = {"path": str(path), "description": description}
        _add(self.registered.skills, name, about, "skill")

    def register_image_gen_provider(self, provider: Any) -> None:
        name = getattr(provider, "name", None)
        if not isinstance(name, str) or not callable(getattr(provider, "generate", None)):
            raise Refused("An image provider needs a `name` and a method `generate`.")
        _add(self.registered.images, name, provider, "image provider")

    def register_context_engine(self, engine: Any) -> None:
        """Register an engine for `context.engine: NAME`; in-process plugins only. A class is
        instantiated per session, an object is copied."""
        engines = EngineFactory(engine, self.logger)
        name = engines.name
        if not isinstance(name, str) or not callable(getattr(engines.sample, "compress", None)):
            raise Refused("A context engine needs a `name` and a method `compress`.")
        _add(self.registered.engines, name, engines, "context engine")
        self._register_provider_tools(engines.sample, engines.of)

    def register_memory_provider(self, provider: Any) -> None:
        """Register a provider for `memory.provider: NAME`."""
        self._register_service("memory", provider)
        self._register_provider_tools(provider, lambda _session_id: provider)

    def register_web_search_provider(self, provider: Any) -> None:
        """Register `search(query, limit)`, `extract(urls)`, or both."""
        self._register_service("web", provider)

    def register_tts_provider(self, provider: Any) -> None:
        """Register a text-to-speech provider. `synthesize(text, output_path, …)` writes an audio
        file."""
        self._register_service("tts", provider)

    def register_stt_provider(self, provider: Any) -> None:
        """Register a speech-to-text provider. `transcribe(path, …)` returns the text of an audio
        file."""
        self._register_service("stt", provider)

    def register_browser_provider(self, provider: Any) -> None:
        """Register a browser provider. `create_session(task_id)` opens a remote browser,
        `close_session(id)` closes it."""
        self._register_service("browser", provider)

    def register_platform(
        self,
        name: str,
        label: str,
        adapter_factory: Callable[..., Any],
        check_fn: Callable[[], bool] | None = None,
        validate_config: Callable[..., Any] | None = None,
        required_env: Sequence[str] = (),
        install_hint: str = "",
        setup_fn: Callable[..., Any] | None = None,
        allowed_users_env: str = "",
        allow_all_env: str = "",
        max_message_length: int = 0,
        emoji: str = "",
        platform_hint: str = "",
    ) -> None:
        """Register a chat platform; in-process plugins only. A gateway creates the adapter with
        `adapter_factory(config)` and runs it."""
        if not callable(adapter_factory):
            raise Refused("A platform needs a function that creates its adapter.")
        about = {
            "label": label,
            "factory": adapter_factory,
            "check": check_fn,
            "validate": validate_config,
            "setup": setup_fn,
            "required_env": list(required_env),
            "install_hint": install_hint,
            "allowed_users_env": allowed_users_env,
            "allow_all_env": allow_all_env,
            "max_message_length": max_message_length,
            "emoji": emoji,
            "platform_hint": platform_hint,
        }
        _add(self.registered.platforms, name, about, "platform")

    def _register_service(self, kind: str, provider: Any) -> None:
        if fault := provider_fault(kind, provider):
            raise Refused(fault)
        key = (kind, provider.name)
        if key in self.registered.services:
            raise Refused(f"The provider {provider.name!r} is registered twice.")
        self.registered.services[key] = provider

    def _register_provider_tools(self, sample: Any, of: Callable[[str], Any]) -> None:
        """Register the tools of `get_tool_schemas`, if the provider has `handle_tool_call`. Calls
        go to the provider of the session."""
        schemas = getattr(sample, "get_tool_schemas", None)
        if not callable(schemas) or not callable(getattr(sample, "handle_tool_call", None)):
            return
        for each in schemas() or ():
            # The OpenAI form has the schema in `function`.
            inner = each.get("function")
            schema = dict(inner if isinstance(inner, Mapping) else each)
            name = str(schema.get("name", ""))
            self.register_tool(name, "plugins", schema, _provider_tool(of, name))

    def dispatch_tool(self, name: str, args: dict[str, Any]) -> str:
        """Run a tool listed in `uses_tools` during a call of this plugin. It blocks; async code
        should use a thread."""
        return str(self._ask("dispatch_tool", {"name": name, "arguments": args}))

    def inject_message(
        self, content: str, role: str = "user", session_key: str | None = None
    ) -> bool:
        """Queue a message for the session; return whether that was possible."""
        request = {"content": content, "role": role, "session_key": session_key}
        return bool(self._ask("inject_message", request))

    def get_secret(self, name: str) -> str | None:
        """Return a variable listed in `requires_env`."""
        wanted = {str(each.get("name")) for each in self.manifest.get("requires_env", ())}
        if name not in wanted:
            raise Refused(f"{name} is not in `requires_env` of the manifest.")
        return self._secrets.get(name)


def _provider_tool(of: Callable[[str], Any], name: str) -> Callable[..., Any]:
    """Return a handler that forwards to the session's provider."""

    def answer(args: dict[str, Any], **about: Any) -> Any:
        handle = of(str(about.get("session_id", ""))).handle_tool_call
        return handle(name, args, **accepted_arguments(handle, about, 2))

    return answer


def _add(known: dict[str, Any], name: str, about: Any, what: str) -> None:
    if not str(name):
        raise Refused(f"A {what} needs a name.")
    if name in known:
        raise Refused(f"The {what} {name!r} is registered twice.")
    known[name] = about


Register = Callable[[Context], Any]


def load_plugin(
    path: str, module: str, attribute: str, name: str, *, legacy: LegacyImports
) -> tuple[Register, ModuleType]:
    """Import the plugin. `path` is a folder or file or, with `module`, an import path. `attribute`
    names the function if not `register`."""
    if module:
        if path not in sys.path:
            sys.path.insert(0, path)
        PluginFinder(module.partition(".")[0], legacy).install()
        loaded = importlib.import_module(module)
    else:
        loaded = _by_path(Path(path), name, legacy)
    wanted = attribute or "register"
    if callable(register := getattr(loaded, wanted, None)):
        return register, loaded
    if attribute:
        raise Refused(f"{module} has no {attribute}.")
    return _from_class(loaded), loaded


def _by_path(path: Path, name: str, legacy: LegacyImports) -> ModuleType:
    """Import under a unique name; a folder is a package."""
    own = f"hermes_plugin_{name.replace('-', '_').replace('/', '_')}"
    file, inner = (path / "__init__.py", [str(path)]) if path.is_dir() else (path, None)
    if not file.is_file():
        raise Refused(f"The plugin has no {file.name}.")
    PluginFinder(own, legacy).install()
    loader = PluginLoader(own, str(file), legacy)
    spec = importlib.util.spec_from_file_location(
        own, file, loader=loader, submodule_search_locations=inner
    )
    if spec is None or spec.loader is None:
        raise Refused(f"{file.name} cannot be loaded.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(own, None)
        raise
    return module


def _from_class(module: ModuleType) -> Register:
    """Turn the one subclass of `Plugin` into a tool."""
    kinds = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and each.__module__ == module.__name__
        and any(parent.__name__ == "Plugin" for parent in each.__mro__[1:])
    ]
    if len(kinds) != 1:
        raise Refused("The plugin needs `register(ctx)` or exactly one class derived from Plugin.")
    plugin: Any = kinds[0]()

    def register(ctx: Context) -> None:
        schema = {"description": plugin.description, "parameters": plugin.get_schema()}
        # Replaces a built-in tool of the same name only if the user allows it.
        ctx.register_tool(plugin.name, "plugins", schema, plugin.execute, override=True)

    return register
