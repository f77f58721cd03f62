"""Groups the lines of a log that differ only in numbers, ids and names, most frequent first.

python3 group_lines.py LOG [--only REGEX] [--before OLD_LOG] [--top N]

With --before, only groups that the old log does not have.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

# The order matters: what is specific goes first.
MASKS = tuple(
    (re.compile(pattern), mark)
    for pattern, mark in (
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"\b\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?", "<time>"),
        (r"\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d\b", "<time>"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "<host>"),
        (r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", "<hex>"),
        (r"\"[^\"]*\"|'[^']*'", "<text>"),
        (r"\d+", "<n>"),
    )
)


class Group(NamedTuple):
    times: int
    first: int
    last: int
    sample: str


def shape(line: str) -> str:
    for pattern, mark in MASKS:
        line = pattern.sub(mark, line)
    return " ".join(line.split())


def groups(path: Path, only: str) -> dict[str, Group]:
    wanted = re.compile(only)
    grouped: dict[str, Group] = {}
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or not wanted.search(line):
                continue
            key = shape(line)
            known = grouped.get(key, Group(0, number, number, line.strip()))
            grouped[key] = known._replace(times=known.times + 1, last=number)
    return grouped


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("log", type=Path)
    options.add_argument("--only", default="")
    options.add_argument("--before", type=Path)
    options.add_argument("--top", type=int, default=20)
    args = options.parse_args()
    grouped = groups(args.log, args.only)
    if args.before:
        old = groups(args.before, args.only)
        grouped = {key: group for key, group in grouped.items() if key not in old}
    ordered = sorted(grouped.values(), key=lambda group: (-group.times, group.first))
    for group in ordered[: args.top]:
        span = f"lines {group.first}-{group.last}"
        sys.stdout.write(f"{group.times:7}  {span:20} {group.sample[:200]}\n")
    sys.stdout.write(f"{len(grouped)} groups, {sum(each.times for each in ordered)} lines\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
