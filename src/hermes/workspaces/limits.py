"""Resource limits of a command, where the kernel of its machine can enforce them."""

from __future__ import annotations

from hermes.codec.values import Value


class ResourceLimits(Value):
    """0 means no limit. Shells apply these to each process; containers also apply `cpus`,
    `memory_mb`, `processes` and `disk_mb` to all processes together."""

    cpus: float = 0
    memory_mb: int = 0
    processes: int = 0
    disk_mb: int = 0
    cpu_seconds: int = 0
    file_mb: int = 0

    def in_bash(self) -> str:
        """Return bash that lowers the limits of its shell as far as possible."""
        wanted = (
            ("-v", self.memory_mb * 1024),
            ("-u", self.processes),
            ("-t", self.cpu_seconds),
            ("-f", self.file_mb * 1024),
        )
        return "".join(f"ulimit {flag} {value} 2>/dev/null; " for flag, value in wanted if value)
