"""Tasks that a model delegates to child sessions and waits for."""

from __future__ import annotations

import time
from pathlib import Path

from hermes.core.commands import Answer, Interrupt, Say
from hermes.core.events import ApprovalAsked, Record, ToolFinished, ToolProgress
from hermes.core.session import Session
from hermes.testing.faults import paced
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, fails, says
from tests.delegation.family import Script, delegate, delegated, family, say, until


async def test_a_child_session_answers_and_the_parent_sees_only_its_report(tmp_path: Path) -> None:
    scripts = {
        "Go": [delegate("Count the files", context="In this folder."), says("Two files.")],
        "Count": [calls("terminal", command="echo secret-of-the-child"), says("There are two.")],
    }
    async with family(tmp_path, scripts) as own, own.session() as (app, session):
        answer = delegated(await say(session, "Go"))
        (result,) = answer["results"]
        assert (result["status"], result["summary"]) == ("completed", "There are two.")
        assert (result["task_index"], result["api_calls"]) == (0, 2)
        assert result["tokens"]["input"] > 0
        assert [each["tool"] for each in result["tool_trace"]] == ["terminal"]
        first, *_ = own.requests_of("Count")
        assert first.messages[1].text == "Count the files\n\nIn this folder."
        assert "Go" not in first.messages[0].text
        assert "secret-of-the-child" not in own.requests_of("Go")[-1].raw.decode()
        info = await app.archive.info(result["child_session_id"])
        assert (info.parent, info.source, info.end_reason) == (session.id, "subagent", "completed")


async def test_blocked_tools_are_absent_and_others_are_those_of_the_parent(tmp_path: Path) -> None:
    scripts = {"Go": [delegate("Look", toolsets=["file", "memory"]), says("Ok.")]}
    async with family(tmp_path, scripts) as own, own.session() as (_, session):
        await say(session, "Go")
        (look,) = own.requests_of("Look")
        assert set(look.tools) == {"read_file", "write_file", "patch", "search_files"}
        await say(session, "Other")
    everything = {"Go": [delegate("Look"), says("Ok.")]}
    async with family(tmp_path / "2", everything) as own, own.session() as (_, session):
        await say(session, "Go")
        (look,) = own.requests_of("Look")
        blocked = {"delegate_task", "clarify", "memory", "cronjob", "send_message"}
        assert not blocked & set(look.tools)
        assert {"terminal", "process", "todo", "patch"} <= set(look.tools)


async def test_three_children_work_at_the_same_time_and_results_keep_their_order(
    tmp_path: Path,
) -> None:
    seconds = {"A": 1.5, "B": 0.8, "C": 1.0}

    def slow(request: Request) -> Step:
        name = request.messages[1].text[0]
        return paced(says(f"{name} is done."), chunk=0, first_seconds=seconds[name])

    scripts: dict[str, Script] = {"A": slow, "B": slow, "C": slow}
    scripts["Go"] = [delegate("A", "B", "C"), says("Ok.")]
    async with family(tmp_path, scripts) as own, own.session() as (_, session):
        begun = time.monotonic()
        answer = delegated(await say(session, "Go"))
        elapsed = time.monotonic() - begun
        found = [(each["task_index"], each["summary"]) for each in answer["results"]]
        assert found == [(0, "A is done."), (1, "B is done."), (2, "C is done.")]
        assert answer["total_duration_seconds"] < 1.2 * max(seconds.values())
        assert elapsed < sum(seconds.values())


async def test_too_many_tasks_start_nothing(tmp_path: Path) -> None:
    scripts = {"Go": [delegate("A", "B", "C", "D"), says("Ok.")]}
    async with family(tmp_path, scripts) as own, own.session() as (_, session):
        records = await say(session, "Go")
        (refused,) = [r.event.result for r in records if isinstance(r.event, ToolFinished)]
        assert refused.failed
        assert "nothing was started" in refused.text
        assert len(own.server.requests) == 2


async def test_a_leaf_cannot_delegate_and_an_orchestrator_can_if_the_depth_allows(
    tmp_path: Path,
) -> None:
    scripts = {
        "Go": [delegate("Lead", role="orchestrator"), says("Ok.")],
        "Lead": [delegate("Work"), says("Led.")],
    }
    async with family(tmp_path / "1", scripts) as own, own.session() as (_, session):
        answer = delegated(await say(session, "Go"))
        assert answer["notes"] == ["Task 0 runs as a leaf: it may not delegate further."]
        assert "delegate_task" not in own.requests_of("Lead")[0].tools
        assert own.requests_of("Work") == []
    deep = {"delegation__max_spawn_depth": 2}
    async with family(tmp_path / "2", scripts, **deep) as own, own.session() as (app, session):
        answer = delegated(await say(session, "Go"))
        assert "notes" not in answer
        assert "delegate_task" not in own.requests_of("Work")[0].tools
        child = answer["results"][0]["child_session_id"]
        (below,) = (await app.archive.lineage(child)).children
        assert (await app.archive.info(below)).parent == child


async def test_a_failing_child_does_not_affect_its_siblings(tmp_path: Path) -> None:
    scripts: dict[str, Script] = {
        "Go": [delegate("Bad", "Good"), says("Ok.")],
        "Bad": lambda _: fails(400, message="no"),
    }
    async with family(tmp_path, scripts) as own, own.session() as (_, session):
        bad, good = delegated(await say(session, "Go"))["results"]
        assert (bad["status"], good["status"]) == ("error", "completed")
        assert "no" in bad["error"]


async def _stop_when(session: Session, name: str) -> list[Record]:
    """Interrupt the turn once a child session runs this tool."""
    records: list[Record] = []
    events = session.subscribe()
    await session.send(Say(text="Go"))
    async for record in events:
        records.append(record)
        if isinstance(record.event, ToolProgress) and name in record.event.text:
            break
    await session.send(Interrupt())
    await session.wait_until_idle()
    return records


async def test_an_interrupt_ends_all_descendants_soon(tmp_path: Path) -> None:
    sleeping = [calls("terminal", command="sleep 30"), says("Slept.")]
    scripts = {
        "Go": [delegate("Lead", "Nap", role="orchestrator"), says("Ok.")],
        "Lead": [delegate("Sleep"), says("Led.")],
        "Sleep": sleeping,
        "Nap": sleeping,
    }
    deep = {"delegation__max_spawn_depth": 2}
    async with family(tmp_path, scripts, **deep) as own, own.session() as (app, session):
        begun = time.monotonic()
        await _stop_when(session, "terminal sleep")
        await until(lambda: not app.background.delegations.runs)
        ended = {info.end_reason for info in await app.archive.recent(limit=None) if info.parent}
        assert ended == {"interrupted"}
        stopped = time.monotonic()
    assert stopped - begun < 10


async def test_the_parent_session_asks_for_its_children(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.txt"
    scripts = {
        "Go": [delegate("Write"), says("Ok.")],
        "Write": [calls("write_file", path=str(target), content="x"), says("Written.")],
    }
    for choice, expected in (("once", True), ("deny", False)):
        root = tmp_path / choice
        async with family(root, scripts) as own, own.session(attended=True) as (_, session):
            asked: list[ApprovalAsked] = []
            async for record in session.ask(Say(text="Go")):
                if isinstance(record.event, ApprovalAsked):
                    asked.append(record.event)
                    await session.send(Answer(id=record.event.id, text=choice))
            (question,) = asked
            assert question.reason.startswith("Sub-agent [1] (Write): ")
            assert target.exists() is expected
            target.unlink(missing_ok=True)
    async with family(tmp_path / "nobody", scripts) as own, own.session() as (_, session):
        await say(session, "Go")
        assert not target.exists()
        assert "nobody is here" in own.requests_of("Write")[-1].last_text


async def test_files_that_two_children_write_are_reported(tmp_path: Path) -> None:
    def write(text: str) -> list[Step]:
        return [calls("write_file", path="same.txt", content=text), says("Written.")]

    def later(request: Request) -> Step:
        if len(request.messages) > 2:
            return says("Written.")
        return paced(calls("write_file", path="same.txt", content="b"), first_seconds=0.4)

    scripts: dict[str, Script] = {
        "Go": [delegate("A", "B"), says("Ok.")],
        "A": write("a"),
        "B": later,
    }
    async with family(tmp_path, scripts) as own, own.session() as (_, session):
        first, second = delegated(await say(session, "Go"))["results"]
        path = str(own.project / "same.txt")
        assert first["files_changed"] == second["files_changed"] == [path]
        assert "conflicts" not in first
        assert second["conflicts"] == [f"{path} was also changed by task 0; check it."]


async def test_a_long_report_goes_to_a_file(tmp_path: Path) -> None:
    scripts = {"Go": [delegate("Talk"), says("Ok.")], "Talk": [says("word " * 3_000)]}
    short = {"delegation__max_summary_chars": 2_000}
    async with family(tmp_path, scripts, **short) as own, own.session() as (_, session):
        (result,) = delegated(await say(session, "Go"))["results"]
        assert len(result["summary"]) < 2_300
        path = result["summary"].partition("whole text is in ")[2].partition(" ")[0]
        assert _read(Path(path)) == b"word " * 3_000


async def test_an_answer_that_does_not_fit_its_schema_is_corrected_once(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        "required": ["count"],
    }
    tasks = [{"goal": "Good", "output_schema": schema}, {"goal": "Bad", "output_schema": schema}]
    scripts = {
        "Go": [calls("delegate_task", tasks=tasks), says("Ok.")],
        "Good": [says("About two."), says('```json\n{"count": 2}\n```')],
        "Bad": [says("About two."), says('{"count": "two"}'), says("never")],
    }
    async with family(tmp_path, scripts) as own, own.session() as (_, session):
        good, bad = delegated(await say(session, "Go"))["results"]
        assert (good["schema_valid"], good["summary"]) == (True, '```json\n{"count": 2}\n```')
        assert (bad["schema_valid"], bad["summary"]) == (False, '{"count": "two"}')
        assert bad["schema_errors"] == ["$.count must be integer."]
        assert len(own.requests_of("Bad")) == 2


async def test_the_processes_of_a_child_end_with_it(tmp_path: Path) -> None:
    scripts = {
        "Go": [delegate("Serve"), says("Ok.")],
        "Serve": [calls("terminal", command="sleep 987", background=True), says("Started.")],
    }
    async with family(tmp_path, scripts) as own, own.session() as (_, session):
        await say(session, "Go")
    assert _running("sleep", "987") == []


def _running(*words: str) -> list[Path]:
    command = "\0".join(words).encode()
    return [each for each in Path("/proc").glob("[0-9]*/cmdline") if command in _read(each)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_a_child_that_does_nothing_for_long_is_stopped(tmp_path: Path) -> None:
    scripts = {
        "Go": [delegate("Hang"), says("Ok.")],
        "Hang": [calls("terminal", command="sleep 60"), says("Never.")],
    }
    quick = {"delegation__idle_tool_seconds": 1}
    async with family(tmp_path, scripts, **quick) as own, own.session() as (_, session):
        (result,) = delegated(await say(session, "Go"))["results"]
        assert result["status"] == "timeout", result


async def test_a_child_writes_a_live_log_and_shows_progress(tmp_path: Path) -> None:
    scripts = {
        "Go": [delegate("A", "B"), says("Ok.")],
        "A": [calls("terminal", command="echo one"), says("A done.")],
        "B": [calls("terminal", command="echo two"), says("B done.")],
    }
    async with family(tmp_path, scripts) as own, own.session() as (_, session):
        records = await say(session, "Go")
        shown = [r.event.text for r in records if isinstance(r.event, ToolProgress)]
        assert any("[1] terminal echo one" in each for each in shown)
        (folder,) = (tmp_path / "home/cache/delegation/live").iterdir()
        log = (folder / "1.log").read_text()
        assert "→ terminal echo two" in log
        assert "B done." in log


async def test_the_cap_of_a_turn_counts_what_its_child_sessions_spend(tmp_path: Path) -> None:
    """Each child session alone would stay below the cap."""
    busy = [calls("todo", todos=[{"id": "1", "content": "one"}])] * 4 + [says("Done.")]
    scripts: dict[str, Script] = {"A": busy, "B": busy, "C": busy}
    scripts["Go"] = [delegate("A", "B", "C"), says("Ok.")]
    async with family(tmp_path, scripts) as own, own.session() as (app, session):
        free = delegated(await say(session, "Go"))
        used = [sum(each["tokens"].values()) for each in free["results"]]
        everything = sum(
            line.usage.input + line.usage.output for line in await app.archive.spending()
        )
    cap = (everything + max(used)) // 2
    async with (
        family(tmp_path / "2", scripts, budget__task__tokens=cap) as own,
        own.session() as (app, session),
    ):
        capped = delegated(await say(session, "Go"))
        lines = await app.archive.spending()
        assert max(used) < cap
        assert sum(line.usage.input + line.usage.output for line in lines) <= cap
        assert "The cap for one answer" in str(capped)
