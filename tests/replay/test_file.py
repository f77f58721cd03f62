"""A recording is one file that can be sent to somebody: whole, or refused."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.app.replay import replay
from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import UsageError
from hermes.replay.recording import Recording, lines_of, load, pack_recording
from hermes.testing.faults import dripped
from hermes.testing.steps import calls, says
from tests.replay.recorded import record
from tests.replay.stories import BIG, THREE
from tests.replay.story_players import forked, killed


@pytest.fixture
async def recording(tmp_path: Path) -> Recording:
    letters = dripped(says("naïve 🙂 日本語"), size=3)
    return await record(tmp_path / "home", THREE, letters)


async def test_what_was_packed_is_read_back_as_it_was(recording: Recording, tmp_path: Path) -> None:
    for name, data in (
        ("a.gz", pack_recording(recording)),
        ("b.jsonl", b"".join(lines_of(recording))),
    ):
        tmp_path.joinpath(name).write_bytes(data)
        assert load(tmp_path / name) == recording
    assert pack_recording(recording) == pack_recording(recording)


async def test_a_file_is_played_from_any_folder(recording: Recording, tmp_path: Path) -> None:
    file = tmp_path / "shared.gz"
    file.write_bytes(pack_recording(recording))
    report = await replay(file)
    assert (report.divergence, report.hashes) == (None, "same")


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.999])
async def test_a_file_that_was_cut_is_refused(
    recording: Recording, tmp_path: Path, share: float
) -> None:
    for data in (pack_recording(recording), b"".join(lines_of(recording))):
        file = tmp_path / "cut"
        file.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(UsageError):
            load(file)


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"{}\n", b'{"end":0}\n', gzip.compress(b"x", mtime=0)]
)
def test_any_other_file_is_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_bytes(data)
    with pytest.raises(UsageError, match="other"):
        load(file)


async def test_texts_that_were_put_aside_travel_with_the_file(tmp_path: Path) -> None:
    settings = "tool_output: {max_bytes: 500000, max_lines: 9000}\n"
    recording = await record(
        tmp_path / "home", calls("terminal", command=BIG), says("Long."), settings=settings
    )
    ((path, text),) = recording.saved_results.items()
    assert text.count("\n") > 2_000
    os.unlink(path)  # noqa: PTH108
    file = tmp_path / "shared.gz"
    file.write_bytes(pack_recording(recording))
    assert (await replay(file)).divergence is None


async def test_a_branch_stands_alone_in_its_file(tmp_path: Path) -> None:
    steps = (says("One."), says("Two."), THREE, says("Three."))
    recording = await record(tmp_path / "home", *steps, play=forked)
    assert recording.shared == 6
    file = tmp_path / "branch.gz"
    file.write_bytes(pack_recording(recording))
    assert (await replay(file)).hashes == "same"


async def test_a_session_that_died_and_was_never_opened_again_is_played(tmp_path: Path) -> None:
    play = killed("tool.started", then="")
    recording = await record(tmp_path / "home", THREE, says("Never said."), play=play)
    report = await replay(recording)
    assert (report.divergence, report.hashes) == (None, "same")


def rewritten(recording: Recording, change: Callable[[list[JsonObject]], None]) -> bytes:
    """The file after a change of its entries, by somebody who also repairs its last line."""
    entries = [decode(dict[str, object], line) for line in lines_of(recording)]
    change(entries)
    entries[-1] = {"end": len(entries) - 1}
    return b"".join(encode(entry) + b"\n" for entry in entries)


def _records(entries: list[JsonObject]) -> list[int]:
    return [position for position, entry in enumerate(entries) if "record" in entry]


def swap(entries: list[JsonObject]) -> None:
    first, second = _records(entries)[3:5]
    entries[first], entries[second] = entries[second], entries[first]


def swap_under_each_other_number(entries: list[JsonObject]) -> None:
    first, second = (entries[position]["record"] for position in _records(entries)[3:5])
    first["n"], second["n"] = second["n"], first["n"]
    swap(entries)


def edit_hash(entries: list[JsonObject]) -> None:
    record = entries[_records(entries)[4]]["record"]
    record["hash"] = record["hash"][::-1]


def drop_hashes(entries: list[JsonObject]) -> None:
    for position in _records(entries):
        entries[position]["record"].pop("hash", None)


def edit_time(entries: list[JsonObject]) -> None:
    entries[_records(entries)[2]]["record"]["at"] += 1


def drop_record(entries: list[JsonObject]) -> None:
    del entries[_records(entries)[-1]]
    del entries[_records(entries)[5]]


def spoil_request(entries: list[JsonObject]) -> None:
    exchange = next(entry["exchange"] for entry in entries if "exchange" in entry)
    exchange["digest"] = "not hexadecimal"


@pytest.mark.parametrize(
    "change",
    [
        swap,
        swap_under_each_other_number,
        edit_hash,
        drop_hashes,
        edit_time,
        drop_record,
        spoil_request,
    ],
)
async def test_a_file_that_was_changed_is_named_as_damaged(
    recording: Recording, tmp_path: Path, change: Callable[[list[JsonObject]], None]
) -> None:
    file = tmp_path / "changed.jsonl"
    file.write_bytes(rewritten(recording, change))
    with pytest.raises(UsageError, match="is damaged"):
        load(file)


async def test_an_answer_that_was_changed_is_named_as_damage(
    recording: Recording, tmp_path: Path
) -> None:
    file = tmp_path / "changed.jsonl"
    data = b"".join(lines_of(recording))
    spoiled = data.replace(b'"status":200', b'"status":201', 1)
    assert spoiled != data
    file.write_bytes(spoiled)
    with pytest.raises(UsageError, match="changed after the export"):
        load(file)
