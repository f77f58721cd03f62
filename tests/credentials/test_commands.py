"""`hermes auth`, `hermes login` and `hermes logout`, as people run them."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hermes.config.home import Home
from tests.credentials.authority import Authority
from tests.credentials.bench import START, Bench, failed, write_login
from tests.surfaces.cli.terminal import Result, Terminal

PROGRAM = str(Path(sys.executable).with_name("hermes"))
SECONDS = 60


@pytest.fixture
def hermes(
    tmp_path: Path,
    hermes_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Terminal:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HERMES_PROFILE", "DISPLAY", "WAYLAND_DISPLAY", "GH_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return Terminal(hermes_home, capsys)


def typed(hermes: Terminal, monkeypatch: pytest.MonkeyPatch, text: str, *words: str) -> Result:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return hermes(*words)


def test_nothing_is_there_at_first(hermes: Terminal) -> None:
    assert "no key or login yet" in hermes("auth").out
    assert hermes("auth", "list", "--json").json == []
    assert hermes("auth", "status", "--json").json["accounts"] == []


def test_a_key_from_stdin_is_added_and_never_shown(
    hermes: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = typed(
        hermes, monkeypatch, "sk-or-secret\n", "auth", "add", "openrouter", "--label", "work"
    )
    assert added.code == 0
    assert "openrouter: added work as number 1" in added.out
    listed, status = hermes("auth", "list"), hermes("auth")
    assert "work" in listed.out
    assert "ok ←" in listed.out
    assert "openrouter" in status.out
    rows = hermes("auth", "list", "openrouter", "--json")
    assert rows.json[0]["label"] == "work"
    for shown in (added, listed, status, rows):
        assert "sk-or-secret" not in shown.out + shown.err


def test_a_key_can_be_given_removed_and_missed(hermes: Terminal) -> None:
    assert hermes("auth", "add", "or", "--api-key", "sk-or-secret").code == 0
    assert hermes("auth", "remove", "openrouter", "1").out == "key 1 is removed from openrouter.\n"
    gone = hermes("auth", "remove", "openrouter", "1")
    assert (gone.code, gone.out) == (1, "")
    assert gone.err.startswith("error: openrouter has no key '1'; `hermes auth list openrouter`")


def test_a_variable_is_named_when_it_is_no_longer_used(
    hermes: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-ds-secret")
    assert "DEEPSEEK_API_KEY" in hermes("auth", "list").out
    removed = hermes("auth", "remove", "deepseek", "1")
    assert removed.out == (
        "deepseek no longer uses DEEPSEEK_API_KEY; the variable itself is unchanged.\n"
    )
    assert hermes("auth", "list", "deepseek").out.startswith("deepseek has no key")


@pytest.mark.parametrize(
    "words",
    [
        ("auth", "add"),
        ("auth", "add", "openrouter", "--type", "oauth", "--api-key", "x"),
        ("auth", "add", "openrouter", "--api-key", "abc"),
        ("auth", "add", "openrouter", "--type", "magic"),
        ("auth", "reset"),
        ("login",),
    ],
)
def test_wrong_usage_is_reported_in_one_line(hermes: Terminal, words: tuple[str, ...]) -> None:
    result = hermes(*words)
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1


def test_an_unknown_provider_is_reported(hermes: Terminal) -> None:
    result = hermes("auth", "list", "opnrouter")
    assert result.code == 1
    assert "openrouter" in result.err


async def test_what_rests_is_shown_and_woken(hermes: Terminal) -> None:
    words = ("auth", "add", "deepseek", "--api-key")
    for key in ("sk-secret-1", "sk-secret-2"):
        await asyncio.to_thread(hermes, *words, key)
    bench = Bench(hermes.home, provider="deepseek")
    bench.clock.passed = time.time() - START
    await bench.pool.report(await bench.pool.pick(), failed("billing"))
    status = await asyncio.to_thread(hermes, "auth")
    assert "1 of 2 ready" in status.out
    assert "has no credit" in status.out
    listed = await asyncio.to_thread(hermes, "auth", "list")
    assert "paused for 1 d (no credit)" in listed.out or "paused for 24 h" in listed.out
    reset = await asyncio.to_thread(hermes, "auth", "reset", "deepseek")
    assert reset.out == "1 paused key of deepseek can be used again.\n"
    assert "rests" not in (await asyncio.to_thread(hermes, "auth", "list")).out


def test_a_login_without_a_client_id_names_both_roads(hermes: Terminal) -> None:
    result = hermes("login", "nous")
    assert result.code == 1
    assert "HERMES_NOUS_CLIENT_ID" in result.err
    assert "hermes auth add nous --type api-key" in result.err
    assert not (hermes.home / "auth.json").exists()


def test_nobody_can_log_out_who_is_not_logged_in(hermes: Terminal) -> None:
    assert "There is no login" in hermes("logout").err
    assert "no login at nous" in hermes("logout", "nous").err


def test_a_damaged_file_is_reported_and_kept(hermes: Terminal) -> None:
    (hermes.home / "auth.json").write_text("{")
    for words in (("auth",), ("auth", "add", "openrouter", "--api-key", "sk-or-secret")):
        result = hermes(*words)
        assert result.code == 1
        assert "is damaged" in result.err
    assert (hermes.home / "auth.json").read_text() == "{"


async def run(home: Path, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        PROGRAM,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "HERMES_HOME": str(home)},
    )


async def ended(process: asyncio.subprocess.Process) -> str:
    """All that it has said."""
    try:
        async with asyncio.timeout(SECONDS):
            return (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()


async def test_a_key_that_is_typed_in_is_not_echoed(hermes: Terminal) -> None:
    keyboard = Keyboard(hermes.home, "auth", "add", "openrouter")
    try:
        shown = await keyboard.until("(hidden)")
        keyboard.type("sk-or-typed-in\n")
        shown += await keyboard.until("as number 1")
        assert await asyncio.to_thread(keyboard.program.wait, 60) == 0
        shown += await keyboard.rest()
    finally:
        await keyboard.leave()
    assert "sk-or-typed-in" not in shown
    assert "sk-or-typed-in" in (hermes.home / "auth.json").read_text()


async def test_a_person_logs_in_and_out(hermes: Terminal, authority: Authority) -> None:
    authority.interval = 0
    authority.answers = ["authorization_pending"] * 3
    write_login(Home(hermes.home), "vendor", authority.url, "device", label="Vendor")
    login = await run(hermes.home, "login", "vendor", "--no-browser")
    out = await ended(login)
    assert login.returncode == 0, out
    assert "WXYZ-1234" in out
    assert f"{authority.url}/activate" in out
    assert "Logged in to vendor (Vendor)." in out
    stored = json.loads((hermes.home / "auth.json").read_text())
    token = stored["credential_pool"]["vendor"][0]["access_token"]
    assert token not in out
    logout = await run(hermes.home, "logout")
    out = await ended(logout)
    assert "Logged out of vendor (Vendor), and the provider revoked the token" in out
    assert "refresh" not in (hermes.home / "auth.json").read_text()


async def test_a_login_ends_at_once_when_it_is_interrupted(
    hermes: Terminal, authority: Authority
) -> None:
    authority.interval = 60
    write_login(Home(hermes.home), "vendor", authority.url, "device")
    login = await run(hermes.home, "login", "vendor")
    assert login.stdout is not None
    async with asyncio.timeout(SECONDS):
        await login.stdout.readuntil(b"Ctrl+C")
    login.send_signal(signal.SIGINT)
    out = await ended(login)
    assert login.returncode == 130
    assert "Traceback" not in out
    assert not (hermes.home / "auth.json").exists()


class Keyboard:
    """A program in a terminal of its own."""

    def __init__(self, home: Path, *words: str) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.program = subprocess.Popen(
            [PROGRAM, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "HERMES_HOME": str(home), "TERM": "xterm"},
        )
        os.close(theirs)
        self._shown = b""

    async def until(self, words: str) -> str:
        """All that was shown up to these words, which are then behind."""
        async with asyncio.timeout(SECONDS):
            while words.encode() not in self._shown:
                self._shown += await asyncio.to_thread(os.read, self._ours, 10_000)
        before, _, self._shown = self._shown.partition(words.encode())
        return before.decode("utf-8", "replace")

    async def rest(self) -> str:
        """What a program has shown last that has ended."""
        with suppress(OSError):
            while more := await asyncio.to_thread(os.read, self._ours, 10_000):
                self._shown += more
        return self._shown.decode("utf-8", "replace")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    async def leave(self) -> None:
        self.program.kill()
        await asyncio.to_thread(self.program.wait)
        os.close(self._ours)


@pytest.mark.parametrize("patience", [(), ("--timeout", "0.2")])
async def test_whoever_chooses_a_model_is_logged_in_where_that_is_missing(
    hermes: Terminal, authority: Authority, patience: tuple[str, ...]
) -> None:
    authority.interval = 60 if patience else 0
    authority.answers = ["authorization_pending"] * 2
    write_login(Home(hermes.home), "openai-codex", authority.url, "device", label="Plan")
    keyboard = Keyboard(hermes.home, "model", "--no-browser", *patience)
    try:
        await keyboard.until("Esc cancels")
        keyboard.type("openai-codex")
        await keyboard.until("needs a key or login")
        keyboard.type("\r")
        if patience:
            await keyboard.until("There was no login to openai-codex within 0.2 s")
            await keyboard.until("Which provider?")
            assert not (hermes.home / "auth.json").exists()
        else:
            await keyboard.until(f"{authority.url}/activate")
            await keyboard.until("Logged in to openai-codex (Plan)")
            await keyboard.until("Which model?")
            assert "openai-codex" in (hermes.home / "auth.json").read_text()
    finally:
        await keyboard.leave()
