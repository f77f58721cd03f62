"""Writes `hermes_tools.py`, the module by which a script calls tools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.core.prompt import ToolSpec

# Parameters that need somebody who watches the command afterwards.
HIDDEN_PARAMETERS = {"terminal": ("background", "notify_on_complete", "pty", "watch_patterns")}
_CLIENT = Path(__file__).with_name("hermes_tools.py.txt")


def client_source(specs: Iterable[ToolSpec]) -> str:
    """Return the source of the module, with one function per tool."""
    functions = (_function(spec) for spec in specs)
    return "\n\n".join((_CLIENT.read_text("utf-8").rstrip(), *functions)) + "\n"


def offered_parameters(spec: ToolSpec) -> dict[str, bool]:
    """Return the parameters of a tool in a script, and whether each is required."""
    schema: JsonObject = spec.parameters
    required = schema.get("required") or ()
    hidden = HIDDEN_PARAMETERS.get(spec.name, ())
    names = [name for name in schema.get("properties") or {} if name not in hidden]
    return {name: name in required for name in sorted(names, key=lambda name: name not in required)}


def _function(spec: ToolSpec) -> str:
    parameters = offered_parameters(spec)
    named = [name if required else f"{name}=_ABSENT" for name, required in parameters.items()]
    passed = ", ".join(f"{name!r}: {name}" for name in parameters)
    return (
        f"def {spec.name}({', '.join(named)}):\n"
        f"    {spec.description!r}\n"
        f"    return _call({spec.name!r}, {{{passed}}})"
    )
