"""A server as its makers describe it, in the format of the protocol's registry (`server.json`)."""

from __future__ import annotations

import re
from typing import Literal

from hermes.codec.values import Value

_SHORT = r"[^A-Za-z0-9_-]+"


class Blank(Value, rename="camel"):
    """Something that a person fills in, or that stands there already (`value`)."""

    name: str = ""
    description: str = ""
    value: str | None = None
    default: str | None = None
    choices: tuple[str, ...] = ()
    is_required: bool = False
    is_secret: bool = False
    # Parts `{name}` of the value that are to be filled in.
    variables: dict[str, Blank] = {}


class Argument(Blank, rename="camel"):
    type: Literal["positional", "named"] = "positional"
    value_hint: str = ""
    is_repeated: bool = False


class Transport(Value):
    type: str = "stdio"
    url: str = ""


class Package(Value, rename="camel"):
    """Something to fetch and start."""

    registry_type: str
    identifier: str
    version: str = ""
    runtime_hint: str = ""
    transport: Transport = Transport()
    runtime_arguments: tuple[Argument, ...] = ()
    package_arguments: tuple[Argument, ...] = ()
    environment_variables: tuple[Blank, ...] = ()


class Remote(Value):
    """Somewhere where it runs already."""

    type: str
    url: str
    headers: tuple[Blank, ...] = ()
    variables: dict[str, Blank] = {}


class Description(Value, rename="camel"):
    name: str
    description: str = ""
    title: str = ""
    version: str = ""
    packages: tuple[Package, ...] = ()
    remotes: tuple[Remote, ...] = ()

    @property
    def short_name(self) -> str:
        """What to call it in the settings, unless the person says otherwise."""
        return re.sub(_SHORT, "-", self.name.rpartition("/")[2]).strip("-_")[:32]

    def has(self, words: str) -> bool:
        """Whether all the words are somewhere in it."""
        text = f"{self.name} {self.title} {self.description}".lower()
        return all(word in text for word in words.lower().split())
