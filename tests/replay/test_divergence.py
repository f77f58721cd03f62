"""Whatever is different is named: the record, the place in it, what was and what is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec

from hermes.app.replay import replay
from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.core.effects import ReadPath
from hermes.core.events import DurableEvent, MessageReceived, ToolFinished
from hermes.core.messages import user_says
from hermes.core.tools import Tool, ToolContext, ToolOutput, tool
from hermes.replay.environment import ReplayOverrides
from hermes.replay.expected_events import Divergence
from hermes.replay.recording import Recording
from hermes.testing.provider import ScriptedProvider
from hermes.testing.steps import calls, says
from hermes.tools.files.read import read_file as real_read_file
from tests.replay.recorded import record
from tests.replay.stories import READ, THREE


def place_of(recording: Recording, kind: str, number: int = 1) -> int:
    """The record that is the so-many-th of its kind."""
    return [line.n for line in recording.lines if line.kind == kind][number - 1]


def with_event(recording: Recording, n: int, event: DurableEvent) -> Recording:
    """The same recording, had this been recorded there."""
    lines = list(recording.lines)
    lines[n - 1] = replace(lines[n - 1], body=msgspec.Raw(encode(event)))
    return replace(recording, lines=tuple(lines))


def changed(**attributes: object) -> Tool:
    """read_file as somebody has changed it."""
    made = Tool(
        real_read_file._run,
        effects=real_read_file.effects,
        repeat=real_read_file.repeat,
        interactive=real_read_file.interactive,
    )
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@tool(effects=lambda place, given: (ReadPath(path=place.resolve(given["path"])),), repeat="safe")
async def read_file(ctx: ToolContext, path: Annotated[str, "Other"]) -> ToolOutput:
    """Read."""
    data = await ctx.workspace.read_bytes(ctx.workspace.resolve(path))
    return ToolOutput.text(data.decode().upper())


async def test_another_description_of_a_tool_is_another_first_request(tmp_path: Path) -> None:
    recording = await record(tmp_path, READ, says("Done."))
    report = await replay(
        recording, ReplayOverrides(tools={"read_file": changed(description="Reads files.")})
    )
    assert report.divergence is not None
    assert (report.divergence.n, report.divergence.where) == (
        place_of(recording, "model_called"),
        "request",
    )
    assert re.fullmatch(r"tools\[\d+\]\.function\.description", report.divergence.field)
    assert report.divergence.now == "Reads files."
    assert report.played == report.divergence.n - 1


async def test_a_stricter_schema_refuses_a_call_that_was_run(tmp_path: Path) -> None:
    recording = await record(tmp_path, calls("read_file", path="a.txt", offset=1), says("Done."))
    overrides = ReplayOverrides(tools={"read_file": read_file}, requests_may_differ=True)
    report = await replay(recording, overrides)
    assert report.identical and report.request is not None
    assert re.match(r"tools\[\d+\]\.function\.", report.request.field)


async def test_another_result_of_a_live_tool_is_named(tmp_path: Path) -> None:
    recording = await record(tmp_path, READ, says("Done."))
    overrides = ReplayOverrides(
        tools={"read_file": read_file}, mode="live", requests_may_differ=True
    )
    report = await replay(recording, overrides)
    assert report.divergence == Divergence(
        n=place_of(recording, "tool_finished"),
        kind="tool_finished",
        where="event",
        field="result.parts[0].text",
        recorded="1|alpha\n2|beta",
        now="ALPHA\nBETA\n",
    )


async def test_live_tools_that_do_the_same_change_nothing(tmp_path: Path) -> None:
    write = calls("write_file", path="new.txt", content="new\n")
    shell = calls("terminal", command="mkdir d && cd d && pwd && cat ../new.txt")
    recording = await record(tmp_path, THREE, write, shell, says("Done."))
    folder = tmp_path / "work"
    for name in ("new.txt", "d"):
        path = folder / name
        path.unlink() if path.is_file() else path.rmdir()
    before = sorted(folder.iterdir())
    report = await replay(recording, ReplayOverrides(mode="live"), env={"PATH": "/usr/bin:/bin"})
    assert report.divergence is None and report.hashes == "same"
    assert sorted(folder.iterdir()) == before


async def test_other_words_of_the_person_make_another_request(tmp_path: Path) -> None:
    recording = await record(tmp_path, says("Hello."))
    said = MessageReceived(message=user_says("Stop."))
    report = await replay(with_event(recording, 2, said))
    assert report.divergence is not None
    assert report.divergence.where == "request"
    assert report.divergence.field == "messages[1].content"
    assert (report.divergence.recorded, report.divergence.now) == ("Go.", "Stop.")


async def test_a_result_that_was_tampered_with_makes_another_request(tmp_path: Path) -> None:
    recording = await record(tmp_path, READ, says("Done."))
    n = place_of(recording, "tool_finished")
    finished = recording.lines[n - 1].event
    assert isinstance(finished, ToolFinished)
    parts = (msgspec.structs.replace(finished.result.parts[0], text="1|alpha\n2|BETA"),)
    other = replace(finished, result=replace(finished.result, parts=parts))
    report = await replay(with_event(recording, n, other))
    assert report.divergence is not None
    assert report.divergence.n == place_of(recording, "model_called", 2)
    assert report.divergence.field == "messages[3].content"
    assert report.divergence.recorded.endswith("beta") and report.divergence.now.endswith("BETA")


async def test_an_event_that_never_comes_is_missed(tmp_path: Path) -> None:
    recording = await record(tmp_path, says("Hello."))
    (ended,) = [line for line in recording.lines if line.kind == "turn_ended"]
    again = replace(ended, n=ended.n + 1)
    report = await replay(replace(recording, lines=(*recording.lines, again)))
    assert report.divergence is not None
    assert (report.divergence.n, report.divergence.where) == (again.n, "missing")


async def test_a_record_that_ends_too_early_is_played_as_far_as_it_goes(tmp_path: Path) -> None:
    recording = await record(tmp_path, READ, says("Done."))
    moments = [line.at for line in recording.lines]
    ends = [end for end in range(2, len(moments)) if moments[end] != moments[end - 1]]
    assert len(ends) >= 4
    for end in ends:
        report = await replay(replace(recording, lines=recording.lines[:end]))
        assert report.divergence is None, end
        assert (report.played, report.hashes) == (end, "same")


async def test_behind_a_divergence_somebody_else_goes_on(tmp_path: Path) -> None:
    recording = await record(tmp_path, READ, says("Done."))
    then = ScriptedProvider(READ, says("In another voice."))
    overrides = ReplayOverrides(system="You speak in another voice.", continue_with=then)
    report = await replay(recording, overrides)
    assert report.divergence is not None
    assert report.divergence.n == place_of(recording, "model_called")
    assert report.divergence.field == "messages[0].content"
    kinds = [type(record.event).__name__ for record in report.after]
    assert kinds[-1] == "TurnEnded" and "ToolFinished" in kinds
    texts = [getattr(getattr(r.event, "message", None), "text", "") for r in report.after]
    assert "In another voice." in texts
    (result,) = [r.event.result for r in report.after if isinstance(r.event, ToolFinished)]
    assert result.text == "1|alpha\n2|beta"


async def test_a_call_that_was_never_made_has_no_result_in_a_rehearsal(tmp_path: Path) -> None:
    recording = await record(tmp_path, READ, says("Done."))
    then = ScriptedProvider(calls("read_file", path="b.txt"), says("Well."))
    report = await replay(recording, ReplayOverrides(system="Other.", continue_with=then))
    (result,) = [r.event.result for r in report.after if isinstance(r.event, ToolFinished)]
    assert result.failed and "never made in the recording" in result.text


async def test_without_tapes_replies_come_from_the_records(tmp_path: Path) -> None:
    recording = await record(tmp_path, READ, says("Done."))
    report = await replay(replace(recording, tapes=()))
    assert (report.divergence, report.hashes, report.requests) == (None, "same", 0)
    assert len(report.words) == 1 and "replies were taken from the records" in report.words[0]
