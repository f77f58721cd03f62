"""Memory and conversations that are shortened: saved to before, read again after."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import load
from hermes.context.summary import INSTRUCTIONS
from hermes.context.system import FACTS
from hermes.core.commands import Compact, Rewind, Say
from hermes.core.messages import Message
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.memory.entries import HEADINGS, RULE, Action, ChangeSource, Operation, Target
from hermes.memory.provider import MemoryProvider, ProviderContext, SwitchCause
from hermes.memory.snapshots import with_memory
from hermes.memory.tools import FLUSH
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says

FACT = "The user wants answers in French"
LATER = "The staging server is called heron"
PERSON = ChangeSource(kind="person", person="owner", surface="cli")
NO_FLUSH = {"memory.flush_min_turns": 0}
FOR_SUMMARIES = INSTRUCTIONS.partition(".")[0]


def model(request: Request) -> Step:
    system = request.messages[0].text
    if system == FLUSH:
        if request.results:
            return says("Saved.")
        return calls("memory", target="user", action="add", content=FACT)
    return says("Goal: the work.") if FOR_SUMMARIES in system else says("words " * 400)


class Notebook(MemoryProvider):
    """Writes down what it is told."""

    name = "notebook"

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    async def initialize(self, began: ProviderContext) -> None:
        self.told.append(("begin", began.platform))

    def system_prompt_block(self) -> str:
        return "A notebook is kept of this."

    async def on_turn_start(self, number: int, message: str) -> None:
        self.told.append(("start", message))

    async def sync_turn(self, user: str, assistant: str, *, trusted: bool) -> None:
        self.told.append(("turn", user))

    async def queue_prefetch(self, query: str) -> None:
        self.told.append(("prefetch", query))

    async def on_pre_compress(self, messages: Sequence[Message]) -> str:
        self.told.append(("summary", str(len(messages) > 0)))
        return "The bridge is <memory-context>blue</memory-context>."

    async def on_session_switch(self, session_id: str, cause: SwitchCause) -> None:
        self.told.append(("switch", cause))

    async def on_memory_write(self, action: Action, target: Target, content: str) -> None:
        self.told.append(("write", content))

    async def on_delegation(self, task: str, result: str, child_session_id: str) -> None:
        self.told.append(("child", f"{task} -> {result[:5]}"))

    async def on_session_end(self, messages: Sequence[Message]) -> None:
        self.told.append(("end", str(len(messages))))

    async def shutdown(self) -> None:
        self.told.append(("shutdown", ""))


@asynccontextmanager
async def opened(
    folder: Path,
    server: ScriptedServer,
    *,
    resume: str = "",
    book: Notebook | None = None,
    flags: Mapping[str, object] | None = None,
) -> AsyncIterator[tuple[App, Session]]:
    given: JsonObject = {
        "model.provider": "custom",
        "model.default": "scripted",
        "model.base_url": f"{server.url}/v1",
        **(flags or {}),
    }
    env = {"OPENAI_API_KEY": "k"}
    async with App(
        load(Home(folder / "home"), flags=given, env=env), env=env, world=World()
    ) as app:
        if book is not None:
            app.plugins.memory_providers["notebook"] = lambda: book
        opening = SessionRequest(source="cli", attended=False, cwd="/", resume=resume)
        yield app, await app.open(opening)


async def talk(session: Session, turns: int, origin: str = "user") -> None:
    for number in range(turns):
        await session.send(Say(text=f"Step {number}.", origin=origin))
        await session.wait_until_idle()


def systems(server: ScriptedServer, wanted: Callable[[str], bool]) -> list[str]:
    return [r.messages[0].text for r in server.requests if wanted(r.messages[0].text)]


async def test_facts_are_saved_before_and_seen_after(tmp_path: Path) -> None:
    async with ScriptedServer(model) as server:
        async with opened(tmp_path, server) as (app, session):
            await talk(session, 6)
            before = server.requests[0].messages[0].text
            await session.send(Compact())
            await talk(session, 1)
            after = server.requests[-1].messages[0].text
            costs = {line.cause for line in await app.archive.spending()}
            why = await app.memory.why("m1")
            name = session.id
        flush = next(r for r in server.requests if r.messages[0].text == FLUSH)
        assert flush.tools == ("memory",)
        assert "User: Step 0." in flush.messages[1].text
        assert FACT not in before
        head, _, facts = before.rpartition(f"\n\n{FACTS}")
        assert after.startswith(f"{head}\n\n{RULE}\n{HEADINGS['user']} [")
        assert FACT in after and after.endswith(f"\n\n{FACTS}{facts}")
        assert "flush_memories" in costs
        assert why.changes[0].source.kind == "review"
        async with opened(tmp_path, server, resume=name) as (_, again):
            await talk(again, 1)
        assert server.requests[-1].messages[0].text == after
        assert server.violations == []


async def test_a_short_conversation_is_not_flushed(tmp_path: Path) -> None:
    async with ScriptedServer(model) as server:
        async with opened(tmp_path, server) as (_, session):
            await talk(session, 5)
            await session.send(Compact())
            await talk(session, 1)
            assert session.transcript.compactions
        assert systems(server, lambda text: text == FLUSH) == []


async def test_the_beginning_stays_where_memory_is_what_it_was(tmp_path: Path) -> None:
    async with ScriptedServer(model) as server:
        async with opened(tmp_path, server, flags=NO_FLUSH) as (_, session):
            await talk(session, 4)
            await session.send(Compact())
            await talk(session, 1)
            assert session.transcript.compactions[0].system == ""
        assert systems(server, lambda text: text == FLUSH) == []
        assert len(set(systems(server, lambda text: FACTS in text))) == 1


async def test_a_rewind_behind_the_cut_brings_the_old_beginning_back(tmp_path: Path) -> None:
    async with ScriptedServer(model) as server:
        async with opened(tmp_path, server) as (_, session):
            await talk(session, 7)
            await session.send(Compact())
            await session.send(Rewind(turns=6))
            await talk(session, 1)
        first, *_, last = systems(server, lambda text: FACTS in text)
        assert last == first


async def test_where_strangers_were_heard_nothing_is_saved(tmp_path: Path) -> None:
    async with ScriptedServer(model) as server:
        async with opened(tmp_path, server) as (_, session):
            await talk(session, 6)
            await talk(session, 1, origin="web:evil.example")
            await session.send(Compact())
        assert systems(server, lambda text: text == FLUSH) == []
        assert not (tmp_path / "home" / "memories" / "USER.md").exists()


async def test_a_provider_hears_of_everything_that_becomes_of_a_session(tmp_path: Path) -> None:
    book, later = Notebook(), Notebook()
    async with ScriptedServer(model) as server:
        flags = {"memory.provider": "notebook", "memory.flush_min_turns": 2}
        async with opened(tmp_path, server, book=book, flags=flags) as (app, session):
            await talk(session, 2)
            await session.send(Compact())
            await session.send(Rewind(turns=1))
            await talk(session, 1)
            child = await app.open(
                SessionRequest(source="subagent", attended=False, cwd="/", parent=session.id)
            )
            await child.send(Say(text="Count."))
            await child.wait_until_idle()
            await app.close_session(child)
            name = session.id
        turn = [("turn", "Step 0."), ("prefetch", "Step 0.")]
        assert book.told[:4] == [("begin", "cli"), ("start", "Step 0."), *turn]
        assert book.told[-2:] == [("end", "4"), ("shutdown", "")]
        often = ("start", "turn", "prefetch")
        assert sorted(each for each in book.told[6:-2] if each[0] not in often) == [
            ("child", "Count. -> words"),
            ("summary", "True"),
            ("switch", "compacted"),
            ("switch", "rewound"),
            ("write", FACT),
        ]
        summary = next(r for r in server.requests if FOR_SUMMARIES in r.messages[0].text)
        assert "Do not lose this:\nThe bridge is blue." in summary.last_text
        system = next(iter(systems(server, lambda text: FACTS in text)))
        assert f"A notebook is kept of this.\n\n{FACTS}" in system
        async with opened(tmp_path, server, book=later, resume=name, flags=flags) as (_, again):
            await talk(again, 1)
        assert ("switch", "resumed") in later.told


async def test_a_provider_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    words = "Unknown memory provider 'nobody'; none is used."
    async with (
        ScriptedServer(model) as server,
        opened(tmp_path, server, flags={"memory.provider": "nobody"}) as (app, session),
    ):
        await talk(session, 1)
        assert app.context.notices.count(words) == 1


async def test_notices_are_as_short_as_a_person_wants_them(tmp_path: Path) -> None:
    for wanted, told in (
        ("on", ["💾 Memory updated"]),
        ("verbose", [f"💾 Memory updated: {FACT}"]),
        ("off", []),
    ):
        async with ScriptedServer(model) as server:
            folder = tmp_path / wanted
            flags = {"display.memory_notifications": wanted}
            async with opened(folder, server, flags=flags) as (_, session):
                await talk(session, 6)
                events = session.subscribe()
                await session.send(Compact())
                events.close()
                shown = [getattr(r.event, "text", "") async for r in events]
            assert [text for text in shown if "Memory" in text] == told


def test_one_block_takes_the_place_of_another() -> None:
    def block(target: Target, text: str) -> str:
        return f"{RULE}\n{HEADINGS[target]} [1%]\n{RULE}\n{text}"

    facts = f"\n\n{FACTS} today\nModel: m"
    old, user = block("memory", "a\n§\nb"), block("user", "c")
    assert with_memory(f"You.{facts}", old) == f"You.\n\n{old}{facts}"
    assert with_memory(f"You.\n\n{old}\n\n{user}{facts}", user) == f"You.\n\n{user}{facts}"
    assert with_memory(f"You.\n\n{user}{facts}", "") == f"You.{facts}"
    between = f"You.\n\n{user}\n\nAsk it.{facts}"
    assert with_memory(between, old, "Ask it.") == f"You.\n\n{old}\n\nAsk it.{facts}"
    assert with_memory("You are small.", old) == "You are small."


async def test_what_a_person_wrote_by_hand_is_seen_after(tmp_path: Path) -> None:
    async with (
        ScriptedServer(model) as server,
        opened(tmp_path, server, flags=NO_FLUSH) as (app, session),
    ):
        await talk(session, 4)
        wish = (Operation(action="add", content=LATER),)
        await app.memory.of().change("memory", wish, source=PERSON)
        await talk(session, 1)
        assert LATER not in server.requests[-1].messages[0].text
        await session.send(Compact())
        await talk(session, 1)
        assert LATER in server.requests[-1].messages[0].text
