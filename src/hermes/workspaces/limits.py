"""What one command may use up, where the kernel of its machine can hold it to that."""

from __future__ import annotations

from hermes.codec.values import Value


class ResourceLimits(Value):
    """0 is no limit. Shells hold each process to these; containers hold all of them together to
    `cpus`, `memory_mb`, `processes` and `disk_mb` as well."""

    cpus: float = 0
    memory_mb: int = 0
    processes: int = 0
    disk_mb: int = 0
    cpu_seconds: int = 0
    file_mb: int = 0

    def in_bash(self) -> str:
        """Lowers the limits of the shell that runs it; what cannot be lowered stays."""
        wanted = (
            ("-v", self.memory_mb * 1024),
            ("-u", self.processes),
            ("-t", self.cpu_seconds),
            ("-f", self.file_mb * 1024),
        )
        return "".join(f"ulimit {flag} {value} 2>/dev/null; " for flag, value in wanted if value)
