"""Compares loans: payment, whole cost and the yearly rate that includes the fees.

python3 loans.py NAME:AMOUNT:RATE:MONTHS[:FEE] ... [--extra PAYMENT]

RATE is the nominal rate in percent a year; FEE is paid at the start; PAYMENT is added each month.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

MOST_MONTHS = 1200


class Loan(NamedTuple):
    name: str
    amount: float
    rate: float
    months: int
    fee: float = 0.0

    @property
    def payment(self) -> float:
        """The same each month, interest first."""
        monthly = self.rate / 1200
        # Below this the formula divides two numbers that are nearly nothing.
        if monthly < 1e-9:
            return self.amount / self.months
        return self.amount * monthly / (1 - (1 + monthly) ** -self.months)


class Course(NamedTuple):
    """The payments, month by month."""

    payments: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.payments)


def course(loan: Loan, extra: float) -> Course:
    debt, paid = loan.amount, []
    for _ in range(MOST_MONTHS):
        owed = debt * (1 + loan.rate / 1200)
        paid.append(min(owed, loan.payment + extra))
        debt = owed - paid[-1]
        if debt < 0.005:
            break
    return Course(tuple(paid))


def effective(loan: Loan, payments: tuple[float, ...]) -> float:
    """Return the yearly rate at which the payments are worth what was really handed out."""
    received = loan.amount - loan.fee

    def worth(monthly: float) -> float:
        return sum(each / (1 + monthly) ** number for number, each in enumerate(payments, 1))

    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if worth(middle) > received else (low, middle)
    return float(((1 + low) ** 12 - 1) * 100)


def parse_loan(text: str) -> Loan:
    name, *rest = text.split(":")
    try:
        amount, rate, months, fee = (float(each) for each in (*rest, "0")[:4])
        loan = Loan(name, amount, rate, int(months), fee)
    except ValueError:
        sys.exit(f"{text!r} is not NAME:AMOUNT:RATE:MONTHS[:FEE].")
    if loan.amount <= loan.fee or loan.months < 1 or loan.rate < 0 or loan.fee < 0:
        sys.exit(f"{text!r} cannot be repaid.")
    return loan


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("loans", nargs="+")
    options.add_argument("--extra", type=float, default=0.0)
    args = options.parse_args()
    offers = [parse_loan(each) for each in args.loans]
    width = max(4, *(len(each.name) for each in offers))
    sys.stdout.write(f"{'name':{width}}  monthly  months  total paid  whole cost  effective\n")
    courses = [(loan, course(loan, args.extra)) for loan in offers]
    for loan, way in sorted(courses, key=lambda pair: pair[1].total + pair[0].fee):
        cost = way.total + loan.fee - loan.amount
        sys.stdout.write(
            f"{loan.name:{width}} {loan.payment + args.extra:8.2f} {len(way.payments):7}"
            f" {way.total + loan.fee:11.2f} {cost:11.2f} {effective(loan, way.payments):9.2f}%\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
