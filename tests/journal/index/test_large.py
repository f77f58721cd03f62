"""A store of many segments, in which not everything can be looked at."""

from __future__ import annotations

import random
import re
from pathlib import Path

from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.index.upkeep import Sizes
from tests.journal.index.diary import Diary

MESSAGES = 20_400
PER_SESSION = 40
EVERYWHERE = ("the", "file", "term", "terms", "terminal", "to", "of", "and", "value", "set")
RARE = ("kilora", "limato", "miketo", "novemra")


def texts(chance: random.Random) -> list[str]:
    """One in fifty has a rare word, alone or as the beginning of an identifier."""
    found = []
    for _ in range(MESSAGES):
        words = chance.choices(EVERYWHERE, k=chance.randrange(2, 12))
        if chance.random() < 0.02:
            sign = chance.choice((" ", "_", ", "))
            words[0] = f"{chance.choice(RARE)}{sign}{words[0]}"
        found.append(" ".join(words))
    return found


async def test_what_must_stand_together_is_found_as_if_all_were_read(
    diary: Diary, index_path: Path
) -> None:
    said = texts(random.Random(4))
    ids = []
    for start in range(0, MESSAGES, PER_SESSION):
        ids += diary.say_all(said[start : start + PER_SESSION], session=f"s{start}")
    sizes = Sizes(draft=2_048, segment=8_192)
    index = SearchIndex(index_path, JournalFile(diary.path), sizes=sizes)
    await index.catch_up()
    for rare in RARE:
        for query, pattern in (
            (f"{rare}_term", rf"\b{rare}[\W_]+term"),
            (f"{rare}_t", rf"\b{rare}[\W_]+t"),
            (f'"{rare} value"', rf"\b{rare}[\W_]+value\b"),
            (f'"{rare} the"', rf"\b{rare}[\W_]+the\b"),
        ):
            having = {id for id, text in zip(ids, said, strict=True) if re.search(pattern, text)}
            hits = {hit.event_id for hit in await index.search(query, limit=1_000)}
            assert hits == having != set(), query
