"""A model that costs money and breaks in every way, its own bill, and a home that must pay it."""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from hermes.app.app import App
from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.events import CallSettled, ModelCalled, Record
from hermes.core.messages import Usage
from hermes.core.world import World
from hermes.testing.request import Request
from hermes.testing.responder import Charge, Prices
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Break, Failure, Step, calls, fails, says
from tests.money.worker import QuickClock

ROOT = Path(__file__).parents[2]
PRICES = Prices(input=1.1, output=5.3, told=False)
LONGEST = 900
NAME = re.compile(r"((?:job|tree)\d+-\d+) goes on")
DAY, JOB = Decimal("1.00"), Decimal("0.10")


class Model:
    """Answers of any length up to the limit it is told, refusals, and connections that are lost
    after the answer was charged. It remembers whom it has charged for what."""

    def __init__(self, seed: int, *, trouble: float = 0.3) -> None:
        self._chance = random.Random(seed)
        self._trouble = trouble
        self.asked_by: dict[int, str] = {}
        self.refused = 0

    def __call__(self, request: Request) -> Step:
        found = NAME.findall(request.raw.decode())
        self.asked_by[request.n] = found[-1]
        chance = self._chance.random() / self._trouble if self._trouble else 1.0
        if chance < 0.4:
            self.refused += 1
            return fails(self._chance.choice([429, 429, 503]), retry_after=0.5)
        step = self._answer(request)
        return replace(step, breaks=self._break()) if chance < 1.0 else step

    def _answer(self, request: Request) -> Step:
        limit = int(request.body.get("max_tokens", LONGEST))
        wished = self._chance.choice([1, 20, 200, LONGEST])
        output = max(1, min(limit, self._chance.randint(1, wished)))
        usage = Usage(input=tokens_of_size(len(request.raw)), output=output, requests=1)
        if self._chance.random() < 0.4:
            step = calls("todo", todos=[{"id": "1", "content": f"step {request.n}"}])
        else:
            step = says(f"Step {request.n} is done, and here is what I think of it.")
        return replace(step, usage=usage, model=f"priced-{request.n}")

    def _break(self) -> Break:
        after = self._chance.randint(0, 3)
        match self._chance.choice(["silent", "cut", "reset", "error"]):
            case "silent":
                return Break(how="cut", before_head=True)
            case "error":
                return Break(how="error", after_chunks=after, failure=Failure(status=529))
            case "cut":
                return Break(how="cut", after_chunks=after)
            case _:
                return Break(how="reset", after_chunks=after)


class Market:
    """A home with caps, and the server whose bill must stay below them."""

    def __init__(self, root: Path, server: ScriptedServer, model: Model) -> None:
        self.home = root / "home"
        self.home.mkdir(mode=0o700)
        self._server = server
        self._model = model
        self.set_caps(day=DAY, job=JOB)

    def set_caps(self, *, day: Decimal, job: Decimal, task: Decimal | None = None) -> None:
        priced = f"price_input: {PRICES.input}, price_output: {PRICES.output}"
        turn = "" if task is None else f", task: {task}"
        self.home.joinpath("config.yaml").write_text(
            "model: {default: priced, provider: acme}\n"
            f"budget: {{day: {day}, job: {job}{turn}}}\n"
            f'providers: {{acme: {{base_url: "{self._server.url}/v1", api_key: k, '
            f"models: {{priced: {{max_output_tokens: {LONGEST}, {priced}}}}}}}}}\n"
        )

    async def start(self, names: Sequence[str], *, turns: int) -> Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.money.worker", str(turns), *names),
            cwd=self.home,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
                "HOME": str(self.home),
                "HERMES_HOME": str(self.home),
            },
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )

    def app(self) -> App:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        config = load(Home(self.home), env=env)
        return App(config, env=env, world=World(clock=QuickClock()))

    def charges(self) -> dict[str, list[Charge]]:
        """The bill by session."""
        found: dict[str, list[Charge]] = defaultdict(list)
        for charge in self._server.bill.charges:
            found[self._model.asked_by[charge.n]].append(charge)
        return found

    def check_caps(self, *, day: Decimal = DAY, job: Decimal = JOB) -> None:
        """By the server's own count."""
        assert self._server.bill.micros / 1_000_000 <= day
        jobs: dict[str, Decimal] = defaultdict(Decimal)
        for name, charges in self.charges().items():
            jobs[name.partition("-")[0]] += sum(each.micros for each in charges)
        assert max(jobs.values()) / 1_000_000 <= job


def check_session(records: Sequence[Record], charges: Sequence[Charge]) -> int:
    """Every call that is settled for certain was charged just that; every other charge is covered
    by a call whose end is not known. How many of these there are."""
    called = [r.event for r in records if isinstance(r.event, ModelCalled)]
    settled: dict[str, CallSettled] = {}
    for record in records:
        if isinstance(record.event, CallSettled):
            settled[record.event.call] = record.event
    by_number = {charge.n: charge for charge in charges}
    assumed: list[Decimal] = []
    for call in called:
        assert call.reserved is not None and call.reserved.cost is not None
        end = settled.get(call.call)
        if end is None or not end.certain:
            assumed.append(_micros(end.usage if end else call.reserved))
        elif end.usage.output:
            charge = by_number.pop(int(end.model.rpartition("-")[2]))
            assert _micros(end.usage) == charge.micros
            assert (end.usage.input, end.usage.output) == (charge.usage.input, charge.usage.output)
        else:
            assert end.usage == Usage(requests=1, cost=0.0)
    rest = sorted((charge.micros for charge in by_number.values()), reverse=True)
    most = sorted(assumed, reverse=True)
    assert len(rest) <= len(most)
    assert all(charge <= bound for charge, bound in zip(rest, most, strict=False))
    return len(assumed)


def _micros(usage: Usage) -> Decimal:
    """Of a cost that is a float, to the last digit that a price can have."""
    assert usage.cost is not None
    return Decimal(round(usage.cost * 10**12)) / 10**6
