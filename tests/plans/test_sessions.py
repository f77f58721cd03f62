"""Plans in a session: from the goal to the answer, with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.core.commands import Answer, Interrupt, Say
from hermes.core.events import (
    InnerCallFinished,
    InnerCallIntended,
    QuestionAsked,
    Record,
    ToolFinished,
    ToolProgress,
    TurnEnded,
)
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.plans.planner import RULES
from hermes.testing.request import Request
from hermes.testing.steps import Step, says
from tests.context.ground import Stage, stage


class PlanStage:
    """`plans` answers requests for plans, in order; `steps` those of `llm` steps."""

    def __init__(self, ground: Stage) -> None:
        self.ground = ground
        self.project = ground.project
        self.plans: list[str] = []
        self.steps: Callable[[str], str] = lambda prompt: f"about {prompt}"
        self.records: list[Record] = []
        self.answers: list[str] = []
        self.asked: list[str] = []
        self.on_event: Callable[[Session, Record], None] = lambda _session, _record: None
        self.planning: list[str] = []

    def step(self, request: Request) -> Step:
        system = request.messages[0].text
        if system == RULES:
            self.planning.append(request.messages[-1].text)
            return says(self.plans.pop(0))
        if system.startswith("You complete one step"):
            return says(self.steps(request.messages[-1].text))
        return says("The answer.")

    async def run(self, resume: str = "", **arguments: object) -> ToolResult:
        call = ToolCall(id="call_1", name="plan", arguments={"action": "run", **arguments})
        async with self.ground.app() as app:
            request = SessionRequest(
                source="test", attended=True, cwd=str(self.project), resume=resume
            )
            session = await app.open(request)
            self.session_id = session.id
            self.records = []
            async for record in session.ask(Say(text="/plan it", calls=(call,))):
                self.records.append(record)
                self.on_event(session, record)
                if isinstance(record.event, QuestionAsked) and self.answers:
                    self.asked.append(record.event.question)
                    await session.send(Answer(id=record.event.id, text=self.answers.pop(0)))
        return self.results[-1]

    @property
    def results(self) -> list[ToolResult]:
        events = (record.event for record in self.records)
        return [event.result for event in events if isinstance(event, ToolFinished)]

    @property
    def made(self) -> list[str]:
        events = (record.event for record in self.records)
        return [event.key for event in events if isinstance(event, InnerCallIntended)]

    def statuses(self) -> dict[str, str]:
        plan: JsonObject = self.results[-1].details["plan"]
        return {name: state.get("status", "pending") for name, state in plan["states"].items()}


@asynccontextmanager
async def plan_stage(root: Path, **flags: str) -> AsyncIterator[PlanStage]:
    made: list[PlanStage] = []
    rule = lambda request: made[0].step(request)  # noqa: E731
    async with stage(root, rule, window=128_000, notes=None, **flags) as ground:
        made.append(PlanStage(ground))
        yield made[0]


def plan_of(*steps: JsonObject) -> str:
    return json.dumps({"steps": steps})


READ: JsonObject = {"step_id": "a", "tool_name": "read_file", "parameters": {"path": "a.txt"}}
LLM: JsonObject = {"step_id": "b", "tool_name": "llm", "parameters": {"prompt": "Sum up ${a}"}}
WRITE: JsonObject = {
    "step_id": "c",
    "tool_name": "write_file",
    "parameters": {"path": "out.txt", "content": "${b}\n"},
}


async def test_a_goal_becomes_a_plan_and_an_answer(tmp_path: Path) -> None:
    async with plan_stage(tmp_path) as played:
        (played.project / "a.txt").write_text("hello")
        played.plans = [plan_of(READ, LLM, WRITE)]
        played.answers = ["run"]
        result = await played.run(goal="Sum up a.txt in out.txt")
        assert result.details["status"] == "completed"
        assert (played.project / "out.txt").read_text() == "about Sum up 1|hello\n"
        assert len(played.asked) == 1
        assert "Run this plan?" in played.asked[0]
        assert played.made == ["draft.0", "confirm.0", "a.v1.1", "b.v1.1", "c.v1.1"]
        assert "read_file(path: string" in played.planning[0]
        shown = [r.event for r in played.records if isinstance(r.event, ToolProgress)]
        assert [item["status"] for item in shown[-1].details["todos"]] == ["completed"] * 3
        ended = [r.event for r in played.records if isinstance(r.event, TurnEnded)]
        assert ended[-1].reason == "done"


async def test_an_invalid_plan_is_corrected_before_anything_runs(tmp_path: Path) -> None:
    async with plan_stage(tmp_path) as played:
        (played.project / "a.txt").write_text("hello")
        wrong = {**READ, "tool_name": "reed_file"}
        played.plans = ["I cannot.", plan_of(wrong, LLM), plan_of(READ, LLM)]
        result = await played.run(goal="Sum up a.txt")
        assert result.details["status"] == "completed"
        assert "Did you mean read_file" in played.planning[2]
        assert played.made == ["draft.0", "draft.1", "draft.2", "a.v1.1", "b.v1.1"]


async def test_a_plan_that_stays_invalid_runs_nothing(tmp_path: Path) -> None:
    async with plan_stage(tmp_path) as played:
        played.plans = [plan_of({**WRITE, "depends_on": ["x"]})] * 3
        result = await played.run(goal="Write")
        assert result.failed
        assert "Nothing was run" in result.text
        assert played.made == ["draft.0", "draft.1", "draft.2"]


async def test_a_failed_step_is_replanned_and_done_work_is_kept(tmp_path: Path) -> None:
    async with plan_stage(tmp_path, planning__confirm="never") as played:
        (played.project / "a.txt").write_text("hello")
        missing = {"step_id": "m", "tool_name": "read_file", "parameters": {"path": "no.txt"}}
        last = {"step_id": "z", "tool_name": "llm", "parameters": {"prompt": "${a} ${m}"}}
        other = {"step_id": "z", "tool_name": "llm", "parameters": {"prompt": "only ${a}"}}
        played.plans = [plan_of(READ, missing, last), plan_of(other)]
        result = await played.run(goal="Join both")
        assert result.details["status"] == "completed"
        assert played.statuses() == {"a": "done", "z": "done"}
        assert "There is no file no.txt" in played.planning[1]
        # Notes about replaced steps are gone.
        assert "Note: z uses a; the dependency was added." in result.text
        assert "uses a, m" not in result.text
        assert [key for key in played.made if key.startswith("a.")] == ["a.v1.1"]


async def test_a_map_runs_a_step_for_each_item(tmp_path: Path) -> None:
    async with plan_stage(tmp_path) as played:
        for name in ("x", "y", "z"):
            (played.project / f"{name}.txt").write_text(name.upper())
        listed = {
            "step_id": "l",
            "tool_name": "llm",
            "parameters": {"prompt": "list", "schema": {"type": "object", "required": ["names"]}},
        }
        each = {"tool_name": "read_file", "parameters": {"path": "${item}.txt"}}
        mapped: JsonObject = {"step_id": "m", "tool_name": "map"}
        mapped["parameters"] = {"over": "${l.names}", "step": each}
        last = {"step_id": "e", "tool_name": "llm", "parameters": {"prompt": "${m[1]}"}}
        played.steps = lambda prompt: '{"names": ["x","y","z"]}' if "list" in prompt else prompt
        played.plans = [plan_of(listed, mapped, last)]
        result = await played.run(goal="Read all")
        assert result.details["status"] == "completed"
        assert [key for key in played.made if key.startswith("m.")] == [
            f"m.v1.1.{n}" for n in range(3)
        ]
        assert "--- e ---\n1|Y" in result.text


async def test_an_edit_changes_the_plan_and_a_cancel_runs_nothing(tmp_path: Path) -> None:
    async with plan_stage(tmp_path) as played:
        content = {**WRITE, "parameters": {"path": "out.txt", "content": "x"}}
        other = {**WRITE, "parameters": {"path": "other.txt", "content": "x"}}
        played.plans = [plan_of(content), plan_of(other)]
        played.answers = ["Write other.txt instead", "cancel"]
        result = await played.run(goal="Write")
        assert result.details["status"] == "draft"
        assert "The person wants: Write other.txt instead" in played.planning[1]
        assert not (played.project / "out.txt").exists()
        assert not (played.project / "other.txt").exists()


async def test_an_interrupt_leaves_a_plan_that_can_be_resumed(tmp_path: Path) -> None:
    async with plan_stage(tmp_path, planning__confirm="never") as played:
        (played.project / "a.txt").write_text("hello")
        slow: JsonObject = {"step_id": "s", "tool_name": "terminal"}
        slow["parameters"] = {"command": "touch begun; sleep 600"}
        last = {"step_id": "z", "tool_name": "read_file", "parameters": {"path": "a.txt"}}
        played.plans = [plan_of(READ, slow, {**last, "depends_on": ["a", "s"]})]

        def stop(session: Session, record: Record) -> None:
            if isinstance(record.event, InnerCallIntended) and record.event.key == "s.v1.1":
                asyncio.get_running_loop().call_later(
                    0.5, lambda: asyncio.ensure_future(session.send(Interrupt()))
                )

        played.on_event = stop
        result = await played.run(goal="Wait")
        assert result.details["status"] == "cancelled"
        assert played.statuses() == {"a": "done", "s": "unknown"}
        played.on_event = lambda _session, _record: None
        played.answers = ["treat it as done"]
        result = await played.run(resume=played.session_id)
        assert result.details["status"] == "completed"
        assert "was interrupted" in played.asked[-1]
        assert [key for key in played.made if key[0] in "asz"] == ["z.v1.1"]


async def test_a_step_cannot_do_what_the_policy_forbids(tmp_path: Path) -> None:
    async with plan_stage(tmp_path, planning__confirm="never") as played:
        push: JsonObject = {"step_id": "p", "tool_name": "terminal"}
        push["parameters"] = {"command": "rm -rf /home"}
        played.plans = [plan_of(push)]
        result = await played.run(goal="Clean up")
        assert result.details["status"] == "failed"
        assert "Not allowed" in result.text
        finished = [r.event for r in played.records if isinstance(r.event, InnerCallFinished)]
        assert finished[-1].result.denied is not None
