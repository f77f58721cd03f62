"""Loads the code of a plugin and finds its `register`. Standard library only."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from hermes.plugins.inside.context import Context, Refused

Register = Callable[[Context], Any]


def load_plugin(place: str, module: str, attribute: str, name: str) -> tuple[Register, ModuleType]:
    """Imports the plugin. `place` is a folder or file or, with `module`, an import path.
    `attribute` names the function if not `register`."""
    found = _by_name(place, module) if module else _by_path(Path(place), name)
    wanted = attribute or "register"
    if callable(register := getattr(found, wanted, None)):
        return register, found
    if attribute:
        raise Refused(f"{module} has no {attribute}.")
    return _from_class(found), found


def _by_name(place: str, module: str) -> ModuleType:
    if place not in sys.path:
        sys.path.insert(0, place)
    return importlib.import_module(module)


def _by_path(place: Path, name: str) -> ModuleType:
    """Imports under a unique name; a folder is a package."""
    own = f"hermes_plugin_{name.replace('-', '_').replace('/', '_')}"
    if place.is_dir():
        file, inner = place / "__init__.py", [str(place)]
    else:
        file, inner = place, None
    if not file.is_file():
        raise Refused(f"The plugin has no {file.name}.")
    spec = importlib.util.spec_from_file_location(own, file, submodule_search_locations=inner)
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
    """Turns the one subclass of `Plugin` into a tool."""
    kinds = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and each.__module__ == module.__name__
        and any(parent.__name__ == "Plugin" for parent in each.__mro__[1:])
    ]
    if len(kinds) != 1:
        raise Refused("The plugin has neither `register(ctx)` nor one class derived from Plugin.")
    plugin: Any = kinds[0]()

    def register(ctx: Context) -> None:
        schema = {"description": plugin.description, "parameters": plugin.get_schema()}
        ctx.register_tool(plugin.name, "plugins", schema, lambda args: plugin.execute(args))

    return register
