"""From a description to settings: what is to be filled in, and the command or address with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import UsageError
from hermes.mcp.catalogue.description import Argument, Blank, Description, Package, Remote

# An identifier must not be taken for an option, nor lead anywhere else.
_IDENTIFIER = r"@?[A-Za-z0-9][A-Za-z0-9._/:@-]*"
_VERSION = r"[A-Za-z0-9][A-Za-z0-9._+:-]*"
_HOLE = r"\{(\w+)\}"
RUNNERS = {"npm": "npx", "pypi": "uvx", "oci": "docker"}
ADVICE = {
    "npx": "Node.js brings it",
    "uvx": "`pip install uv` brings it",
    "docker": "Docker or Podman bring it",
}
Given = Mapping[str, Sequence[str]]


class Plan(Value):
    """One way to use a server."""

    description: Description
    package: Package | None = None
    remote: Remote | None = None

    @property
    def runner(self) -> str:
        """The program that starts it; "" for one that runs elsewhere."""
        if self.package is None:
            return ""
        return RUNNERS[self.package.registry_type]

    def blanks(self) -> dict[str, Blank]:
        """All that can be filled in, by name."""
        found: dict[str, Blank] = {}
        for blank in self._parts():
            found |= _holes(blank)
        return found

    def missing(self, given: Given) -> list[Blank]:
        """What must be filled in and is not."""
        return [
            blank
            for name, blank in self.blanks().items()
            if blank.is_required and blank.default is None and not any(given.get(name, ()))
        ]

    def secrets(self) -> frozenset[str]:
        """Variables and headers whose values must not stand in the settings."""
        named: Iterable[Blank] = ()
        if self.package is not None:
            named = self.package.environment_variables
        elif self.remote is not None:
            named = self.remote.headers
        return frozenset(
            each.name
            for each in named
            if each.is_secret or any(hole.is_secret for hole in each.variables.values())
        )

    def settings(self, given: Given) -> JsonObject:
        """As `mcp_servers.NAME` holds them; UsageError names what is missing or unknown."""
        known = self.blanks()
        if unknown := [name for name in given if name not in known]:
            named = ", ".join(known) or "nothing"
            raise UsageError(f"{unknown[0]!r} cannot be set here; there is {named}.")
        if left := self.missing(given):
            raise UsageError(f"Give --set {left[0].name}=VALUE ({_about(left[0])}).")
        if self.package is not None:
            return _started(self.package, given)
        assert self.remote is not None
        return _reached(self.remote, given)

    def _parts(self) -> Iterator[Blank]:
        if self.package is not None:
            yield from self.package.runtime_arguments
            yield from self.package.package_arguments
            yield from self.package.environment_variables
        if self.remote is not None:
            yield Blank(value=self.remote.url, variables=self.remote.variables)
            yield from self.remote.headers


def plan_of(description: Description, *, remote: bool = False) -> Plan:
    """The first way that we know: to start it, or where there is none or `remote` is wanted, to
    reach it where it runs. UsageError when there is none."""
    if not remote:
        for package in description.packages:
            if package.registry_type in RUNNERS and package.transport.type == "stdio":
                _check(package)
                return Plan(description=description, package=package)
    for place in description.remotes:
        if place.type in ("streamable-http", "sse") and place.url.startswith(("https:", "http:")):
            return Plan(description=description, remote=place)
    kinds = sorted({package.registry_type for package in description.packages}) or ["no package"]
    raise UsageError(f"{description.name} cannot be installed: it has {', '.join(kinds)} only.")


def _check(package: Package) -> None:
    if not re.fullmatch(_IDENTIFIER, package.identifier):
        raise UsageError(f"{package.identifier!r} cannot name a package.")
    if package.version and not re.fullmatch(_VERSION, package.version):
        raise UsageError(f"{package.version!r} cannot be a version.")


def _started(package: Package, given: Given) -> JsonObject:
    env = _named(package.environment_variables, given)
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


def _at(package: Package, sign: str) -> str:
    return f"{package.identifier}{sign}{package.version}" if package.version else package.identifier


def _reached(remote: Remote, given: Given) -> JsonObject:
    place = Blank(value=remote.url, variables=remote.variables)
    settings: JsonObject = {"url": _values(place, given)[0]}
    if remote.type == "sse":
        settings["transport"] = "sse"
    if headers := _named(remote.headers, given):
        settings["headers"] = headers
    return settings


def _named(blanks: Sequence[Blank], given: Given) -> dict[str, str]:
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


def _holes(blank: Blank) -> dict[str, Blank]:
    if blank.value is not None:
        names = dict.fromkeys(re.findall(_HOLE, blank.value))
        known = {name: blank.variables.get(name, Blank()) for name in names}
        return {name: replace(inner, name=name) for name, inner in known.items()}
    name = _name(blank)
    return {name: replace(blank, name=name)} if name else {}


def _name(blank: Blank) -> str:
    hint = blank.value_hint if isinstance(blank, Argument) else ""
    return (hint or blank.name).lstrip("-")


def _values(blank: Blank, given: Given) -> list[str]:
    """What stands in a place: none where it stays out."""
    if blank.value is None:
        return _said(blank, _name(blank), given)
    text = blank.value
    for name, hole in _holes(blank).items():
        found = _said(hole, name, given)
        if not found and not hole.is_required:
            return []
        text = text.replace(f"{{{name}}}", found[0])
    return [text]


def _said(blank: Blank, name: str, given: Given) -> list[str]:
    said = [each for each in given.get(name, ()) if each]
    if not said and blank.default is not None:
        said = [blank.default]
    for each in said:
        if blank.choices and each not in blank.choices:
            raise UsageError(f"{name} is one of {', '.join(blank.choices)}.")
    return said


def _about(blank: Blank) -> str:
    return blank.description or "it is needed"
