"""Lists, adds and removes the optional parts of this installation."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distributions, version

from hermes.codec.values import Value
from hermes.config.extras import DISTRIBUTION, EXTRAS, Extra
from hermes.core.errors import ConfigError, NotFound
from hermes.homes.installation import installation, installer, own_distribution, run_program


class ExtraRow(Value):
    """An optional part and its state. `packages` are its requirements."""

    name: str
    purpose: str
    megabytes: int
    installed: bool
    packages: tuple[str, ...]


class ExtraChange(Value):
    """What adding or removing does: a command, and packages that stay because others need them."""

    extra: str
    command: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def extra_rows() -> list[ExtraRow]:
    requirements = extra_requirements()
    return [_row(extra, requirements.get(extra.name, ())) for extra in EXTRAS]


def plan_addition(name: str) -> ExtraChange:
    """Return how to add an extra. Its packages are installed by their own names, so that no index
    can replace Hermes itself. Raises NotFound for an unknown extra."""
    return ExtraChange(extra=name, command=installer("install", *_requirements(name)))


def plan_removal(name: str) -> ExtraChange:
    """Return how to remove an extra. Packages that another one needs stay."""
    wanted = [each for each in map(package_name, _requirements(name)) if _version(each)]
    needed = _needed_packages(leaving=frozenset(wanted))
    going = [each for each in wanted if each not in needed]
    kept = tuple(each for each in wanted if each in needed)
    command = installer("uninstall", "--yes", *going) if going else ()
    return ExtraChange(extra=name, command=command, kept=kept)


async def apply_change(change: ExtraChange) -> None:
    if change.command:
        await run_program(change.command, fix="correct that and run the command again")


def extra_requirements() -> dict[str, tuple[str, ...]]:
    """Return the requirements of each extra: of a checkout from its pyproject.toml, else from the
    metadata of the installed package."""
    here = installation()
    project = here.path / "pyproject.toml"
    if not here.is_package and project.is_file():
        data = tomllib.loads(project.read_text("utf-8"))["project"]
        return {name: tuple(each) for name, each in data["optional-dependencies"].items()}
    found = own_distribution()
    if found is None:
        raise ConfigError(
            f"{here.path} was copied there without an installer; start `./hermes` in a clone of "
            "the repository instead."
        )
    extras: dict[str, list[str]] = {}
    for line in found.requires or ():
        requirement, _, marker = line.partition(";")
        if named := re.search(r"""extra == ['"]([\w-]+)['"]""", marker):
            extras.setdefault(named[1], []).append(requirement.strip())
    return {name: tuple(each) for name, each in extras.items()}


def package_name(requirement: str) -> str:
    """Return the normalized name in a requirement such as `mcp>=2.3,<3`."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def _requirements(name: str) -> tuple[str, ...]:
    known = [extra.name for extra in EXTRAS]
    if name not in known:
        raise NotFound(f"There is no extra {name!r}; known: {', '.join(known)}.")
    return extra_requirements()[name]


def _row(extra: Extra, requirements: tuple[str, ...]) -> ExtraRow:
    installed = all(_version(package_name(each)) for each in requirements)
    return ExtraRow(
        name=extra.name,
        purpose=extra.purpose,
        megabytes=extra.megabytes,
        installed=bool(requirements) and installed,
        packages=requirements,
    )


def _needed_packages(leaving: frozenset[str]) -> set[str]:
    """Return what the other installed distributions require, optional requirements left out."""
    needed: set[str] = set()
    for each in distributions():
        name = package_name(each.metadata["Name"] or "")
        if name not in leaving and name != DISTRIBUTION:
            lines = (line for line in each.requires or () if "extra ==" not in line)
            needed.update(map(package_name, lines))
    return needed


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
