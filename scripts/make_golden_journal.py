"""Write a golden journal with one event of every durable kind: its SQL and its export.

`python -m scripts.make_golden_journal NAME` adds `format-N-NAME` to tests/journal/golden.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

from msgspec import inspect

from hermes.codec.json import convert
from hermes.core.commands import Say
from hermes.core.events import DurableEvent, ReplyAdded, SessionOpened
from hermes.core.messages import AssistantMessage, Text, Usage
from hermes.core.world import World
from hermes.journal.export import all_ids, export_lines
from hermes.journal.journal import SqliteJournal
from hermes.journal.schema import FORMAT
from hermes.testing.clock import VirtualClock

GOLDEN = Path(__file__).parent.parent / "tests/journal/golden"
OPENED = SessionOpened(
    source="cli", cwd="/work/plan", model="small-1", provider="acme", system="You help."
)
INTERRUPTED = ReplyAdded(
    message=AssistantMessage(parts=(Text(text="One, two, th"),), stop="interrupted"),
    usage=Usage(),
    model="small-1",
    provider="acme",
)


def sample_of(kind: inspect.Type) -> Any:
    """A value of this type in plain JSON, with every optional field set."""
    match kind:
        case inspect.StructType(fields=fields, tag=tag, tag_field=tag_field):
            values = {field.encode_name: sample_of(field.type) for field in fields}
            return {tag_field: tag, **values} if tag_field else values
        case inspect.UnionType(types=types):
            return sample_of(next(each for each in types if not isinstance(each, inspect.NoneType)))
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.VarTupleType(item_type=item_type):
            return [sample_of(item_type)]
        case inspect.DictType():
            return {"key": "value"}
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 1
        case inspect.FloatType():
            return 0.5
        case inspect.StrType() | inspect.AnyType():
            return "text"
        case _:
            raise TypeError(f"sample_of has no value for {kind}; add a case.")


def sample_events() -> list[DurableEvent]:
    """One event of every kind except the opening one, which begins the session, and a reply that a
    person interrupted."""
    kinds = [kind for kind in get_args(DurableEvent) if kind is not SessionOpened]
    samples = [convert(kind, sample_of(inspect.type_info(kind))) for kind in kinds]
    return [*samples, INTERRUPTED]


async def write_golden(folder: Path, name: str) -> Path:
    """Write `name`.sql and `name`.jsonl; FileExistsError, because old ones are never changed."""
    target = folder / f"{name}.sql"
    with tempfile.TemporaryDirectory() as home:
        path = Path(home, "hermes.db")
        world = World(clock=VirtualClock(), chance=random.Random(0))
        async with SqliteJournal(path, world) as journal:
            lease, _ = await journal.create("golden-one", [OPENED])
            await journal.append(lease, sample_events(), turn_id="turn_1")
            await journal.release(lease)
            await journal.post("golden-one", Say(text="Are you there?", key="m9"), key="m9")
            ids = await all_ids(journal)
            lines = [line async for line in export_lines(journal, ids)]
        with closing(sqlite3.connect(path)) as db, target.open("x", encoding="utf-8") as file:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            file.write("\n".join((*db.iterdump(), f"PRAGMA user_version = {version};\n")))
    target.with_suffix(".jsonl").write_bytes(b"".join(lines))
    return target


if __name__ == "__main__":
    print(asyncio.run(write_golden(GOLDEN, f"format-{FORMAT}-{sys.argv[1]}")))
