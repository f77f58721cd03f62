"""A script in a JSON file, for a server that is started as a command."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import UsageError
from hermes.testing.bill import Prices
from hermes.testing.steps import Step, says


class ScriptFile(Value, forbid_unknown_fields=True):
    """The arguments of a ScriptedServer. A string is a step that says it."""

    steps: tuple[Step | str, ...] = ()
    loop: bool = False
    strict: bool = True
    window: int | None = None
    prices: Prices | None = None
    models: tuple[str | JsonObject, ...] = ("scripted",)
    pages: JsonObject = {}

    @property
    def whole_steps(self) -> tuple[Step, ...]:
        return tuple(says(step) if isinstance(step, str) else step for step in self.steps)


def read_script(path: Path) -> ScriptFile:
    try:
        return decode(ScriptFile, path.read_bytes())
    except OSError as error:
        raise UsageError(f"The script {path} cannot be read: {error.strerror}.") from error
    except DecodeError as error:
        raise UsageError(f"The script {path} cannot be used: {error}.") from error
