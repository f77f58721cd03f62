"""Sorts bookings of an account into categories by rules, and sums them by month.

python3 bookings.py STATEMENT.csv RULES.csv [--date COLUMN] [--text COLUMN] [--amount COLUMN]

RULES.csv has the columns pattern and category; the first pattern found in a text counts.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter, defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

UNSORTED = "(unsorted)"


class Booking(NamedTuple):
    day: str
    text: str
    amount: Decimal
    category: str


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def read(path: Path, rules: Path, day: str, text: str, amount: str) -> list[Booking]:
    patterns = [(re.compile(row["pattern"], re.I), row["category"]) for row in rows(rules)]
    bookings = []
    for number, row in enumerate(rows(path), 2):
        try:
            value = Decimal(row[amount])
        except KeyError as error:
            sys.exit(f"There is no column {error}; there are: {', '.join(row)}")
        except InvalidOperation:
            sys.exit(f"Row {number}: {row[amount]!r} is not an amount; clean the file first.")
        if not re.match(r"\d{4}-\d\d-\d\d", row[day]):
            sys.exit(f"Row {number}: {row[day]!r} is not a date like 2025-03-31.")
        category = next((name for each, name in patterns if each.search(row[text])), UNSORTED)
        bookings.append(Booking(row[day][:10], row[text], value, category))
    return bookings


def table(bookings: list[Booking]) -> str:
    """Format a table: a row per category, a column per month, and the balance of each month."""
    months = sorted({each.day[:7] for each in bookings})
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for each in bookings:
        # Whole cents, so that nothing is lost in adding.
        cents = int((each.amount * 100).to_integral_value())
        sums[each.category][each.day[:7]] += cents
        sums["= left"][each.day[:7]] += cents
    order = sorted(sums, key=lambda name: (name == "= left", sum(sums[name].values())))
    width = max(map(len, order))
    lines = [" " * width + "".join(f"{month:>12}" for month in (*months, "mean"))]
    for name in order:
        amounts = [sums[name][month] for month in months]
        amounts.append(round(sum(amounts) / len(months)))
        lines.append(name.ljust(width) + "".join(f"{each / 100:12.2f}" for each in amounts))
    return "\n".join(lines)


def payee(text: str) -> str:
    return " ".join(re.sub(r"[\W\d_]+", " ", text.lower()).split()[:3])


def recurring(bookings: list[Booking]) -> list[str]:
    """List payees that were paid about the same in at least three months."""
    by_payee: dict[str, list[Booking]] = defaultdict(list)
    for each in bookings:
        if each.amount < 0:
            by_payee[payee(each.text)].append(each)
    payees = []
    for name, paid in by_payee.items():
        months = {each.day[:7] for each in paid}
        least, most = max(each.amount for each in paid), min(each.amount for each in paid)
        if len(months) >= 3 and len(paid) == len(months) and most >= least * Decimal("1.2"):
            payees.append(f"{paid[-1].amount:10.2f}  {name} ({len(months)} months)")
    return sorted(payees)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("statement", type=Path)
    options.add_argument("rules", type=Path)
    options.add_argument("--date", default="date")
    options.add_argument("--text", default="text")
    options.add_argument("--amount", default="amount")
    args = options.parse_args()
    bookings = read(args.statement, args.rules, args.date, args.text, args.amount)
    if not bookings:
        sys.exit("The statement has no bookings.")
    sys.stdout.write(table(bookings) + "\n")
    if lines := recurring(bookings):
        sys.stdout.write("\nEvery month:\n" + "\n".join(lines) + "\n")
    unknown = Counter(payee(each.text) for each in bookings if each.category == UNSORTED)
    if unknown:
        sys.stdout.write(f"\nUnsorted ({unknown.total()} of {len(bookings)}):\n")
        sys.stdout.writelines(f"{count:4}  {name}\n" for name, count in unknown.most_common(20))
    return 0


if __name__ == "__main__":
    sys.exit(main())
