"""Reads `server.json` descriptions and turns them into settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import UsageError

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


# Must not look like an option or a path traversal.
_IDENTIFIER = r"@?[A-Za-z0-9][A-Za-z0-9._/:@-]*"
_VERSION = r"[A-Za-z0-9][A-Za-z0-9._+:-]*"
_PLACEHOLDER = r"\{(\w+)\}"
RUNNERS = {"npm": "npx", "pypi": "uvx", "oci": "docker"}
ADVICE = {
    "npx": "install Node.js",
    "uvx": "run `pip install uv`",
    "docker": "install Docker or Podman",
}
Given = Mapping[str, Sequence[str]]


class InstallPlan(Value):
    """One way to use a server."""

    description: ServerDescription
    package: ServerPackage | None = None
    remote: RemoteServer | None = None

    @property
    def runner(self) -> str:
        """Returns the program that starts it; "" for a hosted server."""
        if self.package is None:
            return ""
        return RUNNERS[self.package.registry_type]

    def inputs(self) -> dict[str, InputField]:
        """Returns all inputs by name."""
        found: dict[str, InputField] = {}
        for blank in self._parts():
            found |= _inputs(blank)
        return found

    def missing(self, given: Given) -> list[InputField]:
        """Returns required inputs without a value."""
        return [
            blank
            for name, blank in self.inputs().items()
            if blank.is_required and blank.default is None and not any(given.get(name, ()))
        ]

    def secrets(self) -> frozenset[str]:
        """Returns variables and headers whose values must not be stored in the settings."""
        named: Iterable[InputField] = ()
        if self.package is not None:
            named = self.package.environment_variables
        elif self.remote is not None:
            named = self.remote.headers
        return frozenset(
            each.name
            for each in named
            if each.is_secret
            or any(placeholder.is_secret for placeholder in each.variables.values())
        )

    def settings(self, given: Given) -> JsonObject:
        """Returns the settings for `mcp_servers.NAME`; UsageError for missing or unknown inputs."""
        known = self.inputs()
        if unknown := [name for name in given if name not in known]:
            named = ", ".join(known) or "nothing"
            raise UsageError(f"{unknown[0]!r} cannot be set; known inputs: {named}.")
        if left := self.missing(given):
            raise UsageError(f"Give --set {left[0].name}=VALUE ({_about(left[0])}).")
        if self.package is not None:
            return _command_settings(self.package, given)
        assert self.remote is not None
        return _remote_settings(self.remote, given)

    def _parts(self) -> Iterator[InputField]:
        if self.package is not None:
            yield from self.package.runtime_arguments
            yield from self.package.package_arguments
            yield from self.package.environment_variables
        if self.remote is not None:
            yield InputField(value=self.remote.url, variables=self.remote.variables)
            yield from self.remote.headers


def plan_install(description: ServerDescription, *, remote: bool = False) -> InstallPlan:
    """Returns the first supported package or, without one or with `remote`, the first hosted
    server. UsageError when there is none."""
    if not remote:
        for package in description.packages:
            if package.registry_type in RUNNERS and package.transport.type == "stdio":
                _check(package)
                return InstallPlan(description=description, package=package)
    for place in description.remotes:
        if place.type in ("streamable-http", "sse") and place.url.startswith(("https:", "http:")):
            return InstallPlan(description=description, remote=place)
    kinds = sorted({package.registry_type for package in description.packages}) or ["no package"]
    raise UsageError(f"{description.name} cannot be installed: it has {', '.join(kinds)} only.")


def _check(package: ServerPackage) -> None:
    if not re.fullmatch(_IDENTIFIER, package.identifier):
        raise UsageError(f"{package.identifier!r} is not a valid package name.")
    if package.version and not re.fullmatch(_VERSION, package.version):
        raise UsageError(f"{package.version!r} is not a valid version.")


def _command_settings(package: ServerPackage, given: Given) -> JsonObject:
    env = _named_values(package.environment_variables, given)
    before = _arguments(package.runtime_arguments, given)
    after = _arguments(package.package_arguments, given)
    runner = RUNNERS[package.registry_type]
    match runner:
        case "npx":
            call = ["-y", *before, _at(package, "@")]
        case "uvx":
            call = [*before, _at(package, "@")]
        case _:
            variables = [word for name in env for word in ("-e", name)]
            image = package.identifier if ":" in package.identifier else _at(package, ":")
            call = ["run", "-i", "--rm", *variables, *before, image]
    return {"command": runner, "args": [*call, *after], **({"env": env} if env else {})}


def _at(package: ServerPackage, sign: str) -> str:
    return f"{package.identifier}{sign}{package.version}" if package.version else package.identifier


def _remote_settings(remote: RemoteServer, given: Given) -> JsonObject:
    place = InputField(value=remote.url, variables=remote.variables)
    settings: JsonObject = {"url": _values(place, given)[0]}
    if remote.type == "sse":
        settings["transport"] = "sse"
    if headers := _named_values(remote.headers, given):
        settings["headers"] = headers
    return settings


def _named_values(blanks: Sequence[InputField], given: Given) -> dict[str, str]:
    return {blank.name: found[0] for blank in blanks if (found := _values(blank, given))}


def _arguments(arguments: Sequence[Argument], given: Given) -> list[str]:
    words: list[str] = []
    for argument in arguments:
        found = _values(argument, given)
        for value in found if argument.is_repeated else found[:1]:
            if argument.type == "named":
                words.append(argument.name)
            if value:
                words.append(value)
    return words


def _inputs(blank: InputField) -> dict[str, InputField]:
    if blank.value is not None:
        names = dict.fromkeys(re.findall(_PLACEHOLDER, blank.value))
        known = {name: blank.variables.get(name, InputField()) for name in names}
        return {name: replace(inner, name=name) for name, inner in known.items()}
    name = _name(blank)
    return {name: replace(blank, name=name)} if name else {}


def _name(blank: InputField) -> str:
    hint = blank.value_hint if isinstance(blank, Argument) else ""
    return (hint or blank.name).lstrip("-")


def _values(blank: InputField, given: Given) -> list[str]:
    """Returns the values; none when the input is omitted."""
    if blank.value is None:
        return _given_values(blank, _name(blank), given)
    text = blank.value
    for name, placeholder in _inputs(blank).items():
        found = _given_values(placeholder, name, given)
        if not found and not placeholder.is_required:
            return []
        text = text.replace(f"{{{name}}}", found[0])
    return [text]


def _given_values(blank: InputField, name: str, given: Given) -> list[str]:
    values = [each for each in given.get(name, ()) if each]
    if not values and blank.default is not None:
        values = [blank.default]
    for each in values:
        if blank.choices and each not in blank.choices:
            raise UsageError(f"{name} must be one of {', '.join(blank.choices)}.")
    return values


def _about(blank: InputField) -> str:
    return blank.description or "required"
