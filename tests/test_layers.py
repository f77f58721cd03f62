"""The order of rooms: imports go up the list only, inside functions too, and never in a circle."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "hermes"

# Who may import whom. Nothing imports surfaces; surfaces do not import each other.
ROOMS: dict[str, set[str]] = {
    "codec": set(),
    "core": {"codec"},
    "config": {"codec", "core"},
    "policy": {"codec", "core"},
    "journal": {"codec", "core"},
    "providers": {"codec", "core"},
    "credentials": {"codec", "core", "config", "providers"},
    "workspaces": {"codec", "core"},
    "web": {"codec", "core", "policy", "providers"},
    "speech": {"codec", "core"},
    "cron": {"codec", "core"},
    "undo": {"codec", "core", "workspaces"},
    "tools": {"codec", "core", "workspaces"},
    "recall": {"codec", "core", "journal"},
    "memory": {"codec", "core"},
    "skills": {"codec", "core"},
    "context": {"codec", "core"},
    "mcp": {"codec", "core"},
    "images": {"codec", "core", "policy", "providers", "web"},
    "plugins": {"codec", "core", "images", "providers", "workspaces"},
    "learning": {"codec", "core", "skills", "memory"},
    "hooks": {"codec", "core"},
    "testing": {"codec", "core", "images"},
}
ROOMS["app"] = set(ROOMS)
ROOMS["commands"] = {"app", "core", "codec"}
SURFACE = {"commands", "app", "core", "codec", "config"}


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = ("hermes", *path.relative_to(SOURCE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path) -> Iterator[str]:
    for node in _statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            module = node.module or ""
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in modules() else module


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement, also those in functions, that is not there for the type checker alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) or _for_type_checking(child):
            continue
        yield child
        yield from _statements(child)


def _for_type_checking(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


@cache
def edges() -> dict[str, set[str]]:
    """Who imports whom. Read by the tests that ask, since collecting tests should read nothing."""
    known = modules()
    return {
        name: {target for target in imports(path) if target in known}
        for name, path in known.items()
    }


def room(module: str) -> str:
    parts = module.split(".")
    if len(parts) < 2 or module == "hermes.version":
        return ""
    return f"surfaces.{parts[2]}" if parts[1] == "surfaces" and len(parts) > 2 else parts[1]


def test_a_module_imports_only_rooms_above_its_own() -> None:
    found = []
    for module, targets in edges().items():
        own = room(module)
        allowed = SURFACE if own.startswith("surfaces") else ROOMS.get(own, set())
        for target in targets if own else ():
            there = room(target)
            if there not in (own, "") and there not in allowed:
                found.append(f"{module} imports {target}")
    assert found == []


def test_no_module_is_part_of_an_import_circle() -> None:
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for target in edges()[module]:
                walk(target, (*path, module))
            done.add(module)

    for module in modules():
        walk(module, ())


@pytest.mark.parametrize("module", ["hermes", "hermes.surfaces.cli.entry"])
def test_the_way_to_the_version_loads_nothing_from_outside(module: str) -> None:
    code = (
        f"import sys; before = set(sys.modules); import {module}; print(*set(sys.modules) - before)"
    )
    out = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); {code}",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    outside = {name for name in out.split() if not _own_or_standard(name)}
    assert outside == set()


def _own_or_standard(name: str) -> bool:
    top = name.partition(".")[0]
    return top == "hermes" or top in sys.stdlib_module_names


def test_the_environment_is_read_in_one_room() -> None:
    found = []
    for path in modules().values():
        if path.relative_to(SOURCE).parts[0] in ("config", "testing"):
            continue
        text = path.read_text()
        found += [f"{path}: {word}" for word in ("os.environ", "getenv(") if word in text]
    assert found == []


def test_every_room_is_in_the_table_that_newcomers_read() -> None:
    page = (SOURCE.parent.parent / "CONTRIBUTING.md").read_text()
    told = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    assert sorted(told) == sorted(rooms)
