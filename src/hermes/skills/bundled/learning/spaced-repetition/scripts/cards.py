"""A deck of cards in one JSON file: what is due today, and when each card comes again.

python3 cards.py DECK.json add FRONT BACK
python3 cards.py DECK.json import FILE.csv          columns front and back
python3 cards.py DECK.json due [--limit N]
python3 cards.py DECK.json answer ID again|hard|good|easy
python3 cards.py DECK.json stats
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

Card = dict[str, Any]
FIRST = {"again": 0, "hard": 1, "good": 1, "easy": 4}
# A card that is failed this often is badly made, not hard.
LONGEST = 36_500  # A hundred years; further on the calendar ends.
LEECH = 6


def load(path: Path) -> list[Card]:
    if not path.exists():
        return []
    cards: list[Card] = json.loads(path.read_text(encoding="utf-8"))
    return cards


def save(path: Path, cards: list[Card]) -> None:
    draft = path.with_name(path.name + ".new")
    draft.write_text(json.dumps(cards, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


def add(cards: list[Card], front: str, back: str, today: date) -> bool:
    """Add a card; return False when there is a card with this front."""
    if not front.strip() or not back.strip() or any(each["front"] == front for each in cards):
        return False
    number = max((each["id"] for each in cards), default=0) + 1
    fresh = {"id": number, "front": front, "back": back, "due": today.isoformat()}
    cards.append({**fresh, "days": 0, "ease": 2.5, "seen": 0, "failed": 0})
    return True


def due(cards: list[Card], today: date) -> list[Card]:
    """Return the due cards: the longest overdue first, those never seen last."""
    due_cards = [each for each in cards if each["due"] <= today.isoformat()]
    return sorted(due_cards, key=lambda each: (each["seen"] == 0, each["due"], each["id"]))


def answer(card: Card, grade: str, today: date) -> None:
    """Schedule the card: for today after a failure, else after a gap that grows by its ease."""
    if grade == "again":
        card["failed"] += 1
        card["ease"] = max(1.3, card["ease"] - 0.2)
        card["days"] = 0
    elif card["days"] == 0:
        card["days"] = FIRST[grade]
    else:
        grown = {"hard": 1.2, "good": card["ease"], "easy": card["ease"] * 1.3}[grade]
        card["days"] = min(LONGEST, max(card["days"] + 1, round(card["days"] * grown)))
        change = {"hard": -0.15, "good": 0.0, "easy": 0.15}[grade]
        card["ease"] = round(max(1.3, card["ease"] + change), 2)
    card["seen"] += 1
    card["due"] = (today + timedelta(days=card["days"])).isoformat()


def stats(cards: list[Card], today: date) -> str:
    week = (today + timedelta(days=7)).isoformat()
    leeches = [str(each["id"]) for each in cards if each["failed"] >= LEECH]
    return (
        f"{len(cards)} cards, {len(due(cards, today))} due,"
        f" {sum(each['due'] <= week for each in cards)} within a week,"
        f" {sum(each['seen'] == 0 for each in cards)} new,"
        f" {sum(each['days'] >= 21 for each in cards)} known well"
        + (f"; rewrite: {', '.join(leeches)}" if leeches else "")
    )


def import_cards(cards: list[Card], path: Path, today: date) -> str:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    added = sum(add(cards, row["front"], row["back"], today) for row in rows)
    return f"{added} added, {len(rows) - added} were there or empty"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("deck", type=Path)
    options.add_argument("action", choices=("add", "import", "due", "answer", "stats"))
    options.add_argument("words", nargs="*")
    options.add_argument("--limit", type=int, default=20)
    options.add_argument("--today", type=date.fromisoformat)
    args = options.parse_args()
    today = args.today or datetime.now().astimezone().date()
    cards = load(args.deck)
    match args.action, args.words:
        case "add", [front, back]:
            message = (
                "added" if add(cards, front, back, today) else "was there already, or is empty"
            )
        case "import", [file]:
            message = import_cards(cards, Path(file), today)
        case "due", []:
            lines = [f"{c['id']}\t{c['front']}\t{c['back']}" for c in due(cards, today)]
            message = "\n".join(lines[: args.limit]) or "nothing is due"
        case "answer", [number, grade] if grade in FIRST:
            card = next((each for each in cards if str(each["id"]) == number), None)
            if card is None:
                sys.exit(f"There is no card {number}.")
            answer(card, grade, today)
            message = f"again on {card['due']}"
        case "stats", []:
            message = stats(cards, today)
        case _:
            options.error("the words do not fit the action")
    if args.action in ("add", "import", "answer"):
        save(args.deck, cards)
    sys.stdout.write(message + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
