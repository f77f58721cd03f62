"""Hundreds of tools cost nothing until one is needed, and then the request begins as before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import JsonObject
from hermes.core.effects import Effect, WritePath
from hermes.core.events import ToolFinished, ToolIntended
from hermes.core.prompt import ToolSpec
from hermes.core.session_request import SessionRequest
from hermes.core.tools import PathContext, Tool, ToolContext, ToolOutput, tool
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from hermes.tools.catalogue import CatalogueEntry
from hermes.tools.discovery import rank_tools, signature
from tests.context.ground import say, stage
from tests.judges.prefixes import begins_with, departure

TOPICS = ("weather", "invoice", "ticket", "calendar", "deployment", "translation")
DEEDS = ("create", "delete", "list", "update", "archive")


def _writes(place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
    return [WritePath(path=place.resolve(arguments["target"]))]


@tool(effects=_writes)
async def engrave(ctx: ToolContext, target: str, words: str = "") -> ToolOutput:
    """Engrave words into a stone tablet file."""
    await ctx.workspace.write_bytes(ctx.workspace.resolve(target), words.encode())
    return ToolOutput.text(f"Engraved {words}.")


def many(count: int = 300) -> list[CatalogueEntry]:
    """Tools as servers bring them, long schemas and all."""
    entries = [CatalogueEntry(engrave.spec, engrave)]
    for n in range(count - 1):
        topic, deed = TOPICS[n % len(TOPICS)], DEEDS[n // len(TOPICS) % len(DEEDS)]
        spec = ToolSpec(
            name=f"{topic}_{deed}_{n}",
            description=f"{deed.capitalize()} a {topic} in system number {n}. " * 4,
            parameters={
                "type": "object",
                "properties": {"id": {"type": "string", "description": f"Which {topic}"}},
                "required": ["id"],
            },
        )
        entries.append(CatalogueEntry(spec, _unused(spec)))
    return entries


def _unused(spec: ToolSpec) -> Tool:
    made = Tool(engrave._run, effects=_writes, repeat="never", interactive=False)
    made.name = spec.name
    return made


def _model(request: Request) -> Step:
    match len([said for said in request.messages if said.role == "tool"]):
        case 0:
            return calls("tool_search", query="engrave words into stone")
        case 1:
            arguments = {"target": "tablet.txt", "words": "hello"}
            return calls("tool_call", name="engrave", arguments=arguments)
        case _:
            return says("It is written.")


async def test_a_tool_of_three_hundred_is_found_and_used(tmp_path: Path) -> None:
    async with stage(tmp_path, _model, window=128_000) as ground:
        async with ground.app() as app:
            app.tools.add(many())
            session = await app.open(_opening(ground.project))
            ended = await say(session, "Engrave hello.")
            records = await app.journal.read(session.id)
        assert ended.reason == "done"
        assert (ground.project / "tablet.txt").read_text() == "hello"
        first, *later = ground.chats
        assert tokens_of_size(len(first.raw)) <= 3_000
        assert {"tool_search", "tool_call", "terminal"} <= set(first.tools)
        assert "engrave" not in first.tools
        for older, newer in zip(ground.chats, later, strict=False):
            assert begins_with(newer, older), departure(newer, older)
    intended = [r.event for r in records if isinstance(r.event, ToolIntended)]
    assert [each.name for each in intended] == ["tool_search", "engrave"]
    (judged,) = intended[1].judged
    assert isinstance(judged.effect, WritePath)


async def test_a_hidden_tool_is_judged_by_what_it_does_itself(tmp_path: Path) -> None:
    def model(request: Request) -> Step:
        if request.results:
            return says("Well.")
        arguments = {"target": "/etc/tablet.txt", "words": "hello"}
        return calls("tool_call", name="engrave", arguments=arguments)

    async with stage(tmp_path, model, window=128_000) as ground, ground.app() as app:
        app.tools.add(many(3))
        session = await app.open(_opening(ground.project))
        await say(session, "Engrave it there.")
        (result,) = [
            r.event.result
            for r in await app.journal.read(session.id)
            if isinstance(r.event, ToolFinished)
        ]
    assert result.failed
    assert "Not allowed" in result.text


async def test_a_resumed_session_has_the_same_tools(tmp_path: Path) -> None:
    async with stage(tmp_path, _model, window=128_000) as ground:
        async with ground.app() as app:
            app.tools.add(many())
            session = await app.open(_opening(ground.project))
            await say(session, "Engrave hello.")
            session_id = session.id
        async with ground.session(session_id) as (app, session):
            app.tools.add(many(120))
            await say(session, "And again?")
        last = ground.chats[-1]
        assert begins_with(last, ground.chats[-2]), departure(last, ground.chats[-2])


async def test_few_tools_are_all_named(tmp_path: Path) -> None:
    few = ("file", "terminal")
    async with stage(tmp_path, lambda _: says("Hi."), window=128_000, toolsets=few) as ground:
        async with ground.session() as (_, session):
            await say(session, "Hi.")
        assert "tool_search" not in ground.chats[0].tools


def test_the_tool_that_is_meant_comes_first() -> None:
    specs = [entry.spec for entry in many()]
    assert rank_tools("engraving on stone", specs)[0].name == "engrave"
    assert rank_tools("translation_list_17", specs)[0].name == "translation_list_17"
    assert all("invoice" in spec.name for spec in rank_tools("delete an invoice", specs)[:5])
    assert rank_tools("qqq", specs) == []
    assert signature(engrave.spec).startswith("engrave(target: string, words?: string) Engrave")


def _opening(project: Path) -> SessionRequest:
    return SessionRequest(source="test", attended=False, cwd=str(project))
