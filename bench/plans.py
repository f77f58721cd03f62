"""What calls cost that tools make: a call of a script, a step of a plan, and a script of a hundred
calls against a hundred calls of the model."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from bench.measure import own_cpu, report, rounded
from bench.rounds import PLACE, WINDOW
from bench.serving import served
from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.events import ReplyAdded, ToolFinished
from hermes.core.messages import ToolResult
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says

CALLS = 100
STEPS = 30
TIMED = f"""
import time
from hermes_tools import read_file
times = []
for _ in range({CALLS}):
    begun = time.perf_counter()
    read_file("a.txt")
    times.append((time.perf_counter() - begun) * 1000)
times.sort()
print(times[len(times) // 2], times[0])
"""
SCRIPT = f"""
from hermes_tools import read_file
for n in range(1, {CALLS} + 1):
    read_file("a.txt", offset=n, limit=1)
print("done")
"""


class Turn:
    """One turn: its results, the requests and tokens of the model, CPU and wall seconds."""

    def __init__(self) -> None:
        self.results: list[ToolResult] = []
        self.requests = self.tokens = 0
        self.cpu = self.wall = 0.0


def run(steps: list[Step]) -> Turn:
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE) as folder:
        left = list(steps)

        def answer(_request: Request) -> Step:
            return left.pop(0) if left else says("done")

        with served(answer) as url:
            return asyncio.run(_run(Path(folder), url))


async def _run(folder: Path, url: str) -> Turn:
    project = folder / "project"
    project.mkdir()
    (project / "a.txt").write_text("line\n" * (CALLS + 1))
    env = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k", "HOME": str(Path.home())}
    env["PATH"] = "/usr/bin:/bin"
    flags = {
        "model.default": "test",
        "model.context_length": WINDOW,
        "agent.max_turns": CALLS + 10,
        "code_execution.max_tool_calls": CALLS,
        "toolsets": ["hermes-cli", "planning", "code_execution"],
        "approvals.mode": "off",
    }
    turn = Turn()
    async with App(
        load(Home(folder / "home"), env=env, flags=flags), env=env, world=World()
    ) as app:
        session = await app.open(SessionRequest(source="bench", attended=False, cwd=str(project)))
        cpu, wall = own_cpu(), time.perf_counter()
        async for record in session.ask(Say(text="go")):
            if isinstance(record.event, ReplyAdded):
                turn.requests += 1
                turn.tokens += record.event.usage.input + record.event.usage.output
            elif isinstance(record.event, ToolFinished):
                turn.results.append(record.event.result)
        turn.cpu, turn.wall = own_cpu() - cpu, time.perf_counter() - wall
    assert not any(result.failed for result in turn.results), turn.results[-1].text
    return turn


def _plan_of(count: int) -> Step:
    steps = [
        {
            "step_id": f"s{n}",
            "tool_name": "read_file",
            "parameters": {"path": "a.txt", "offset": n + 1, "limit": 1},
            "depends_on": [f"s{n - 1}"] if n else [],
        }
        for n in range(count)
    ]
    return calls("plan", action="run", goal="g", steps=steps, confirm="skip")


def main() -> None:
    median, best = map(float, run([calls("execute_code", code=TIMED)]).results[0].text.split()[:2])
    report("rpc_call", median_ms=rounded(median, 3), best_ms=rounded(best, 3), goal="<= 2 ms")
    run([_plan_of(1)])
    one, many = ([run([_plan_of(count)]) for _ in range(5)] for count in (1, STEPS))
    wall = min(turn.wall for turn in many) - min(turn.wall for turn in one)
    cpu = min(turn.cpu for turn in many) - min(turn.cpu for turn in one)
    report(
        "plan_step",
        wall_ms=rounded(wall / (STEPS - 1) * 1000, 3),
        cpu_ms=rounded(cpu / (STEPS - 1) * 1000, 3),
        goal="<= 3 ms, the tool included",
    )
    single = [calls("read_file", path="a.txt", offset=n, limit=1) for n in range(1, CALLS + 1)]
    script, singles = run([calls("execute_code", code=SCRIPT)]), run(single)
    report(
        "script_against_calls",
        calls=CALLS,
        requests=[script.requests, singles.requests],
        tokens=[script.tokens, singles.tokens],
        seconds=[rounded(script.wall, 3), rounded(singles.wall, 3)],
    )


if __name__ == "__main__":
    main()
