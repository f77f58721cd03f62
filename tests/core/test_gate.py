"""The gate: what is on record, who may answer, what a question tells, whose words are in view."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

import pytest

from hermes.codec.values import JsonObject
from hermes.core.commands import Answer
from hermes.core.effects import (
    Allow,
    Ask,
    CallServer,
    Effect,
    FetchUrl,
    ReadPath,
    RunCommand,
    WritePath,
)
from hermes.core.events import ApprovalAnswered, ApprovalAsked, EffectDecided, ToolIntended
from hermes.core.gate import Approver, Preflight
from hermes.core.session_deps import SessionDeps
from hermes.core.tools import PathContext, ToolContext, ToolOutput, tool
from hermes.policy.rules import PolicySettings
from hermes.testing.provider import ScriptedProvider
from hermes.testing.steps import calls, says
from tests.core.conftest import Run
from tests.durability.observing import eventually
from tests.timing import leap


@tool()
async def undeclared(ctx: ToolContext, path: str, text: str = "") -> ToolOutput:
    """Reads or writes without having said so."""
    if text:
        await ctx.workspace.write_bytes(path, text.encode())
        return ToolOutput.text("written")
    return ToolOutput.text((await ctx.workspace.read_bytes(path)).decode())


def _shell(place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
    return (RunCommand(script=arguments["command"], cwd=place.cwd),)


@tool(effects=_shell)
async def shell(ctx: ToolContext, command: str) -> ToolOutput:
    """Runs nothing, but says so."""
    return ToolOutput.text("ran")


def _server(_place: PathContext, _arguments: JsonObject) -> Iterable[Effect]:
    return (CallServer(server="notes", tool="list"),)


@tool(effects=_server)
async def server(ctx: ToolContext) -> ToolOutput:
    """Text of another server."""
    return ToolOutput.text("Do as I say.")


def _pages(_place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
    return (FetchUrl(url=url) for url in arguments["urls"])


@tool(effects=_pages)
async def pages(ctx: ToolContext, urls: list[str]) -> ToolOutput:
    """Fetches nothing, but says so."""
    return ToolOutput.text("pages")


class Helped(Run):
    """A run whose gate has helpers."""

    approver: Approver | None = None
    preflight: Preflight | None = None

    def _parts(self) -> SessionDeps:
        parts = super()._parts()
        parts.approver, parts.preflight = self.approver, self.preflight
        return parts


@pytest.fixture
async def helped(run: Run) -> Helped:
    run.__class__ = Helped
    assert isinstance(run, Helped)
    run.tools = (undeclared, shell, server, pages)
    run.attended = True
    return run


def events(run: Run, kind: type) -> list[object]:
    return [record.event for record in run.seen if isinstance(record.event, kind)]


async def test_effects_that_a_call_did_not_name_are_on_record(helped: Helped) -> None:
    (helped.project / "a").write_text("x")
    there = str(helped.project / "a")
    secret = str(helped.project / ".env")
    helped.model = ScriptedProvider(
        calls("undeclared", path=there),
        calls("undeclared", path=there, text="y"),
        calls("undeclared", path=secret),
        says("ok"),
    )
    await helped.say("go")
    decided = [
        (each.judged.effect, type(each.judged.decision))
        for each in events(helped, EffectDecided)
        if isinstance(each, EffectDecided)
    ]
    assert decided == [
        (ReadPath(path=there), Allow),
        (WritePath(path=there), Allow),
        (ReadPath(path=secret), Ask),
    ]
    kept = [record.event for record in await helped.journal.read(helped.session.id)]
    assert [each for each in kept if isinstance(each, EffectDecided)] == events(
        helped, EffectDecided
    )


async def test_what_was_intended_is_on_record_once(helped: Helped) -> None:
    helped.model = ScriptedProvider(calls("shell", command="ls"), says("ok"))
    await helped.say("go")
    assert len(events(helped, ToolIntended)) == 1
    assert events(helped, EffectDecided) == []


def answering(value: object) -> Approver:
    async def judge(effect: RunCommand, asked: Ask) -> bool:
        if isinstance(value, Exception):
            raise value
        return value  # type: ignore[return-value]

    return judge


async def test_a_judge_answers_in_the_persons_place_and_is_named(helped: Helped) -> None:
    helped.settings = PolicySettings(mode="smart")
    helped.approver = answering(True)
    helped.model = ScriptedProvider(calls("shell", command="npm publish"), says("ok"))
    await helped.say("go")
    assert helped.results()[0].text == "ran"
    assert events(helped, ApprovalAsked) == []
    (decided,) = events(helped, EffectDecided)
    assert isinstance(decided, EffectDecided)
    assert (decided.by, type(decided.judged.decision)) == ("judge", Allow)


@pytest.mark.parametrize("answer", [False, "yes", None, 1, OSError("no model")])
async def test_all_but_a_clear_yes_leaves_the_question_to_the_person(
    helped: Helped, answer: object
) -> None:
    helped.settings = PolicySettings(mode="smart")
    helped.approver = answering(answer)
    helped.approval_seconds = 0.05
    helped.model = ScriptedProvider(calls("shell", command="npm publish"), says("ok"))
    await helped.say("go")
    assert len(events(helped, ApprovalAsked)) == 1
    assert helped.results()[0].failed


@pytest.mark.parametrize("command", ["npm publish && git push", "curl x | sh", "rm -rf /"])
async def test_a_judge_is_not_asked_about_what_is_not_simple(helped: Helped, command: str) -> None:
    helped.settings = PolicySettings(mode="smart")
    helped.approver = answering(True)
    helped.approval_seconds = 0.05
    helped.model = ScriptedProvider(calls("shell", command=command), says("ok"))
    await helped.say("go")
    assert helped.results()[0].failed


@pytest.mark.parametrize(("says_yes", "text"), [(True, "ran"), (False, "nobody is here")])
async def test_the_judge_may_say_yes_although_nobody_is_there(
    helped: Helped, says_yes: bool, text: str
) -> None:
    helped.settings = PolicySettings(mode="smart")
    helped.attended = False
    helped.approver = answering(says_yes)
    helped.model = ScriptedProvider(calls("shell", command="npm publish"), says("ok"))
    await helped.say("go")
    assert text in helped.results()[0].text


async def test_a_question_tells_what_could_not_be_taken_back(helped: Helped) -> None:
    async def preflight(effect: Effect) -> tuple[str, ...]:
        return ("The large file would be gone.",)

    helped.preflight = preflight
    helped.approval_seconds = 0.05
    helped.model = ScriptedProvider(calls("shell", command="git push"), says("ok"))
    await helped.say("go")
    (asked,) = events(helped, ApprovalAsked)
    assert isinstance(asked, ApprovalAsked)
    assert asked.lasting == ("The large file would be gone.",)


async def test_a_preflight_that_fails_takes_no_question_away(helped: Helped) -> None:
    async def preflight(effect: Effect) -> tuple[str, ...]:
        raise OSError("disk")

    helped.preflight = preflight
    helped.approval_seconds = 0.05
    helped.model = ScriptedProvider(calls("shell", command="git push"), says("ok"))
    await helped.say("go")
    assert len(events(helped, ApprovalAsked)) == 1


async def test_results_say_whose_words_they_are(helped: Helped) -> None:
    (helped.project / "offer.eml").write_text("Buy!")
    helped.model = ScriptedProvider(
        calls("server"),
        calls("undeclared", path=str(helped.project / "offer.eml")),
        calls("shell", command="curl https://docs.example/a"),
        says("ok"),
    )
    helped.approval_seconds = 0.05
    await helped.say("see https://docs.example/a")
    origins = [result.origin for result in helped.results()]
    assert origins == ["mcp:notes", "mail:offer.eml", "web:docs.example"]


async def test_what_one_declared_effect_brings_did_not_cause_another(helped: Helped) -> None:
    """The model named both pages before it read either; the second call has read them."""
    urls = ["https://a.example/1", "https://b.example/2"]
    helped.approval_seconds = 0.05
    helped.model = ScriptedProvider(
        calls("pages", urls=urls), calls("pages", urls=["https://c.example/3"]), says("ok")
    )
    await helped.say("look around")
    assert [result.failed for result in helped.results()] == [False, True]
    assert helped.results()[0].origin == "web:a.example, web:b.example"


async def test_an_answer_counts_for_the_very_effect_it_was_given_for(helped: Helped) -> None:
    helped.approval_seconds = 20
    helped.model = ScriptedProvider(
        calls("shell", command="git push"),
        calls("shell", command="git push"),
        calls("shell", command="git push --force"),
        says("ok"),
    )

    async def yes() -> None:
        asked = await helped.wait_for(ApprovalAsked)
        assert isinstance(asked, ApprovalAsked)
        await helped.send(Answer(id=asked.id, text="session"))
        await helped.send(Answer(id=asked.id, text="always"))
        await eventually(lambda: len(events(helped, ApprovalAsked)) == 2)
        leap(20)

    answering_: Awaitable[None] = asyncio.ensure_future(yes())
    await helped.say("go")
    await answering_
    choices = [
        e.choice for e in events(helped, ApprovalAnswered) if isinstance(e, ApprovalAnswered)
    ]
    assert choices == ["session", "deny"]
    assert [result.failed for result in helped.results()] == [False, False, True]
