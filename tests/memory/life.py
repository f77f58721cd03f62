"""A person's long life with memory, acted out against a scripted model, and an oracle beside it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import SystemClock, World
from hermes.memory.forgetting import forget, plan_forget
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says

if TYPE_CHECKING:
    from hermes.testing.server import ScriptedServer

THINGS = 24
SAID = "remember: "
EVIL = "web:evil.example"


class DayClock(SystemClock):
    """Time for people jumps an hour with every look; time for machines is real."""

    def __init__(self) -> None:
        self.time = 1_760_000_000.0

    def now(self) -> float:
        self.time += 1.0
        return self.time

    def pass_an_hour(self) -> None:
        self.time += 3_600


def obedient(request: Request) -> Step:
    """A model that does what it is told, and replaces what it is told to contradict."""
    told = next(s.text for s in reversed(request.messages) if s.role == "user" and SAID in s.text)
    wish: JsonObject = json.loads(told.partition(SAID)[2])
    if not request.results:
        return calls("memory", **wish)
    answer = request.results[-1].text
    if answer.startswith("{") and "contradicts" in answer:
        (match,) = json.loads(answer)["matches"]
        return calls("memory", target=wish["target"], action="replace", old_text=match,
                     content=wish["content"])  # fmt: skip
    return says("Done.")


class Fact:
    """One version of one entry, as the oracle knows it. `code` is a word that nothing else has."""

    def __init__(self, thing: int, code: str, session: str, said: str) -> None:
        self.thing = thing
        self.code = code
        self.session = session
        self.said = said

    @property
    def text(self) -> str:
        return f"The box number {self.thing} is called {self.code}"


class Life:
    def __init__(self, folder: Path, server: ScriptedServer, seed: int) -> None:
        self.folder = folder / "home"
        self.server = server
        self.chance = random.Random(seed)
        self.clock = DayClock()
        self.standing: dict[int, Fact] = {}
        self.versions: dict[int, list[Fact]] = {}
        self.held: dict[int, Fact] = {}
        self.forgotten: list[str] = []
        self.states: list[tuple[float, dict[int, Fact]]] = []
        self.gone: set[int] = set()
        self.said_here: set[str] = set()
        self.known_at_opening: set[str] = set()
        self.session: Session | None = None
        self.checked = 0
        self.all_codes: set[str] = set()

    def app(self) -> App:
        flags: JsonObject = {
            "model.provider": "custom",
            "model.default": "scripted",
            "model.base_url": f"{self.server.url}/v1",
            "approvals.mode": "off",
        }
        config = load(Home(self.folder), flags=flags, env={"OPENAI_API_KEY": "k"})
        world = World(clock=self.clock, chance=random.Random(self.chance.random()))
        return App(config, env={"OPENAI_API_KEY": "k"}, world=world)

    async def live(self, app: App, statements: int) -> None:
        """Sessions of a few statements each, with a person's decisions in between."""
        while statements > 0:
            await self.open(app)
            for _ in range(min(statements, self.chance.randint(2, 8))):
                statements -= 1
                if not await self.state(app):
                    break
            await self.close(app)
            await self.decide(app)
        await self.check_past(app)

    async def open(self, app: App) -> None:
        self.clock.pass_an_hour()
        self.known_at_opening = {fact.code for fact in self.standing.values()}
        self.said_here = set()
        self.session = await app.open(SessionRequest(source="cli", attended=False, cwd="/"))

    async def close(self, app: App) -> None:
        assert self.session is not None
        await app.close_session(self.session)
        self.session = None

    async def state(self, app: App) -> bool:
        """One thing is said; False when the session is no good any more."""
        kind = self.chance.choices(
            ("new", "correct", "contradict", "remove", "poison"), (40, 25, 20, 8, 7)
        )[0]
        free = [n for n in range(THINGS) if n not in self.standing]
        taken = [n for n in self.standing if n not in {f.thing for f in self.held.values()}]
        if kind in ("correct", "contradict", "remove") and not taken:
            kind = "new"
        if kind in ("new", "poison") and not free:
            kind = "correct"
        match kind:
            case "new":
                await self._add(self.chance.choice(free))
            case "poison":
                await self._poison(app, self.chance.choice(free))
                return False
            case "remove":
                thing = self.chance.choice(taken)
                old = self.standing[thing]
                await self.say({"target": "memory", "action": "remove", "old_text": old.text})
                del self.standing[thing]
            case _:
                await self._correct(self.chance.choice(taken), openly=kind == "correct")
        self._remember_state()
        return True

    async def _add(self, thing: int) -> None:
        fact = self._fact(thing)
        await self.say({"target": "memory", "action": "add", "content": fact.text}, fact)
        self._stands(fact)

    async def _correct(self, thing: int, *, openly: bool) -> None:
        old, fact = self.standing[thing], self._fact(thing)
        wish = {"target": "memory", "action": "add", "content": fact.text}
        if openly:
            wish |= {"action": "replace", "old_text": f"called {old.code}"}
        await self.say(wish, fact)
        self._stands(fact)

    async def _poison(self, app: App, thing: int) -> None:
        fact = self._fact(thing)
        wish = {"target": "memory", "action": "add", "content": fact.text}
        await self.say(wish, fact, origin=EVIL)
        (change,) = [c for c in await app.memory.of().pending() if c.id not in self.held]
        assert change.text == fact.text and change.source.origins == (EVIL,)
        self.held[change.id] = fact

    async def say(self, wish: JsonObject, fact: Fact | None = None, origin: str = "user") -> None:
        assert self.session is not None
        text = f"{SAID}{json.dumps(wish)}"
        if fact:
            fact.session, fact.said = self.session.id, text
            self.said_here.add(fact.code)
        await self.session.send(Say(text=text, origin=origin))
        await self.session.wait_until_idle()
        self._check_requests()

    def _check_requests(self) -> None:
        """Only what stood when the session opened, and what was said in it, is in a request."""
        for request in self.server.requests[self.checked :]:
            text = request.raw.decode()
            system = request.messages[0].text
            shown = {code for code in self.all_codes if code in text}
            assert shown <= self.known_at_opening | self.said_here
            assert {code for code in self.all_codes if code in system} == self.known_at_opening
        self.checked = len(self.server.requests)

    async def decide(self, app: App) -> None:
        """What a person does between two sessions."""
        memories, source = app.memory.of(), app.memory.by_hand("cli")
        for number, fact in tuple(self.held.items()):
            choice = self.chance.choice(("accept", "reject", "leave"))
            if choice == "leave":
                continue
            del self.held[number]
            if choice == "accept" and fact.thing not in self.standing:
                await memories.accept(number, source=source)
                fact.session = ""
                self._stands(fact)
            else:
                await memories.reject(number, source=source)
        self._remember_state()
        if self.chance.random() < 0.15 and self.standing:
            await self.forget_one(app, self.chance.choice(sorted(self.standing)))

    async def forget_one(self, app: App, thing: int) -> None:
        fact = self.standing[thing]
        entry = await app.memory.of().resolve_entry(fact.text)
        why = await app.memory.why(f"m{entry}")
        codes = [c.text.rpartition(" ")[2] for c in why.changes if c.text]
        assert fact.code in codes
        await forget(app.memory, app.archive, await plan_forget(app.memory, f"m{entry}"))
        del self.standing[thing]
        self.gone |= {id(f) for f in self.versions[thing] if f.code in codes}
        self.forgotten += codes
        for code in codes:
            assert_nowhere(self.folder, code)
        self._remember_state()

    async def check_past(self, app: App) -> None:
        """Every injected line is explained; every moment is as it was, but for the forgotten."""
        memories = app.memory.of()
        snapshot = await memories.snapshot()
        by_text = {fact.text: fact for fact in self.standing.values()}
        assert {fact.text for fact in self.standing.values()} == set(_lines(snapshot.text))
        assert len(snapshot.ids) == len(self.standing)
        for number in snapshot.ids:
            why = await app.memory.why(f"m{number}")
            assert why.entry is not None
            fact = by_text[why.entry.text]
            last, said = why.changes[-1], why.said[-1]
            assert (last.text, last.source.session_id) == (fact.text, fact.session)
            assert said == (fact.said if fact.session else "")
            assert last.at == why.entry.since
        for at, state in self.states:
            there = [e.text for e in await memories.as_of(at)]
            wanted = [f.text for f in state.values() if id(f) not in self.gone]
            assert sorted(there) == sorted(wanted), at
        for code in self.forgotten:
            assert_nowhere(self.folder, code)

    def _fact(self, thing: int) -> Fact:
        code = f"Zq{self.chance.getrandbits(40):010x}"
        self.all_codes.add(code)
        return Fact(thing, code, "", "")

    def _stands(self, fact: Fact) -> None:
        self.standing[fact.thing] = fact
        self.versions.setdefault(fact.thing, []).append(fact)

    def _remember_state(self) -> None:
        self.states.append((self.clock.time, dict(self.standing)))
        self.clock.pass_an_hour()


def assert_nowhere(folder: Path, word: str) -> None:
    raw = word.encode()
    found = [p for p in folder.rglob("*") if p.is_file() and raw in p.read_bytes()]
    assert found == [], f"{word} is in {found}"


def _lines(block: str) -> list[str]:
    """The entries of the only block."""
    return block.split("\n", 3)[3].split("\n§\n") if block else []
