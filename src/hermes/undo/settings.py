"""The settings of undo, and what they mean in bytes and folders."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.undo.coverage import MB, Coverage, Retention


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
