"""Bodies are stored in parts and come back byte for byte."""

from __future__ import annotations

import sqlite3
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.codec.json import encode
from hermes.core.events import DurableEvent, MessageReceived, ReplyAdded, SessionEnded, TitleChanged
from hermes.core.messages import AssistantMessage, Reasoning, Text, ToolCall, Usage, UserMessage
from hermes.journal import schema
from hermes.journal.body_templates import CURRENT, KINDS, TEMPLATES, encode_event, event_of
from tests.journal.samples import exchange, opened, replied, said

TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)
PARTS = st.one_of(
    st.builds(Text, text=TEXTS),
    st.builds(Reasoning, text=TEXTS, issuer=TEXTS),
    st.builds(ToolCall, id=TEXTS, name=TEXTS, arguments=st.dictionaries(TEXTS, TEXTS)),
)
EVENTS: st.SearchStrategy[DurableEvent] = st.one_of(
    st.builds(
        MessageReceived,
        message=st.builds(
            UserMessage,
            parts=st.lists(st.builds(Text, text=TEXTS), max_size=3).map(tuple),
            origin=TEXTS,
        ),
        key=TEXTS,
        steer=st.booleans(),
    ),
    st.builds(
        ReplyAdded,
        message=st.builds(AssistantMessage, parts=st.lists(PARTS, max_size=3).map(tuple)),
        usage=st.builds(Usage, input=st.integers(0, 9), cost=st.none() | st.floats(0, 9)),
        model=TEXTS,
        provider=TEXTS,
    ),
    st.builds(TitleChanged, title=TEXTS),
    st.builds(SessionEnded, reason=TEXTS),
)


def body_in_view(event: DurableEvent) -> tuple[str, int, bytes]:
    item = encode_event(event)
    db = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(db)
    row = (1, 1, 1, "", item.template, item.rest, 0.0, b"")
    db.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    found = db.execute("SELECT kind, version, CAST(body AS BLOB) FROM events").fetchone()
    db.close()
    kind, version, body = found
    return kind, version, body


@settings(max_examples=150, deadline=None)
@given(EVENTS)
def test_any_event_comes_back(event: DurableEvent) -> None:
    kind, version, body = body_in_view(event)
    assert (kind, version, body) == (KINDS[type(event)], CURRENT[kind], encode(event))
    assert event_of(kind, version, body) == event


def test_every_kind_has_a_shape_that_fits_all() -> None:
    for event in get_args(DurableEvent):
        kind = KINDS[event]
        assert (kind, f'{{"type":"{kind}"'.encode(), b"}") in {
            (shape.kind, shape.head, shape.tail) for shape in TEMPLATES
        }


def test_what_messages_share_is_not_stored_with_each() -> None:
    assert encode_event(said("Hello")).rest == "Hello"
    assert encode_event(said("Hello", key="m1")).rest == 'Hello"}]},"key":"m1'
    assert encode_event(replied("Hello")).rest.startswith('Hello"}')
    turn = [encode_event(event) for event in exchange(1, 2)]
    assert sum(len(item.rest) for item in turn) < 0.6 * sum(len(item.body) for item in turn)
    assert encode_event(opened()).rest.startswith("cli")


def test_shapes_never_move() -> None:
    # The numbers are stored with every record: a change here makes old journals unreadable.
    assert len(TEMPLATES) >= 35
    assert [TEMPLATES[number - 1].kind for number in (1, 5, 9, 18, 22, 28, 35)] == [
        "session_opened",
        "message_received",
        "reply_added",
        "turn_ended",
        "message_received",
        "reply_added",
        "turn_ended",
    ]
