"""Turns a table of unknown encoding and separators into plain UTF-8 CSV, and says what it changed.

python3 clean_csv.py IN OUT [--decimal COLUMN]... [--date COLUMN FORMAT]... [--unique]
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
from collections import Counter
from datetime import datetime
from itertools import islice
from pathlib import Path

MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
SEPARATORS = ",;\t|"
BLANKS = str.maketrans(dict.fromkeys("\u00a0\u2007\u202f\u200b\ufeff", " "))


def decode(data: bytes) -> tuple[str, str]:
    """Return the text and its encoding: that of the byte-order mark, else the first that fits."""
    for mark, name in MARKS:
        if data.startswith(mark):
            return data.decode(name), name
    for name in ("utf-8", "cp1252"):
        try:
            return data.decode(name), name
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "latin-1"


def separator(text: str) -> str:
    """Return the separator that cuts most of the first rows into the same number of cells, at least
    two."""

    def agreement(mark: str) -> tuple[int, int]:
        rows = list(islice(csv.reader(io.StringIO(text), delimiter=mark), 50))
        widths = Counter(len(row) for row in rows if row)
        width, times = max(widths.items(), key=lambda pair: pair[1], default=(0, 0))
        return (times if width > 1 else 0, width)

    return max(SEPARATORS, key=agreement)


def heading(titles: list[str]) -> list[str]:
    """Return unique names for columns: small letters, digits and `_`; empty ones get a number."""
    seen: Counter[str] = Counter()
    names = []
    for number, title in enumerate(titles, 1):
        name = re.sub(r"\W+", "_", title.strip().lower()).strip("_") or f"column_{number}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return names


def number(text: str) -> str:
    """Return `1.234,56` and `1 234,56` as `1234.56`. Raises ValueError for anything else."""
    bare = re.sub(r"[^\d,.\-+]", "", text)
    if bare.rfind(",") > bare.rfind("."):
        bare = bare.replace(".", "").replace(",", ".")
    else:
        bare = bare.replace(",", "")
    float(bare)
    return bare


def day(text: str, form: str) -> str:
    # Only the day is kept, so that no time zone matters.
    return datetime.strptime(text, form).date().isoformat()  # noqa: DTZ007


class Cleaning:
    """Cleans rows. A row that cannot be used is kept with its line and the reason."""

    def __init__(self, names: list[str], decimals: list[str], dates: list[list[str]]) -> None:
        self.names = names
        self.decimals = decimals
        self.dates = dates
        self.rejected: list[list[str]] = []
        for column in (*decimals, *(date[0] for date in dates)):
            if column not in names:
                sys.exit(f"There is no column {column!r}; there are: {', '.join(names)}")

    def row(self, line: int, cells: list[str]) -> list[str] | None:
        cells = [cell.translate(BLANKS).strip() for cell in cells]
        if not any(cells):
            return None
        if len(cells) != len(self.names):
            self._reject(line, f"{len(cells)} cells instead of {len(self.names)}", cells)
            return None
        try:
            return self._convert(dict(zip(self.names, cells, strict=True)))
        except ValueError as error:
            self._reject(line, str(error), cells)
            return None

    def _convert(self, row: dict[str, str]) -> list[str]:
        for column in self.decimals:
            row[column] = number(row[column]) if row[column] else ""
        for column, form in self.dates:
            row[column] = day(row[column], form) if row[column] else ""
        return list(row.values())

    def _reject(self, line: int, reason: str, cells: list[str]) -> None:
        self.rejected.append([str(line), reason, *cells])


def write(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("source", type=Path)
    options.add_argument("target", type=Path)
    options.add_argument("--decimal", action="append", default=[], metavar="COLUMN")
    options.add_argument("--date", action="append", nargs=2, default=[], metavar=("COLUMN", "FORM"))
    options.add_argument("--unique", action="store_true", help="drop rows that are there already")
    args = options.parse_args()
    if args.target.resolve() == args.source.resolve():
        sys.exit("The target must be another file: the source stays as it is.")
    text, encoding = decode(args.source.read_bytes())
    mark = separator(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    names = heading(next(reader, []))
    cleaning = Cleaning(names, args.decimal, args.date)
    rows = [row for cells in reader if (row := cleaning.row(reader.line_num, cells))]
    kept = [list(row) for row in dict.fromkeys(map(tuple, rows))] if args.unique else rows
    write(args.target, [names, *kept])
    if cleaning.rejected:
        write(args.target.with_suffix(".rejected.csv"), [["line", "reason"], *cleaning.rejected])
    report = {
        "encoding": encoding,
        "separator": mark,
        "columns": names,
        "rows": len(kept),
        "repeated": len(rows) - len(set(map(tuple, rows))),
        "rejected": len(cleaning.rejected),
    }
    sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
