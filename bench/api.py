"""The HTTP server: start, idle size, many streams at once, and turns per second next to Starlette
servers: one that streams the same answers word by word, as models do, or just the bytes that are
left when words that come together are joined; and one that does the least a turn needs."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import HERMES, PYTHON, ROOT, report, rounded
from bench.serving import served
from hermes.testing.request import Request
from hermes.testing.steps import Pace, Step

WORD = "word "
STREAMED = b'{"stream":true,"messages":[{"role":"user","content":"%s"}]}'
SETTINGS = "api_server: {max_concurrent_runs: 0}\nauxiliary: {title_generation: {provider: none}}\n"
AT_ONCE = 16
ROUNDS = 3


class Target:
    def __init__(self, pid: int, port: int, token: str) -> None:
        self.pid = pid
        self.port = port
        self.token = token

    async def ask(self, body: bytes) -> bytes:
        """One request over a connection of its own; the whole answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.read()
        writer.close()
        return answer

    async def get(self, path: str) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            f"Authorization: Bearer {self.token}\r\n\r\n"
        )
        writer.write(head.encode())
        answer = await reader.read()
        writer.close()
        return answer.decode()

    def resident(self) -> float:
        """MB in memory."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return float(line.split()[1]) / 1024
        return 0.0

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def hermes(folder: Path, model: str) -> Iterator[tuple[Target, float]]:
    home = folder / "home"
    home.mkdir()
    (home / "config.yaml").write_text(
        f'model: {{default: scripted, provider: custom, base_url: "{model}/v1"}}\n{SETTINGS}'
    )
    env = {"HERMES_HOME": str(home), "HOME": str(folder), "PATH": os.defpath}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [HERMES, "serve", "--port", "0"],
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    seconds = time.perf_counter() - begun
    found = re.search(r":(\d+)/v1", line)
    assert found, line
    try:
        token = (home / "api_token").read_text().strip()
        yield Target(process.pid, int(found[1]), token), seconds
    finally:
        process.kill()
        process.wait()


@contextmanager
def floor(folder: Path, port: int, model: str) -> Iterator[Target]:
    """With a model it is asked, without one the answer is always the same."""
    process = subprocess.Popen(
        [PYTHON, "-m", "bench.floors", str(port), str(folder), model], cwd=ROOT
    )
    target = Target(process.pid, port, "")
    try:
        asyncio.run(_until_up(target, process))
        yield target
    finally:
        process.kill()
        process.wait()


async def _until_up(target: Target, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            await target.get("/")
            return
        except ConnectionError:
            await asyncio.sleep(0.1)
    raise RuntimeError("the server to compare with did not start")


async def rate(target: Target, asked: bytes, count: int) -> tuple[float, float]:
    """Requests per second of wall time, and CPU milliseconds of the server for each."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with gate:
            answer = await target.ask(asked)
            assert b" 200 " in answer[:20] and b"[DONE]" in answer, answer[:500]

    await asyncio.gather(*(one() for _ in range(AT_ONCE)))
    cpu, begun = target.cpu(), time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    seconds = time.perf_counter() - begun
    return count / seconds, (target.cpu() - cpu) / count * 1000


def compare(own: Target, folder: Path, model: str, words: int, count: int) -> None:
    """The best of a few rounds of each, in turns: all meet the same state of the machine."""
    asked = STREAMED % str(words).encode()
    said = _events(asyncio.run(own.ask(asked)))
    (folder / "joined").write_bytes(said)
    (folder / str(words)).write_bytes(_word_by_word(said, words))
    with floor(folder, 18_650, "") as bare, floor(folder, 18_651, model) as asking:
        cases = (own, asked), (bare, asked), (bare, STREAMED % b"joined"), (asking, asked)
        found: list[list[tuple[float, float]]] = [[] for _ in cases]
        for _ in range(ROUNDS):
            for (target, question), rates in zip(cases, found, strict=True):
                rates.append(asyncio.run(rate(target, question, count)))
    best = [max(each for each, _ in case) for case in found]
    cpu = [rounded(min(each for _, each in case), 2) for case in found]
    report(
        "api_rate",
        words=words,
        requests_per_second=rounded(best[0], 1),
        cpu_ms=cpu[0],
        bare_starlette=rounded(best[1], 1),
        bare_cpu_ms=cpu[1],
        joined_starlette=rounded(best[2], 1),
        joined_cpu_ms=cpu[2],
        asking_starlette=rounded(best[3], 1),
        asking_cpu_ms=cpu[3],
        ratio=rounded(best[0] / best[1], 3),
        ratio_to_joined=rounded(best[0] / best[2], 3),
        ratio_to_asking=rounded(best[0] / best[3], 3),
        goal="ratio >= 0.5",
    )


def _word_by_word(said: bytes, words: int) -> bytes:
    """The same answer, an event for each word, as the model says it."""
    events = said.split(b"\n\n")
    chunk = json.loads(next(e for e in events if b'"content":"word' in e).removeprefix(b"data: "))
    chunk["choices"][0]["delta"]["content"] = WORD
    word = b"data: " + json.dumps(chunk, separators=(",", ":")).encode()
    ends = [event for event in events if b'"finish_reason":"' in event or b"[DONE]" in event]
    return b"\n\n".join([events[0], *[word] * words, *ends, b""])


def _events(answer: bytes) -> bytes:
    """What a stream said, without the frames of HTTP."""
    body = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", answer.partition(b"\r\n\r\n")[2])
    return body[body.index(b"data:") :].removesuffix(b"\r\n0\r\n\r\n")


async def crowd(target: Target, streams: int) -> None:
    before = target.resident()
    begun = time.perf_counter()
    answers = await asyncio.gather(*(target.ask(STREAMED % b"60") for _ in range(streams)))
    seconds = time.perf_counter() - begun
    broken = sum(b"[DONE]" not in answer or b'"error"' in answer for answer in answers)
    found = re.search(r"lag_seconds ([0-9.e-]+)", await target.get("/metrics"))
    await asyncio.sleep(1)
    report(
        "api_streams",
        count=streams,
        broken=broken,
        seconds=rounded(seconds, 2),
        worst_stall_ms=rounded(float(found[1]) * 1000, 1) if found else None,
        kb_left_per_session=rounded((target.resident() - before) * 1024 / streams, 1),
        goal="none broken, no stall > 100 ms",
    )


def _said(request: Request) -> Step:
    """So many words as are asked for, an event for each."""
    return Step(text=WORD * int(request.messages[-1].text), pace=Pace(chunk=len(WORD)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--words", type=int, nargs="+", default=[60, 200])
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        served(_said) as model,
        hermes(Path(name), model) as (own, seconds),
    ):
        report(
            "api_start",
            seconds=rounded(seconds, 3),
            cpu_seconds=rounded(own.cpu(), 2),
            idle_mb=rounded(own.resident(), 1),
            goal="seconds <= 1, mb <= 80",
        )
        asyncio.run(own.ask(STREAMED % b"60"))
        for _ in range(2):
            asyncio.run(crowd(own, options.streams))
        for words in options.words:
            compare(own, Path(name), model, words, options.requests)


if __name__ == "__main__":
    main()
