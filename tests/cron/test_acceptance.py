"""What people expect of scheduled jobs, from the schedule to the message in their chat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes.core.errors import NotFound, UsageError
from hermes.cron.delivery import NoDelivery
from hermes.cron.output import is_silent
from hermes.cron.record import Actor
from hermes.hosting.job_sessions import make_scheduler
from hermes.testing.request import Request
from hermes.testing.steps import Step, fails, says
from tests.cron.scheduling import CHAT, answer, at, cron_home, joined

SKILL = "---\nname: feeds\ndescription: Read feeds.\n---\nRead the feeds first.\n"


async def test_a_job_with_a_skill_is_delivered_paused_and_resumed(tmp_path: Path) -> None:
    async with cron_home(tmp_path) as home:
        folder = home.stage.home / "skills/mine/feeds"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL)
        job = await home.add("every 2m", "Sum up.", name="Feeds", skills=["feeds"])
        wrapped = (
            f"Feeds ({job})\n---\nAll is well.\n_The agent does not see replies to this message._"
        )
        assert await home.after(120) == [wrapped]
        assert await home.after(120) == [wrapped]
        asked = home.stage.server.requests[-1].last_text
        assert "Read the feeds first." in asked
        assert asked.endswith("## Task\nSum up.")
        await home.jobs.pause(job, reason="holiday")
        assert await home.after(600) == []
        await home.jobs.resume(job)
        assert await home.after(120) == [wrapped]
        assert await home.states() == ["completed"] * 3


async def test_a_watchdog_is_silent_then_alerts_verbatim_then_reports_its_failure(
    tmp_path: Path,
) -> None:
    async with cron_home(tmp_path, settings="cron: {wrap_response: false}\n") as home:
        home.script("watch.sh", "cat alert 2>/dev/null; exit $(cat code 2>/dev/null || echo 0)\n")
        scripts = home.stage.home / "scripts"
        job = await home.add("every 5m", "", script="watch.sh", no_agent=True, name="Watch")
        for _ in range(3):
            assert await home.after(300) == []
        (scripts / "alert").write_text("The disk is *full*.\n")
        assert await home.after(300) == ["The disk is *full*."]
        (scripts / "code").write_text("1")
        (failure,) = await home.after(300)
        assert failure.startswith(f"Watch ({job}) failed\n---\nwatch.sh exited with 1")
        assert f"Attempt 1. `hermes cron runs {job}` shows the log." in failure
        assert await home.states() == ["completed"] * 4 + ["failed"]
        assert home.stage.server.requests == []


async def test_missed_hours_leave_one_skipped_row_and_the_next_slot_runs(tmp_path: Path) -> None:
    async with cron_home(tmp_path) as home:
        await home.add("0 * * * *")
        assert len(await home.at("2026-03-02T09:00:00+00:00")) == 1
        assert await home.at("2026-03-02T12:40:00+00:00") == []
        assert len(await home.at("2026-03-02T13:00:00+00:00")) == 1
        runs = await home.runs()
        assert [(run.state, run.error[:6]) for run in runs] == [
            ("completed", ""), ("skipped", "missed"), ("completed", ""),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "states"),
    [
        ("skip", ["skipped"]),
        ("once", ["completed"]),
        ("all", ["completed"] * 4),
    ],
)
async def test_missed_runs_follow_the_setting(
    tmp_path: Path, policy: str, states: list[str]
) -> None:
    async with cron_home(tmp_path, settings=f"cron: {{missed: {policy}}}\n") as home:
        await home.add("0 * * * *")
        await home.at("2026-03-02T12:40:00+00:00")
        assert await home.states() == states
        (job,) = await home.jobs.all()
        assert job["next_run_at"] == "2026-03-02T13:00:00+00:00"


async def test_a_run_within_the_grace_is_made_once(tmp_path: Path) -> None:
    async with cron_home(tmp_path) as home:
        await home.add("*/10 * * * *")
        assert len(await home.at("2026-03-02T08:14:59+00:00")) == 1
        assert await home.states() == ["completed"]


async def test_a_late_one_shot_runs_within_a_day_and_is_reported_after_that(
    tmp_path: Path,
) -> None:
    async with cron_home(tmp_path) as home:
        await home.add("in 1h", "First.", name="First")
        assert len(await home.after(3_600 + 80_000)) == 1
        late = await home.add("in 1h", "Second.", name="Second")
        (notice,) = await home.after(3_600 + 90_000)
        assert notice.startswith(f"Second ({late}) was missed: it was due at ")
        job = await home.jobs.get(late)
        assert (job["state"], job["last_error"]) == ("error", "missed")
        first = next(each for each in await home.jobs.all() if each["name"] == "First")
        assert (first["state"], first["next_run_at"]) == ("completed", None)


async def test_two_schedulers_start_each_due_time_once(tmp_path: Path) -> None:
    async with cron_home(tmp_path) as first, joined(first.stage, first.clock) as second:
        await first.add("every 1m")
        delivered = []
        for _ in range(20):
            delivered += await first.after(60)
            delivered += await second.tick()
        assert len(delivered) == 20
        runs = await first.runs()
        assert len({run.due_at for run in runs}) == len(runs) == 20
        assert {run.state for run in runs} == {"completed"}


SILENCE = [
    ("[SILENT]", True), ("  [SILENT]\n", True), ("[silent]", True), ("**[SILENT]**", True),
    ("`[SILENT]`", True), ("[SILENT]\nNothing new.", True), ("Nothing new.\n\n[SILENT]", True),
    ("SILENT", True), ("NO_REPLY", True), ("NO REPLY", True), ("no_reply.", True), ("", True),
    ("Write [SILENT] to stay quiet.", False), ("The marker is [SILENT]", False),
    ("One\n[SILENT]\nThree", False), ("SILENT night is a song.", False),
    ("NO REPLY came.\nShall I ask again?", False), ("SILENT\nbut not alone", False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "silent"), SILENCE)
def test_silence_is_a_marker_on_its_own_line(text: str, silent: bool) -> None:
    assert is_silent(text) is silent


async def test_silent_output_is_kept_and_a_failure_is_delivered_nevertheless(
    tmp_path: Path,
) -> None:
    steps: list[Step] = [says("[SILENT]"), fails(400, "[SILENT]")]
    async with cron_home(tmp_path, lambda _: steps.pop(0)) as home:
        job = await home.add("every 10m")
        assert await home.after(600) == []
        assert "status: silent" in home.output(job)
        assert [run.delivery for run in await home.runs()] == ["silent"]
        (failure,) = await home.after(600)
        assert "failed\n---\n" in failure
        assert "status: error" in home.output(job)


async def test_a_job_sees_the_last_real_output_of_another(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        if "## Task\nCount." in request.last_text:
            return says(counts.pop(0))
        return says("Seen.")

    counts = ["There are 12 apples.", "[SILENT]"]
    async with cron_home(tmp_path, rule) as home:
        first = await home.add("every 10m", "Count.", name="Counter")
        await home.add("every 30m", "Compare.", context_from=[first])
        await home.after(600)
        await home.after(600)
        await home.jobs.pause(first)
        await home.after(600)
        asked = home.stage.server.requests[-1].last_text
        assert f"## Output of Counter ({first})\nThere are 12 apples." in asked


async def test_a_new_time_zone_moves_naive_schedules_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cron_home(tmp_path, settings="timezone: Europe/Berlin\n") as home:
        daily = await home.add("daily at 12:00")
        interval = await home.add("every 6h")
        before = (await home.jobs.get(interval))["next_run_at"]
        assert (await home.jobs.get(daily))["next_run_at"] == "2026-03-02T12:00:00+01:00"
        await home.tick()
        config = home.stage.home / "config.yaml"
        config.write_text(config.read_text().replace("Europe/Berlin", "America/New_York"))
        await home.tick()
        await home.tick()
        assert (await home.jobs.get(daily))["next_run_at"] == "2026-03-02T12:00:00-05:00"
        assert (await home.jobs.get(interval))["next_run_at"] == before
        assert sum("time zone" in record.message for record in caplog.records) == 1


async def test_a_clock_that_is_set_back_neither_repeats_nor_loses_a_run(tmp_path: Path) -> None:
    async with cron_home(tmp_path) as home:
        await home.add("0 * * * *")
        # The clock was a year ahead.
        assert await home.at("2027-03-02T10:00:00+00:00") == []
        (job,) = await home.jobs.all()
        assert job["next_run_at"] == "2027-03-02T11:00:00+00:00"
        assert await home.at("2026-03-02T10:30:00+00:00") == []
        assert len(await home.at("2026-03-02T11:00:00+00:00")) == 1
        # Half an hour back: 11:00 comes again and has run.
        assert await home.at("2026-03-02T10:30:00+00:00") == []
        assert await home.at("2026-03-02T11:00:00+00:00") == []
        assert len(await home.at("2026-03-02T12:00:00+00:00")) == 1


async def test_output_without_a_gateway_waits_and_is_sent_by_the_next_one(tmp_path: Path) -> None:
    async with cron_home(tmp_path) as home:
        alone, sessions = make_scheduler(home.app, NoDelivery())
        await home.add("every 10m", deliver="telegram:7, local")
        home.clock.time += 600
        await alone.tick()
        await alone.wait()
        await sessions.close()
        state = await home.jobs.state()
        assert [waiting.target for waiting in state.waiting] == ["telegram:7"]
        assert (await home.runs())[0].delivery.startswith("waiting: telegram:7")
        (text,) = await home.tick()
        assert "All is well." in text
        assert (await home.jobs.state()).waiting == ()
        assert await home.tick() == []


async def test_a_failed_delivery_is_no_failed_run(tmp_path: Path) -> None:
    async with cron_home(tmp_path) as home:
        home.delivery.state = "failed"
        job = await home.add("every 10m")
        await home.after(600)
        stored = await home.jobs.get(job)
        assert (stored["last_status"], stored["last_delivery_error"]) == (
            "delivery_failed", "origin: no such chat",
        )  # fmt: skip
        assert await home.states() == ["completed"]
        assert len((await home.jobs.state()).undelivered) == 1
        assert "All is well." in home.output(job)


async def test_a_member_sees_and_changes_only_own_jobs(tmp_path: Path) -> None:
    member = Actor(by="chat", principal="member", person="telegram:42")
    async with cron_home(tmp_path) as home:
        owners = await home.add("every 1h")
        own = await home.jobs.add({"schedule": "every 1h", "prompt": "Mine."}, member)
        assert [job["id"] for job in await home.jobs.all(member)] == [own["id"]]
        assert len(await home.jobs.all(CHAT)) == 2
        with pytest.raises(NotFound):
            await home.jobs.pause(owners, member)
        with pytest.raises(UsageError, match="Only the owner may set `workdir`"):
            await home.jobs.change(own["id"], {"workdir": str(tmp_path)}, member)
        await home.after(3_600)
        (run,) = await home.runs(own["id"])
        opened = (await home.app.archive.records(run.session_id))[0].event
        assert (opened.principal, opened.person) == ("member", "telegram:42")
        assert await home.jobs.runs("", member) == (run,)


async def test_unknown_fields_of_jobs_survive_changes(tmp_path: Path) -> None:
    async with cron_home(tmp_path) as home:
        job = await home.add("every 1h")
        file = home.stage.home / "cron/jobs.json"
        stored = json.loads(file.read_text())
        stored["colour"] = "blue"
        stored["jobs"][0]["taste"] = ["sweet"]
        file.write_text(json.dumps(stored))
        await home.after(3_600)
        await home.jobs.change(job, {"name": "Other"})
        found = json.loads(file.read_text())
        assert (found["colour"], found["jobs"][0]["taste"]) == ("blue", ["sweet"])
        assert found["jobs"][0]["name"] == "Other"


def test_times_are_read_as_written() -> None:
    assert at("2026-03-02T08:00:00+00:00") == 1_772_438_400.0


async def test_repeat_counts_started_runs(tmp_path: Path) -> None:
    async with cron_home(tmp_path, answer("Done.")) as home:
        job = await home.add("every 1m", repeat=2)
        for _ in range(4):
            await home.after(60)
        assert await home.states(job) == ["completed"] * 2
        assert (await home.jobs.get(job))["state"] == "completed"
