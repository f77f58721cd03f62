"""`hermes webhook` as a person runs it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.surfaces.gateway.platform import PlatformContext
from hermes.surfaces.gateway.platforms.contract_checks import connect
from hermes.surfaces.gateway.platforms.webhook.adapter import Webhook

HERMES = str(Path(sys.executable).with_name("hermes"))


def hermes(home: Path, *words: str, port: int = 0) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HERMES_HOME": str(home), "WEBHOOK_PORT": str(port or 9)}
    command = [HERMES, "webhook", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_a_webhook_is_made_listed_and_removed(tmp_path: Path) -> None:
    made = hermes(tmp_path, "subscribe", "ci", "--events", "push,ping", "--json")
    row = json.loads(made.stdout)
    assert (row["name"], row["events"]) == ("ci", ["push", "ping"])
    assert len(row["secret"]) > 30
    listed = hermes(tmp_path, "list", "--json").stdout
    assert row["secret"] not in listed
    assert json.loads(listed)[0]["url"].endswith("/webhooks/ci")
    path = tmp_path / "webhook_subscriptions.json"
    assert path.stat().st_mode & 0o777 == 0o600
    again = hermes(tmp_path, "subscribe", "ci")
    assert (again.returncode, "hermes webhook remove ci" in again.stderr) == (2, True)
    assert hermes(tmp_path, "remove", "ci").returncode == 0
    assert hermes(tmp_path, "remove", "ci").returncode != 0
    assert "There is no webhook" in hermes(tmp_path, "list").stdout


def test_a_webhook_that_cannot_work_is_not_made(tmp_path: Path) -> None:
    done = hermes(tmp_path, "subscribe", "ci", "--deliver-only")
    assert done.returncode != 0
    assert "must name a target" in done.stderr
    assert "Traceback" not in done.stderr
    assert hermes(tmp_path, "subscribe", "../x").returncode != 0


async def test_a_test_request_reaches_the_running_gateway(tmp_path: Path) -> None:
    def run(*words: str, port: int = 0) -> subprocess.CompletedProcess[str]:
        return hermes(tmp_path, *words, port=port)

    assert run("subscribe", "ci", "--prompt", "{ref} changed").returncode == 0
    away = run("test", "ci")
    assert (away.returncode, "start it with `hermes gateway`" in away.stderr) == (1, True)
    folder = tmp_path / "platforms" / "webhook"
    folder.mkdir(parents=True)
    context = PlatformContext(
        settings={"WEBHOOK_PORT": "0"},
        extra={},
        folder=folder,
        media=tmp_path,
        max_media_bytes=1,
        http=HttpClient(),
        world=World(),
    )
    adapter = Webhook(context)
    async with connect(adapter) as connection:
        await connection.wait_for()
        words = ("test", "ci", "--payload", '{"ref": "main"}')
        done = await asyncio.to_thread(run, *words, port=adapter.port)
        assert (done.returncode, "accepted" in done.stdout) == (0, True), done.stderr
        assert [event.text for event in connection.events] == ["main changed"]
