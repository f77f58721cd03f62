"""How much is stored: settings, sizes, and folders that can be recreated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.codec.values import Value

if TYPE_CHECKING:
    from hermes.config.settings import CheckpointSettings

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
PACK_BYTES = 16 * MB
# A folder that can be recreated is covered up to this size.
SMALL_FILES = 400
SMALL_BYTES = 8 * MB


class UndoLimits(Value):
    """`max_file_bytes` applies to a file that the command does not name, `named_file_bytes` to one
    that it names. Folders with `remade` names are covered while they are small, or when a command
    names them. `skipped` are paths of Hermes itself. The store keeps `max_snapshots` turns per
    project, for `retention_days`."""

    max_files: int = 50_000
    max_file_bytes: int = 100 * MB
    max_total_bytes: int = 2_000 * MB
    remade: frozenset[str] = REMADE
    skipped: frozenset[str] = frozenset()
    untouched: frozenset[str] = frozenset(("/",))
    max_snapshots: int = 20
    retention_days: float = 7

    @property
    def named_file_bytes(self) -> int:
        return max(self.max_file_bytes, self.max_total_bytes // 2)

    @property
    def least_limit(self) -> int:
        """A file up to this size is stored whatever its name is."""
        return min(PACK_BYTES, self.max_file_bytes)

    def limit(self, path: str, *, named: bool) -> int:
        if named:
            return self.named_file_bytes
        return self.least_limit if PACKS in path else self.max_file_bytes


def inside(path: str, folder: str) -> bool:
    return path == folder or folder == "/" or path.startswith(folder.rstrip("/") + "/")


def size_words(size: int) -> str:
    for unit, amount in (("GB", 1024 * MB), ("MB", MB), ("kB", 1024)):
        if size >= amount:
            return f"{size / amount:.1f} {unit}".replace(".0 ", " ")
    return f"{size} bytes"


def limits_of(settings: CheckpointSettings, *, person: str, state: str) -> UndoLimits:
    """`person` is the home folder of the user, which is never covered as a whole; `state` is the
    home of Hermes, which is not covered."""
    return UndoLimits(
        max_files=int(settings.max_files),
        max_file_bytes=int(settings.max_file_size_mb * MB),
        max_total_bytes=int(settings.max_total_size_mb * MB),
        skipped=frozenset((state,)),
        untouched=frozenset(("/", person)),
        max_snapshots=int(settings.max_snapshots),
        retention_days=settings.retention_days,
    )
