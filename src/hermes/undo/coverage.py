"""How much is kept: sizes, numbers, and the folders that can be made again."""

from __future__ import annotations

import posixpath

from hermes.codec.values import Value

MB = 1024 * 1024

# Made by installing, building or running; their names say so in every project.
REMADE = frozenset(
    """node_modules bower_components .venv venv .virtualenv __pycache__ .tox .nox .eggs
    .mypy_cache .pytest_cache .ruff_cache .hypothesis .gradle .terraform .next .nuxt .parcel-cache
    .turbo .svelte-kit .dart_tool .cache target build dist out obj .build _build cmake-build-debug
    cmake-build-release Pods DerivedData vendor .bundle .stack-work .cargo coverage htmlcov
    .worktrees""".split()
)
PACKS = "/.git/objects/pack/"


class Coverage(Value):
    """`max_file_bytes` is for a file that nobody named, `named_file_bytes` for one that a command
    names. Folders of `remade` names are covered while they hold no more than `small_files` and
    `small_bytes`, or when a command names them. `skipped` are paths of Hermes itself."""

    max_files: int = 50_000
    max_file_bytes: int = 100 * MB
    max_total_bytes: int = 2_000 * MB
    pack_bytes: int = 16 * MB
    remade: frozenset[str] = REMADE
    small_files: int = 400
    small_bytes: int = 8 * MB
    skipped: frozenset[str] = frozenset()
    untouched: frozenset[str] = frozenset(("/",))

    @property
    def named_file_bytes(self) -> int:
        return max(self.max_file_bytes, self.max_total_bytes // 2)

    @property
    def least_limit(self) -> int:
        """A file of no more bytes is kept whatever it is called."""
        return min(self.pack_bytes, self.max_file_bytes)

    def limit(self, path: str, *, named: bool) -> int:
        if named:
            return self.named_file_bytes
        return min(self.pack_bytes, self.max_file_bytes) if PACKS in path else self.max_file_bytes


class Retention(Value):
    """What may stay: so many turns of one project, so many days, so many bytes in all."""

    max_snapshots: int = 20
    retention_days: float = 7
    max_total_bytes: int = 2_000 * MB


def inside(path: str, folder: str) -> bool:
    return path == folder or folder == "/" or path.startswith(folder.rstrip("/") + "/")


def name_of(path: str) -> str:
    return posixpath.basename(path)


def size_words(size: int) -> str:
    for unit, amount in (("GB", 1024 * MB), ("MB", MB), ("kB", 1024)):
        if size >= amount:
            return f"{size / amount:.1f} {unit}".replace(".0 ", " ")
    return f"{size} bytes"
