"""Loads CSV files into a SQLite file, profiles its columns, and answers SQL without changing it.

python3 tables.py load FILE.csv DB [--table NAME]
python3 tables.py profile DB [--table NAME]
python3 tables.py ask DB "SELECT ..." [--limit N]
"""

from __future__ import annotations

import argparse
import csv
import re
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

WIDEST = 40


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def value(text: str) -> str | int | float | None:
    """Convert a cell: a number if it is one, None if it is empty; `007` stays a text."""
    if text == "":
        return None
    if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?(0|[1-9]\d*)\.\d+([eE][-+]?\d+)?", text):
        return float(text)
    return text


def load(source: Path, base: Path, table: str) -> str:
    with source.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        names = next(reader)
        rows = [[value(cell) for cell in row] for row in reader if row]
    odd = [number for number, row in enumerate(rows, 2) if len(row) != len(names)]
    if odd:
        sys.exit(f"Row {odd[0]} has another number of cells than the heading; clean it first.")
    columns = ", ".join(map(quote, names))
    marks = ", ".join("?" * len(names))
    with closing(sqlite3.connect(base)) as db, db:
        db.execute(f"DROP TABLE IF EXISTS {quote(table)}")
        db.execute(f"CREATE TABLE {quote(table)} ({columns})")
        db.executemany(f"INSERT INTO {quote(table)} VALUES ({marks})", rows)
    return f"{table}: {len(rows)} rows, {len(names)} columns"


def reading(base: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{base.resolve().as_uri()}?mode=ro", uri=True)


def tables(db: sqlite3.Connection) -> list[str]:
    found = db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY 1")
    return [name for (name,) in found if not name.startswith("sqlite_")]


def profile(db: sqlite3.Connection, table: str) -> Iterable[Sequence[Any]]:
    """Yield for each column: kinds, filled, distinct, smallest, largest, mean, the most
    frequent."""
    yield ("column", "kinds", "filled", "distinct", "least", "most", "mean", "frequent")
    name = quote(table)
    for row in db.execute(f"PRAGMA table_info({name})").fetchall():
        c = quote(row[1])
        numbers = f"CASE WHEN typeof({c}) IN ('integer', 'real') THEN {c} END"
        facts = db.execute(
            f"SELECT group_concat(DISTINCT typeof({c})), count({c}), count(DISTINCT {c}),"
            f" min({c}), max({c}), round(avg({numbers}), 4) FROM {name}"
        ).fetchone()
        frequent = db.execute(
            f"SELECT {c}, count(*) FROM {name} WHERE {c} IS NOT NULL"
            f" GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3"
        ).fetchall()
        yield (row[1], *facts, " ".join(f"{each}({times})" for each, times in frequent))


def laid_out(rows: Iterable[Sequence[Any]]) -> str:
    cells = [["" if each is None else str(each)[:WIDEST] for each in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells
    )
    return "\n".join(lines) + "\n"


def ask(db: sqlite3.Connection, sql: str, limit: int) -> str:
    cursor = db.execute(sql)
    heading = [each[0] for each in cursor.description or ()]
    rows = cursor.fetchmany(limit + 1)
    more = f"(more than {limit} rows; this is the beginning)\n" if len(rows) > limit else ""
    return laid_out([heading, *rows[:limit]]) + more


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("action", choices=("load", "profile", "ask"))
    options.add_argument("first", type=Path, metavar="FILE")
    options.add_argument("second", nargs="?", default="", metavar="DB or SQL")
    options.add_argument("--table", default="")
    options.add_argument("--limit", type=int, default=50)
    args = options.parse_args()
    if args.action == "load":
        table = args.table or re.sub(r"\W+", "_", args.first.stem)
        sys.stdout.write(load(args.first, Path(args.second), table) + "\n")
        return 0
    try:
        with closing(reading(args.first)) as db:
            if args.action == "ask":
                sys.stdout.write(ask(db, args.second, args.limit))
            for table in tables(db) if args.action == "profile" else ():
                if args.table in ("", table):
                    (count,) = db.execute(f"SELECT count(*) FROM {quote(table)}").fetchone()
                    sys.stdout.write(f"{table}: {count} rows\n{laid_out(profile(db, table))}\n")
    except sqlite3.Error as error:
        sys.exit(f"SQLite says: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
