"""All benchmarks, one JSON line for each figure: `python -m bench [name …]`."""

from __future__ import annotations

import subprocess
import sys

BENCHES = (
    "start",
    "prompt",
    "rounds",
    "opening",
    "policy",
    "shell",
    "append",
    "search",
    "recall",
    "concurrency",
    "history",
    "api",
    "undo",
    "plans",
    "terminal",
    "listing",
)


def main() -> None:
    for name in sys.argv[1:] or BENCHES:
        subprocess.run([sys.executable, "-m", f"bench.{name}"], check=True)


if __name__ == "__main__":
    main()
