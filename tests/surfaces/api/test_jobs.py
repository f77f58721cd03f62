"""Jobs over HTTP: kept, checked, changed, paused and removed; nobody is said to run them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import httpx2
import pytest

from tests.surfaces.api.serving import HERMES, Serving


@pytest.fixture
def client(api: Serving) -> Iterator[httpx2.Client]:
    with api.client() as client:
        for job in client.get("/api/jobs").json()["jobs"]:
            client.delete(f"/api/jobs/{job['id']}")
        yield client


def made(client: httpx2.Client, **more: object) -> dict[str, object]:
    body = {"prompt": "tidy up", "schedule": "every 2h", **more}
    done = client.post("/api/jobs", json=body)
    assert done.status_code == 201, done.text
    payload: dict[str, object] = done.json()
    return payload


def test_a_job_is_kept_and_nobody_is_said_to_run_it(api: Serving, client: httpx2.Client) -> None:
    payload = made(client, name="Tidy", skills=["folders"])
    job, scheduler = payload["job"], payload["scheduler"]
    assert isinstance(job, dict)
    assert isinstance(scheduler, dict)
    assert scheduler["running"] is False
    assert "stored but not started" in scheduler["note"]
    assert (job["name"], job["state"], job["schedule_display"]) == (
        "Tidy", "scheduled", "every 2h",
    )  # fmt: skip
    assert job["created_by"].startswith("api:")
    file = api.home / "cron" / "jobs.json"
    assert json.loads(file.read_text())["jobs"] == [job]
    assert file.stat().st_mode & 0o777 == 0o600
    assert client.get(f"/api/jobs/{job['id']}").json()["job"] == job
    assert client.get("/health/detailed").json()["cron"]["jobs"] == 1
    assert client.get(f"/api/jobs/{job['id']}/runs").json()["runs"] == []


def test_a_job_is_changed_paused_resumed_made_due_and_removed(client: httpx2.Client) -> None:
    job = made(client)["job"]
    assert isinstance(job, dict)
    path = f"/api/jobs/{job['id']}"
    changed = client.patch(path, json={"schedule": "daily at 9:00", "repeat": 3}).json()["job"]
    assert (changed["schedule"]["expr"], changed["repeat"]["times"]) == ("0 9 * * *", 3)
    paused = client.post(f"{path}/pause", json={"reason": "holiday"}).json()["job"]
    assert (paused["state"], paused["paused_reason"]) == ("paused", "holiday")
    assert client.get("/api/jobs", params={"include_disabled": "false"}).json()["jobs"] == []
    resumed = client.post(f"{path}/resume", json={}).json()["job"]
    assert (resumed["enabled"], resumed["paused_reason"]) == (True, None)
    due = client.post(f"{path}/run", json={})
    assert due.status_code == 202
    assert due.json()["job"]["run_requested_at"]
    assert due.json()["scheduler"]["running"] is False
    assert client.delete(path).json()["deleted"] is True
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "x", "schedule": "sometimes"},
        {"prompt": "x", "schedule": "every 5s"},
        {"prompt": "x", "schedule": "0 0 31 2 *"},
        {"prompt": "x", "schedule": "2001-01-01T00:00"},
        {"prompt": "x" * 5001, "schedule": "1h"},
        {"prompt": "a\u200bb", "schedule": "1h"},
        {"prompt": "x", "schedule": "1h", "script": "/etc/passwd"},
        {"schedule": "1h"},
    ],
)
def test_what_cannot_be_a_job_is_refused_with_a_reason(
    client: httpx2.Client, body: dict[str, str]
) -> None:
    done = client.post("/api/jobs", json=body)
    assert done.status_code == 400
    assert done.json()["error"]["message"]
    assert client.get("/api/jobs").json()["jobs"] == []


def test_the_same_request_twice_makes_one_job(client: httpx2.Client) -> None:
    headers = {"Idempotency-Key": "one-job"}
    body = {"prompt": "x", "schedule": "1h"}
    first = client.post("/api/jobs", json=body, headers=headers)
    second = client.post("/api/jobs", json=body, headers=headers)
    assert first.json()["job"]["id"] == second.json()["job"]["id"]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len(client.get("/api/jobs").json()["jobs"]) == 1


@pytest.mark.parametrize("id", ["nope", "..%2F..%2Fx", "ABCDEF012345", "0a1b2c3d4e5f"])
def test_ids_of_other_shapes_are_not_there(client: httpx2.Client, id: str) -> None:
    assert client.get(f"/api/jobs/{id}").status_code == 404


def test_the_runs_of_a_job_are_listed_and_a_stranger_is_refused(
    api: Serving, client: httpx2.Client
) -> None:
    job = made(client)["job"]
    assert isinstance(job, dict)
    path = f"/api/jobs/{job['id']}"
    client.post(f"{path}/run", json={})
    env = os.environ | {"HERMES_HOME": str(api.home), "HOME": str(api.home.parent)}
    words = [HERMES, "--provider", "offline", "cron", "tick"]
    subprocess.run(words, env=env, check=True, capture_output=True)
    payload = client.get(f"{path}/runs").json()
    (run,) = payload["runs"]
    assert (run["job"], run["state"], run["delivery"]) == (job["id"], "completed", "local")
    assert run["session_id"].startswith(f"cron_{job['id']}_")
    assert payload["scheduler"]["running"] is True
    (api.home / "cron/ticker_heartbeat").unlink()
    assert httpx2.get(f"{api.url}{path}/runs").status_code == 401


def test_a_damaged_file_of_jobs_is_put_aside(api: Serving, client: httpx2.Client) -> None:
    made(client, name="first")
    made(client, name="second")
    file = api.home / "cron" / "jobs.json"
    file.write_text("{not json")
    assert [job["name"] for job in client.get("/api/jobs").json()["jobs"]] == ["first"]
    assert list(file.parent.glob("jobs.json.corrupt-*"))
