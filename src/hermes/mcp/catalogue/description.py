"""The `server.json` format of the MCP registry."""

from __future__ import annotations

import re
from typing import Literal

from hermes.codec.values import Value

_SHORT = r"[^A-Za-z0-9_-]+"


class InputField(Value, rename="camel"):
    """A value to fill in, or a fixed `value`."""

    name: str = ""
    description: str = ""
    value: str | None = None
    default: str | None = None
    choices: tuple[str, ...] = ()
    is_required: bool = False
    is_secret: bool = False
    # Placeholders `{name}` in the value.
    variables: dict[str, InputField] = {}


class Argument(InputField, rename="camel"):
    type: Literal["positional", "named"] = "positional"
    value_hint: str = ""
    is_repeated: bool = False


class Transport(Value):
    type: str = "stdio"
    url: str = ""


class ServerPackage(Value, rename="camel"):
    """A package to install and run."""

    registry_type: str
    identifier: str
    version: str = ""
    runtime_hint: str = ""
    transport: Transport = Transport()
    runtime_arguments: tuple[Argument, ...] = ()
    package_arguments: tuple[Argument, ...] = ()
    environment_variables: tuple[InputField, ...] = ()


class RemoteServer(Value):
    """A hosted server."""

    type: str
    url: str
    headers: tuple[InputField, ...] = ()
    variables: dict[str, InputField] = {}


class ServerDescription(Value, rename="camel"):
    name: str
    description: str = ""
    title: str = ""
    version: str = ""
    packages: tuple[ServerPackage, ...] = ()
    remotes: tuple[RemoteServer, ...] = ()

    @property
    def short_name(self) -> str:
        """Returns the default name for the settings."""
        return re.sub(_SHORT, "-", self.name.rpartition("/")[2]).strip("-_")[:32]

    def has(self, words: str) -> bool:
        """Returns whether all words occur in the description."""
        text = f"{self.name} {self.title} {self.description}".lower()
        return all(word in text for word in words.lower().split())
