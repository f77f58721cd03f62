"""A slow reader gets everything and holds nobody up."""

from __future__ import annotations

from hermes.core.events import Event, Record, TitleChanged, ToolProgress
from hermes.core.prompt import ReasoningDelta, TextDelta
from hermes.core.recorder import Subscription


def record(event: Event) -> Record:
    return Record(session_id="s", n=0, turn_id="t", at=0.0, event=event)


async def read(*events: Event) -> list[Event]:
    reader = Subscription(lambda _: None)
    for event in events:
        reader.push(record(event))
    reader.close()
    return [each.event async for each in reader]


async def test_waiting_deltas_become_one_and_everything_else_stays() -> None:
    deltas = [TextDelta(text=str(number % 10)) for number in range(10_000)]
    seen = await read(
        *deltas, ReasoningDelta(text="a"), ReasoningDelta(text="b"), TitleChanged(title="x")
    )
    assert seen == [
        TextDelta(text="0123456789" * 1000),
        ReasoningDelta(text="ab"),
        TitleChanged(title="x"),
    ]


async def test_only_the_newest_progress_of_a_call_is_kept() -> None:
    seen = await read(
        ToolProgress(call_id="1", text="a"),
        ToolProgress(call_id="1", text="b"),
        ToolProgress(call_id="2", text="c"),
    )
    assert seen == [ToolProgress(call_id="1", text="b"), ToolProgress(call_id="2", text="c")]
