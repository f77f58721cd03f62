"""Learning from beginning to end: a task makes a skill, the next one uses it, it is mended, and
what would harm is refused."""

from __future__ import annotations

from pathlib import Path

from hermes.learning.rehearsals import ledger_of
from hermes.skills.history import Cause
from hermes.skills.store import SkillChange
from hermes.skills.usage import skill_stats
from hermes.testing.server import ScriptedServer
from tests.durability.observing import eventually
from tests.learning.school import NAME, SKILL, Pupil, School, commands_in, say


async def test_a_skill_is_learned_used_mended_and_defended(tmp_path: Path) -> None:
    pupil = Pupil()
    async with ScriptedServer(pupil) as server:
        school = School(tmp_path, server)
        app = school.app()

        # The first time everything must be found out.
        first = await school.attended(app)
        assert await say(first, "Build a release.") == 6
        await eventually(lambda: [v.state for v in school.versions(app)] == ["active"])
        (created,) = school.versions(app)
        assert (created.cause.who, created.cause.session) == ("review", first.id)
        assert created.cause.model == "scripted"
        assert created.reason == f"rehearsed in {first.id}: 6 calls before, 2 now"
        await app.close_session(first)

        # The second time the list has it, and fewer calls do, though the world has changed.
        school.needs("--slow")
        second = await school.attended(app)
        assert second.transcript.opened is not None
        assert f"- {NAME}:" in second.transcript.opened.system
        assert await say(second, "Build a release.") == 4

        # The person says so; the wrong step is mended after it was tried.
        pupil.patch = ("--fast", "--slow")
        await say(second, "No, use --slow from now on.")
        await eventually(lambda: len(school.versions(app)) == 2, 20)
        await eventually(lambda: school.versions(app)[-1].state == "active", 20)
        mended = school.versions(app)[-1]
        assert mended.reason == f"rehearsed in {second.id}: 4 calls before, 3 now"
        await app.close_session(second)

        third = await school.attended(app)
        assert await say(third, "Build a release.") == 3

        # What would harm is refused, and the session that shows it is named.
        pupil.patch = ("--slow", "--fast")
        await say(third, "Actually, always build with --fast.")
        await eventually(lambda: len(school.versions(app)) == 3, 20)
        await eventually(lambda: school.versions(app)[-1].state == "refused", 20)
        refused = school.versions(app)[-1]
        assert refused.reason.startswith(f"worse in session {third.id} from record ")
        assert "1 failed calls instead of 0" in refused.reason
        text = (school.home / "skills" / "work" / NAME / "SKILL.md").read_text()
        assert commands_in(text) == ["sh build.sh --slow", "sh check.sh"]
        kept = ledger_of(app.context.home).rehearsal(refused.id)
        assert kept is not None and kept.trials[0].session == third.id
        (stats,) = [s for s in await skill_stats(app.journal, school.skills(app)) if s.name == NAME]
        assert sorted(v.successes for v in stats.versions.values()) == [1, 1]
        costs = {line.cause for line in await app.archive.spending()}
        assert {"background_review", "rehearsal"} <= costs
        await app.close()
    assert pupil.reviews == 3


async def test_a_new_skill_that_would_harm_is_refused(tmp_path: Path) -> None:
    wrong = SKILL.replace(" {flag}", "").replace("2. ", "2. `sh build.sh`\n3. ")
    pupil = Pupil(wrong)
    async with ScriptedServer(pupil) as server:
        school = School(tmp_path, server)
        async with school.app() as app:
            first = await school.attended(app)
            assert await say(first, "Build a release.") == 6
            await eventually(lambda: [v.state for v in school.versions(app)] == ["refused"], 20)
            (refused,) = school.versions(app)
            assert refused.reason.startswith(f"worse in session {first.id} from record 4 on: ")
            assert "2 failed calls instead of 1" in refused.reason
            await eventually(lambda: any("was refused" in each for each in school.notices))
            assert not (school.home / "skills" / "work" / NAME).exists()
            kept = ledger_of(app.context.home).rehearsal(refused.id)
            assert kept is not None
            assert [(trial.session, trial.n) for trial in kept.trials] == [(first.id, 4)]
            await app.close_session(first)

            # The next one finds it out again, as if nobody had proposed anything.
            second = await school.attended(app)
            assert second.transcript.opened is not None
            assert NAME not in second.transcript.opened.system
            assert await say(second, "Build a release.") == 6
            await app.close_session(second)


async def test_a_harmful_change_that_was_forced_in_goes_back_by_itself(tmp_path: Path) -> None:
    async with ScriptedServer(Pupil()) as server:
        school = School(tmp_path, server)
        async with school.app(settings={"skills.review_calls": 0}) as app:
            shelf = school.skills(app).store

            async def use(heard: str = "") -> int:
                known = len(ledger_of(app.context.home).runs(NAME))
                session = await school.attended(app)
                count = await say(session, "Build a release.")
                await eventually(lambda: len(ledger_of(app.context.home).runs(NAME)) > known, 20)
                await eventually(lambda: any(heard in each for each in (*school.notices, "")), 20)
                await app.close_session(session)
                return count

            def change(action: str, flag: str) -> SkillChange:
                files: dict[str, bytes | None] = {"SKILL.md": SKILL.format(flag=flag).encode()}
                return SkillChange(name=NAME, action=action, cause=Cause(who="agent"), files=files)

            good = shelf.apply(change("create", "--fast"))
            assert await use() == 3
            shelf.apply(change("edit", "--wrong"))
            assert [await use() for _ in range(2)] == [4, 4]
            assert await use(f"Reverted the skill {NAME} to version {good.id}") == 4
            back = school.versions(app)[-1]
            assert (back.hash, back.action) == (good.hash, f"revert to {good.id}")
            assert back.cause.words == "3 of 3 turns with it went badly"
            assert await use() == 3
