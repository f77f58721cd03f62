"""Drives a real Open WebUI in a real browser against `hermes serve` with a scripted model.

Too large for every run of the tests: whoever wants to look installs Open WebUI and a browser,

    python -m venv webui && webui/bin/pip install open-webui
    pip install playwright        # and a Chromium
    python scripts/check_open_webui.py --webui webui/bin/open-webui --chromium /usr/bin/chromium

Three messages are typed. Each must be answered on the page and be a turn of one and the same
session; the titles, tags and follow-ups that the page asks for in between must not be in it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes.codec.json import decode
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says

HERMES = Path(__file__).parent.parent / ".venv/bin/hermes"
SAID = ("My name is Ann.", "What is 2 + 2?", "Say goodbye.")
START_SECONDS = 300.0


def rule(request: Request) -> Step:
    """An answer by which each message is known again, and JSON for what the page wants itself."""
    last = str(request.body["messages"][-1]["content"])
    if "### Task:" in last:
        return says('{"title": "A talk", "tags": ["talk"], "follow_ups": ["And then?"]}')
    number = next((at for at, said in enumerate(SAID) if said in last), -1)
    return says(f"Answer number {number + 1} comes from Hermes.")


@contextmanager
def hermes(folder: Path, model: str) -> Iterator[tuple[str, str]]:
    """Its address and a token."""
    home = folder / "home"
    home.mkdir()
    (home / "config.yaml").write_text(
        f'model: {{default: scripted, provider: custom, base_url: "{model}/v1"}}\n'
        "auxiliary: {title_generation: {provider: none}}\n"
        # The page offers tools of its own with every message.
        "api_server: {ignore_client_tools: true}\n"
    )
    process = subprocess.Popen(
        [HERMES, "serve", "--port", "0"],
        env={"HERMES_HOME": str(home), "HOME": str(folder), "PATH": os.defpath},
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None
    try:
        yield found[0], (home / "api_token").read_text().strip()
    finally:
        process.kill()
        process.wait()


@contextmanager
def open_webui(program: str, folder: Path, port: int, url: str, token: str) -> Iterator[str]:
    own = {
        "DATA_DIR": str(folder / "webui"),
        "WEBUI_AUTH": "False",
        "OFFLINE_MODE": "True",
        "HF_HUB_OFFLINE": "1",
        "RAG_EMBEDDING_ENGINE": "openai",
        "ENABLE_OLLAMA_API": "False",
        "ENABLE_PERSISTENT_CONFIG": "False",
        "WEBUI_SECRET_KEY": "only for this run",
        "OPENAI_API_BASE_URL": url,
        "OPENAI_API_KEY": token,
    }
    (folder / "webui").mkdir()
    with (folder / "webui.log").open("w") as log:
        process = subprocess.Popen(
            [program, "serve", "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, **own, "HOME": str(folder)},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        at = f"http://127.0.0.1:{port}"
        _wait_for(f"{at}/health")
        yield at
    finally:
        process.terminate()
        process.wait()


def _wait_for(url: str) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(1)
    raise SystemExit(f"{url} did not answer within {START_SECONDS:.0f} seconds.")


def talk(page_url: str, chromium: str, picture: Path) -> None:
    """Type what is to be said and see the answers."""
    from playwright.sync_api import sync_playwright  # type: ignore[import-not-found]

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(90_000)
        page.goto(page_url)
        page.wait_for_selector("#chat-input")
        for words in ("Okay, Let's Go!", "Get started"):
            button = page.get_by_role("button", name=words)
            if button.count():
                button.first.click()
        try:
            for number, said in enumerate(SAID):
                page.click("#chat-input")
                page.keyboard.type(said)
                page.keyboard.press("Enter")
                page.get_by_text(f"Answer number {number + 1} comes from Hermes.").first.wait_for()
                # The page asks for a title and the like once an answer is there.
                page.wait_for_timeout(4_000)
        finally:
            page.screenshot(path=str(picture))
            browser.close()


def sessions(url: str, token: str) -> list[dict[str, Any]]:
    asked = urllib.request.Request(
        f"{url.removesuffix('/v1')}/api/sessions", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        found: list[dict[str, Any]] = decode(dict[str, Any], answer.read())["sessions"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--webui", required=True)
    parser.add_argument("--chromium", required=True)
    parser.add_argument("--port", type=int, default=18_080)
    parser.add_argument("--picture", type=Path, default=Path("open-webui.png"))
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        ScriptedServer.in_thread(rule, strict=False) as model,
        hermes(Path(name), model.url) as (url, token),
        open_webui(options.webui, Path(name), options.port, url, token) as page,
    ):
        talk(page, options.chromium, options.picture)
        found = sessions(url, token)
    talks = [each for each in found if SAID[0] in each["preview"]]
    for each in found:
        print(each["id"], each["message_count"], each["preview"][:60])
    assert len(talks) == 1, "the messages are not in one session"
    assert talks[0]["message_count"] == 2 * len(SAID), "other words are in the session"
    print(f"{len(SAID)} turns in one session, {len(found) - 1} requests of the page beside it.")


if __name__ == "__main__":
    main()
