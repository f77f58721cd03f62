"""Import names of older plugins: `agent.image_gen_provider`, `agent.image_gen_registry` and
`plugins`. Only the code of a plugin sees them. Standard library only."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

PROVIDER = "agent.image_gen_provider"
REGISTRY = "agent.image_gen_registry"
NAMES = ("agent", PROVIDER, REGISTRY, "plugins")


class LegacyImports:
    """The older modules for one plugin; `add_image_provider` registers an image provider."""

    def __init__(
        self, add_image_provider: Callable[[Any], None], image_providers: dict[str, Any]
    ) -> None:
        self._add = add_image_provider
        self._providers = image_providers
        self._modules: dict[str, ModuleType] = {}

    def builtins(self) -> dict[str, Any]:
        """The builtins of the plugin's modules, whose `import` knows these names."""
        return {**vars(builtins), "__import__": self.import_module}

    def import_module(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Like `__import__`."""
        if level or name not in NAMES:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        for inner in fromlist or ():
            if f"{name}.{inner}" in NAMES:
                self._module(f"{name}.{inner}")
        found, top = self._module(name), name.partition(".")[0]
        return found if fromlist else self._module(top)

    def _module(self, name: str) -> ModuleType:
        if name not in self._modules:
            module = self._modules[name] = ModuleType(name)
            vars(module).update(self._names(name))
            parent, _, own = name.rpartition(".")
            if parent:
                setattr(self._module(parent), own, module)
        return self._modules[name]

    def _names(self, name: str) -> dict[str, Any]:
        if name == PROVIDER:
            return _public(importlib.import_module("hermes.images.provider"))
        if name == "plugins":
            return {"Plugin": importlib.import_module("hermes.plugins.api").Plugin}
        if name == REGISTRY:
            return {
                "register_provider": self._add,
                "get_provider": self._providers.get,
                "list_providers": self._list,
                "get_active_provider": lambda: next(iter(self._list()), None),
            }
        return {"__path__": []}

    def _list(self) -> list[Any]:
        return [self._providers[name] for name in sorted(self._providers)]


def _public(module: ModuleType) -> dict[str, Any]:
    return {name: each for name, each in vars(module).items() if not name.startswith("_")}


class PluginLoader(SourceFileLoader):
    """Loads a module of a plugin with its own `import`."""

    def __init__(self, name: str, path: str, legacy: LegacyImports) -> None:
        super().__init__(name, path)
        self._legacy = legacy

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._legacy.builtins()
        super().exec_module(module)


class PluginFinder:
    """Finds the modules of one plugin: the package `top` and those in it."""

    def __init__(self, top: str, legacy: LegacyImports) -> None:
        self._top = top
        self._legacy = legacy

    def install(self) -> None:
        """Replace the finder of an earlier load."""
        _remove(lambda finder: finder._top == self._top)
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._top and not name.startswith(f"{self._top}."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = PluginLoader(spec.loader.name, spec.loader.path, self._legacy)
        return spec


def remove_finders(legacy: LegacyImports) -> None:
    """Remove the finder of a plugin that was stopped."""
    _remove(lambda finder: finder._legacy is legacy)


def _remove(is_old: Callable[[PluginFinder], bool]) -> None:
    sys.meta_path[:] = [
        each for each in sys.meta_path if not (isinstance(each, PluginFinder) and is_old(each))
    ]
