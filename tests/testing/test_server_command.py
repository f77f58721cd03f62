"""The scripted server as a command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from hermes.codec.values import JsonObject
from tests.judges.judge import complaints_of_log

CHAT = "/v1/chat/completions"
HI: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SOURCE = Path(__file__).parents[2] / "src"


def text_of(answer: httpx2.Response) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def test_the_command_serves_a_file_and_logs_requests(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps({"steps": ["Hello.", {"calls": [{"name": "look", "arguments": {"at": "x"}}]}]})
    )
    log = tmp_path / "requests.jsonl"
    command = [sys.executable, "-m", "hermes.testing.server", "--script", str(script)]
    process = subprocess.Popen(
        [*command, "--log", str(log)],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(SOURCE)},
        text=True,
    )
    with process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        assert text_of(httpx2.post(url + CHAT, json=HI, verify=False, timeout=60)) == "Hello."
        made = httpx2.post(url + CHAT, json=HI, verify=False, timeout=60).json()["choices"][0][
            "message"
        ]["tool_calls"][0]
        process.send_signal(signal.SIGTERM)
        ending = json.loads(process.stdout.readline())
    assert made["function"] == {"name": "look", "arguments": '{"at":"x"}'}
    assert ending == {"requests": 2, "steps_left": 0, "violations": [], "micros": "0"}
    assert process.returncode == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["n"], line["wire"], line["body"]) for line in lines] == [
        (1, "chat", HI),
        (2, "chat", HI),
    ]
    assert complaints_of_log(log) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"steps": [{"txt": "x"}]}', "unknown field `txt` - at `$.steps[0]`"),
        (None, "cannot be read: No such file"),
    ],
)
def test_the_command_refuses_a_bad_script(tmp_path: Path, content: str | None, reason: str) -> None:
    script = tmp_path / "script.json"
    if content is not None:
        script.write_text(content)
    done = subprocess.run(
        [sys.executable, "-m", "hermes.testing.server", "--script", str(script)],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert reason in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_trivial_answer_costs_the_server_less_than_half_a_millisecond(
    tmp_path: Path, stream: bool
) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"steps": ["Hello."], "loop": true}')
    command = [sys.executable, "-m", "hermes.testing.server", "--script", str(script)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={"PYTHONPATH": str(SOURCE)}, text=True
    )
    with process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        before = cpu_seconds(process.pid)
        with httpx2.Client(base_url=url, verify=False, timeout=60) as http:
            for _ in range(2000):
                http.post(CHAT, json=HI | {"stream": stream}).raise_for_status()
        spent = cpu_seconds(process.pid) - before
        process.terminate()
    assert spent / 2000 < 0.0005


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
