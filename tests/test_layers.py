"""The order of packages: imports go up the list only, inside functions too, without cycles."""

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

# A package imports only packages above it in this list. Surfaces do not import each other.
ORDER = (
    "codec",
    "core",
    "net",
    "config",
    "policy",
    "journal",
    "providers",
    "credentials",
    "models",
    "workspaces",
    "undo",
    "tools",
    "web",
    "speech",
    "images",
    "cron",
    "moa",
    "code_execution",
    "plans",
    "context",
    "recall",
    "memory",
    "skills",
    "delegation",
    "mcp",
    "hooks",
    "plugins",
    "replay",
    "learning",
    "homes",
    "testing",
    "app",
    "hosting",
    "commands",
    "surfaces",
)


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


def package(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and module != "hermes.version" else ""


def test_a_module_imports_only_packages_above_its_own() -> None:
    rank = {name: number for number, name in enumerate(ORDER)}
    found = [
        f"{module} imports {target}"
        for module, targets in edges().items()
        for target in targets
        if package(module) and package(target) and rank[package(target)] > rank[package(module)]
    ]
    assert found == []


def test_surfaces_do_not_import_each_other() -> None:
    def surface(module: str) -> str:
        parts = module.split(".")
        return parts[2] if package(module) == "surfaces" and len(parts) > 2 else ""

    found = [
        f"{module} imports {target}"
        for module, targets in edges().items()
        for target in targets
        if surface(module) and surface(target) and surface(module) != surface(target)
    ]
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


def test_only_config_and_testing_read_the_environment() -> None:
    found = []
    for path in modules().values():
        if path.relative_to(SOURCE).parts[0] in ("config", "testing"):
            continue
        text = path.read_text()
        found += [f"{path}: {word}" for word in ("os.environ", "getenv(") if word in text]
    assert found == []


def test_contributing_lists_every_package_in_import_order() -> None:
    page = (SOURCE.parent.parent / "CONTRIBUTING.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    present = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    assert listed == [name for name in ORDER if name in present]
