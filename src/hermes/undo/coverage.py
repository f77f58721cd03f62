"""How much is stored: settings, sizes, and folders that can be recreated."""

from __future__ import annotations

import posixpath

from hermes.codec.values import Value

MB = 1024 * 1024

# Created by installing, building or running; their names say so in every project.
REMADE = frozenset(
    """node_modules bower_components .venv venv .virtualenv __pycache__ .tox .nox .eggs
    .mypy_cache .pytest_cache .ruff_cache .hypothesis .gradle .terraform .next .nuxt .parcel-cache
    .turbo .svelte-kit .dart_tool .cache target build dist out obj .build _build cmake-build-debug
    cmake-build-release Pods DerivedData vendor .bundle .stack-work .cargo coverage htmlcov
    .worktrees""".split()
)
PACKS = "/.git/objects/pack/"


class Coverage(Value):
    """`max_file_bytes` applies to a file that the command does not name, `named_file_bytes` to one
    that it names. Folders with `remade` names are covered up to `small_files` and `small_bytes`, or
    when a command names them. `skipped` are paths of Hermes itself."""

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
        """A file up to this size is stored whatever its name is."""
        return min(self.pack_bytes, self.max_file_bytes)

    def limit(self, path: str, *, named: bool) -> int:
        if named:
            return self.named_file_bytes
        return min(self.pack_bytes, self.max_file_bytes) if PACKS in path else self.max_file_bytes


class Retention(Value):
    """The limits of the store: turns per project, days, and bytes in all."""

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


class UndoSettings(Value):
    """The keys under `checkpoints`. `max_snapshots` counts turns of one project."""

    enabled: bool = True
    max_snapshots: int = 20
    max_total_size_mb: int = 2_000
    max_file_size_mb: int = 100
    max_files: int = 50_000
    auto_prune: bool = True
    retention_days: float = 7
    min_interval_hours: float = 24

    def coverage(self, *, person: str, state: str) -> Coverage:
        """`person` is the home folder of the user, which is never covered as a whole; `state` is
        the home of Hermes, which is not covered."""
        return Coverage(
            max_files=self.max_files,
            max_file_bytes=self.max_file_size_mb * MB,
            max_total_bytes=self.max_total_size_mb * MB,
            skipped=frozenset((state,)),
            untouched=frozenset(("/", person)),
        )

    def retention(self) -> Retention:
        return Retention(
            max_snapshots=self.max_snapshots,
            retention_days=self.retention_days,
            max_total_bytes=self.max_total_size_mb * MB,
        )
