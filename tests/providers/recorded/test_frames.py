"""A tape is read back as far as it was written, whatever became of its end."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.recorded.frames import (
    FrameEncoder,
    RecordedExchange,
    TapeFrame,
    TapeModel,
    TapeRun,
    decode_frames,
    diff_body,
    restore_body,
)

FRAMES: list[TapeFrame] = [
    TapeRun(version="1", after=3, at=1.5, facts={"settings": {"a": [1, None, "ä"]}}),
    TapeModel(model="m", provider="p", facts={}),
    RecordedExchange(
        url="http://h/v1/messages", body=b"{}" * 500, digest=b"d" * 16, answer=b"\xff\x00"
    ),
    RecordedExchange(url="u", body=b"", digest=b"", status=200, sizes=(1, 2), times=(0, 5, 9)),
]


def packed() -> list[bytes]:
    packing = FrameEncoder()
    return [packing.encode(frame) for frame in FRAMES]


def test_what_was_packed_is_unpacked() -> None:
    assert list(decode_frames(b"".join(packed()))) == FRAMES


def test_a_torn_tail_costs_only_the_frame_that_it_belongs_to() -> None:
    parts = packed()
    whole = b"".join(parts)
    ends = [sum(map(len, parts[:count])) for count in range(len(parts) + 1)]
    for size in range(len(whole) + 1):
        found = list(decode_frames(whole[:size]))
        assert found == FRAMES[: len(found)]
        assert len(found) >= sum(end <= size for end in ends[1:])


@given(st.binary(max_size=200))
def test_strange_bytes_are_frames_that_are_not_finished_or_damage(data: bytes) -> None:
    with suppress(ValueError):
        assert list(decode_frames(data)) == []


@given(st.data())
def test_a_damaged_byte_is_noticed(data: st.DataObject) -> None:
    whole = bytearray(b"".join(packed()))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    found = []
    try:
        for frame in decode_frames(bytes(whole)):
            found.append(frame)
    except ValueError:
        assert found == FRAMES[: len(found)]
    else:
        assert found == FRAMES


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60), st.binary())
def test_a_request_is_restored_from_what_it_does_not_share(
    head: bytes, old: bytes, new: bytes, tail: bytes
) -> None:
    before, now = head + old + tail, head + new + tail
    shared = diff_body(before, now)
    assert restore_body(before, *shared[:2], shared.body) == now
    assert len(shared.body) <= len(now)


def test_what_two_requests_share_is_found_at_both_ends() -> None:
    assert diff_body(b"abcXYdef", b"abcZdef") == (3, 3, b"Z")
    assert diff_body(b"aaaa", b"aaaaaa") == (4, 0, b"aa")
    assert diff_body(b"", b"new") == (0, 0, b"new")
