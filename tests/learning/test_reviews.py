"""Who is looked back upon, when, and what a look back may not do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from hermes.app.app import App
from hermes.app.replay import learning_deps
from hermes.codec.json import decode
from hermes.codec.values import JsonObject
from hermes.core.commands import Answer, Say
from hermes.core.events import ApprovalAsked
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.learning.rehearsals import Rehearsals, ledger_of
from hermes.learning.review import REVIEW
from hermes.skills.history import Cause
from hermes.skills.skill import MAIN
from hermes.skills.store import SkillChange
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.durability.observing import eventually
from tests.durability.stage import PROGRAM, finished
from tests.learning.school import NAME, SKILL, Pupil, School, commands_in, say

TASK = "Build a release."


def is_review(request: Request) -> bool:
    return request.messages[0].text.startswith(REVIEW)


def looked(school: School, app: App) -> Callable[[], bool]:
    """Whether the look back that was begun has ended."""

    def is_over() -> bool:
        path = school.home / "learning" / "reviews.jsonl"
        return path.exists() and b'"done":true' in path.read_bytes()

    return is_over


async def test_a_look_back_has_four_tools_and_can_change_only_what_is_its_own(
    tmp_path: Path,
) -> None:
    def model(request: Request) -> Step:
        if not is_review(request):
            return Pupil()(request)
        if not request.results:
            step = calls("terminal", command="touch stolen")
            more = calls(
                "skill_manage", action="patch", name="mine", old_string="Mine", new_string="Yours"
            )
            gone = calls("skill_manage", action="delete", name="mine")
            return msgspec.structs.replace(step, calls=(*step.calls, *more.calls, *gone.calls))
        return says("nothing to save")

    text = "---\nname: mine\ndescription: A skill of a person\n---\nMine.\n"
    async with ScriptedServer(model) as server:
        school = School(tmp_path, server)
        folder = school.home / "skills" / "mine"
        folder.mkdir(parents=True)
        (folder / MAIN).write_text(text)
        app = school.app()
        session = await school.attended(app)
        await say(session, TASK)
        await eventually(looked(school, app), 30)
        await app.close()
        (first, second) = [request for request in server.requests if is_review(request)]
    assert set(first.tools) == {"memory", "skills_list", "skill_view", "skill_manage"}
    assert "- mine: A skill of a person (not yours)" in first.messages[1].text
    words = [each.text for each in second.results]
    assert "can be called now" in words[0] and "not the agent's own" in words[1]
    assert "cannot delete skills" in words[2]
    assert (folder / MAIN).read_text() == text and not (school.work / "stolen").exists()


async def test_an_answer_never_waits_for_a_look_back(tmp_path: Path) -> None:
    pupil, go_on = Pupil(), asyncio.Event()

    async def model(request: Request) -> Step:
        step = pupil(request)
        if is_review(request):
            await go_on.wait()
        return step

    async with ScriptedServer(model) as server:
        school = School(tmp_path, server)
        app = school.app()
        session = await school.attended(app)
        await say(session, TASK)
        await eventually(lambda: pupil.reviews == 1)
        await say(session, "And now?")
        assert school.versions(app) == ()
        go_on.set()
        await app.close()


async def test_strangers_words_teach_nothing(tmp_path: Path) -> None:
    pupil = Pupil()
    async with ScriptedServer(pupil) as server:
        school = School(tmp_path, server)
        app = school.app()
        session = await school.attended(app)
        await session.send(Say(text="Look at this.", origin="mail:eve"))
        await session.wait_until_idle()
        assert await say(session, TASK) == 6
        await asyncio.sleep(0.2)
        await app.close()
    assert pupil.reviews == 0


async def test_it_can_be_switched_off_and_what_waits_for_a_person_is_not_tried(
    tmp_path: Path,
) -> None:
    pupil = Pupil()
    async with ScriptedServer(pupil) as server:
        school = School(tmp_path, server)
        off: JsonObject = {"skills.review_calls": 0, "skills.creation_nudge_interval": 0}
        async with school.app(settings=off) as app:
            await say(await school.attended(app), TASK)
            await asyncio.sleep(0.2)
        assert pupil.reviews == 0
        async with school.app(settings={"skills.write_approval": True}) as app:
            await say(await school.attended(app), TASK)
            await eventually(looked(school, app), 30)
            (waiting,) = school.skills(app).store.proposals()
            assert ledger_of(app.context.home).rehearsal(waiting.id) is None


async def test_where_a_rehearsal_cannot_tell_the_settings_decide(tmp_path: Path) -> None:
    # Nobody has ever done this in the session, so nobody knows what comes of it.
    unknown = SKILL.format(flag="--fast --quiet")
    async with ScriptedServer(Pupil(unknown)) as server:
        school = School(tmp_path, server)
        async with school.app(settings={"skills.unrehearsed": "none"}) as app:
            await say(await school.attended(app), TASK)
            await eventually(looked(school, app), 30)
            (waiting,) = school.skills(app).store.proposals()
            assert waiting.name == NAME
            diff = f"`/skills diff {waiting.id}` shows it."
            words = f"A change to the skill {NAME} awaits approval: {diff}"
            await eventually(lambda: school.notices == [words])


async def test_a_look_back_that_was_left_is_taken_up_by_the_next_session(tmp_path: Path) -> None:
    async with ScriptedServer(Pupil()) as server:
        school = School(tmp_path, server)
        async with school.app() as app:
            # Nobody stays in this one, so nobody looks back.
            left = await app.open(SessionRequest(source="cli", attended=True, cwd=str(school.work)))
            assert await say(left, TASK) == 6
            records = await app.journal.read(left.id)
            (turn,) = {record.turn_id for record in records} - {""}
        async with school.app() as app:
            assert ledger_of(app.context.home).claim(
                left.id, turn, app.context.world.clock.now() - 9999
            )
            await school.attended(app)
            await eventually(lambda: [v.state for v in school.versions(app)] == ["active"], 30)
            assert school.versions(app)[0].cause.session == left.id


async def test_the_command_rehearses_and_decides(tmp_path: Path) -> None:
    pupil = Pupil()
    async with ScriptedServer(pupil) as server:
        school = School(tmp_path, server)
        school.needs("--slow")
        async with school.app() as app:
            shelf = school.skills(app).store
            shelf.apply(change("create", "--fast"))
            left = await app.open(SessionRequest(source="cli", attended=True, cwd=str(school.work)))
            assert await say(left, TASK) == 4
            better = shelf.propose(change("edit", "--slow"))
            worse = shelf.propose(change("edit", "--wrong"))
        env = {
            "PATH": os.environ["PATH"],
            "HERMES_HOME": str(school.home),
            "HOME": str(tmp_path),
            "OPENAI_API_KEY": "k",
        }
        (school.home / "config.yaml").write_text(
            f"model: {{default: scripted, provider: custom, base_url: '{server.url}/v1'}}\n"
            "approvals: {mode: 'off'}\n"
        )

        async def run(*words: str) -> tuple[int, dict[str, object]]:
            process = await asyncio.create_subprocess_exec(
                PROGRAM,
                *("skills", "rehearse", NAME, *words, "--json"),
                cwd=school.work,
                env=env,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                stdin=asyncio.subprocess.PIPE,
            )
            ended = await finished(process)
            return ended.code, decode(dict, ended.out.encode())

        code, found = await run(better.id, "--decide")
        assert (code, found["verdict"]) == (0, "promote")
        code, found = await run(worse.id)
        assert found["verdict"] == "keep", found
        async with school.app() as app:
            states = {v.id: v.state for v in school.versions(app)}
            assert (states[better.id], states[worse.id]) == ("active", "proposed")
            text = (school.home / "skills" / NAME / MAIN).read_text()
            assert commands_in(text)[0] == "sh build.sh --slow"


def change(action: str, flag: str) -> SkillChange:
    content = SKILL.format(flag=flag).encode()
    return SkillChange(
        name=NAME, action=action, cause=Cause(who="agent", session="s"), files={MAIN: content}
    )


async def test_what_a_person_allowed_then_is_allowed_in_a_rehearsal(tmp_path: Path) -> None:
    """And what would be a new question is no failure: it waits for the person."""
    async with ScriptedServer(Pupil()) as server:
        school = School(tmp_path, server)
        careful: JsonObject = {"approvals.mode": "manual"}
        reaching = 'test "$1" = "--slow" || { echo "wrong mode: needs --slow"; exit 2; }\n'
        (school.work / "build.sh").write_text(reaching + "touch out\n")
        async with school.app(settings=careful) as app:
            shelf = school.skills(app).store
            shelf.apply(change("create", "--slow; sudo -n true"))
            left = await app.open(SessionRequest(source="cli", attended=True, cwd=str(school.work)))
            asked = asyncio.ensure_future(allow_everything(left))
            await say(left, TASK)
            asked.cancel()
            same = shelf.propose(change("edit", "--slow; sudo -n true"))
            other = shelf.propose(change("edit", "--slow; sudo -n false"))
            rehearsals = Rehearsals(learning_deps(app), school.skills(app), left.meter)
            found = await rehearsals.rehearse(same, most=1)
            assert [trial.judgement for trial in found.trials] == ["same"], found
            found = await rehearsals.rehearse(other, most=1)
            assert [trial.judgement for trial in found.trials] == ["unclear"], found


async def allow_everything(session: Session) -> None:
    async for record in session.subscribe():
        if isinstance(record.event, ApprovalAsked):
            await asyncio.sleep(0.02)
            await session.send(Answer(id=record.event.id, text="once"))
