"""The web tools in real sessions, against real servers on this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.effects import CallServer
from hermes.core.events import ToolFinished, ToolIntended
from hermes.core.messages import ToolResult
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.web.site import Page, Site, page

PROSE = "Herons wait at the water, strike fast, and eat fish, frogs and voles. " * 5
HTML = f"<title>Herons</title><main><h1>Herons</h1><p>{PROSE}</p></main>".encode()


class Talk:
    """One session with a scripted model; `say` returns the results of its tool calls."""

    def __init__(self, app: App, server: ScriptedServer, cwd: Path) -> None:
        self.app = app
        self.server = server
        self._cwd = cwd
        self.judged: list[object] = []

    async def say(self, *steps: Step) -> list[ToolResult]:
        self.server.add(*steps, says("Done."))
        request = SessionRequest(source="cli", attended=False, cwd=str(self._cwd))
        session = await self.app.open(request)
        await session.send(Say(text="Go on."))
        await session.wait_until_idle()
        records = await self.app.journal.read(session.id)
        self.judged = [
            each.effect
            for record in records
            if isinstance(record.event, ToolIntended)
            for each in record.event.judged
        ]
        await self.app.close_session(session)
        return [record.event.result for record in records if isinstance(record.event, ToolFinished)]


Start = Callable[..., Awaitable[Talk]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def make(settings: str = "", **env: str) -> Talk:
            server = await stack.enter_async_context(ScriptedServer())
            home = tmp_path / "home"
            home.mkdir()
            (home / "config.yaml").write_text(
                f"model: {{default: m, provider: box}}\n"
                f"providers: {{box: {{base_url: '{server.url}/v1'}}}}\n"
                f"security: {{allow_private_urls: true}}\n{settings}"
            )
            app = App(load(Home(home), env=env), env=env, world=World())
            await stack.enter_async_context(app)
            return Talk(app, server, tmp_path)

        yield make


def read(result: ToolResult) -> JsonObject:
    (found,) = json.loads(result.text)["results"]
    assert isinstance(found, dict)
    return found


async def test_a_page_is_read_without_any_configuration(start: Start) -> None:
    async with Site({"/h": page(HTML, content_type="text/html")}) as site:
        talk = await start()
        (result,) = await talk.say(calls("web_extract", urls=[site.url("/h")]))
        assert read(result) == {
            "url": site.url("/h"),
            "title": "Herons",
            "content": f"# Herons\n\n{PROSE.strip()}",
        }
        assert result.origin == "web:127.0.0.1"


async def test_pages_that_robots_txt_excludes_are_not_requested(start: Start) -> None:
    robots = page(b"User-agent: *\nDisallow: /closed", content_type="text/plain")
    async with Site({"/robots.txt": robots, "/closed": page(HTML)}) as site:
        talk = await start()
        (result,) = await talk.say(calls("web_extract", urls=[site.url("/closed")]))
        assert "robots.txt" in read(result)["error"]
        assert [each.split(b" ")[1] for each in site.asked] == [b"/robots.txt"]


async def test_a_page_is_fetched_again_only_if_it_may_have_changed(start: Start) -> None:
    asked: list[bytes] = []

    def answer(request: bytes) -> bytes:
        asked.append(request)
        if b'if-none-match: "v1"' in request:
            return page(b"", 304)
        return page(HTML, etag='"v1"', cache_control="no-cache", content_type="text/html")

    pages: dict[str, Page] = {"/h": answer, "/fresh": page(HTML, content_type="text/html")}
    async with Site(pages) as site:
        talk = await start()
        first = await talk.say(calls("web_extract", urls=[site.url("/h"), site.url("/fresh")]))
        again = await talk.say(calls("web_extract", urls=[site.url("/h"), site.url("/fresh")]))
        assert first[0].text == again[0].text
        assert [b"if-none-match" in each for each in asked] == [False, True]
        paths = [each.split(b" ")[1] for each in site.asked]
        assert paths.count(b"/fresh") == 1


async def test_a_busy_server_is_asked_once_more(start: Start) -> None:
    answers = [page(b"", 429, retry_after="0"), page(HTML, content_type="text/html")]
    async with Site({"/h": lambda _request: answers.pop(0)}) as site:
        talk = await start()
        (result,) = await talk.say(calls("web_extract", urls=[site.url("/h")]))
        assert read(result)["title"] == "Herons"


async def test_one_page_that_fails_does_not_hide_the_others(start: Start) -> None:
    async with Site({"/h": page(HTML, content_type="text/html")}) as site:
        talk = await start()
        urls = [site.url("/none"), site.url("/h")]
        (result,) = await talk.say(calls("web_extract", urls=urls))
        failed, found = json.loads(result.text)["results"]
        assert failed["error"] == "the server answered with status 404."
        assert found["title"] == "Herons"


async def test_a_long_page_is_kept_in_a_file(start: Start) -> None:
    long = f"<main><p>{'word ' * 5_000}END</p></main>".encode()
    async with Site({"/h": page(long, content_type="text/html")}) as site:
        talk = await start()
        (result,) = await talk.say(calls("web_extract", urls=[site.url("/h")], char_limit=2_000))
        content = read(result)["content"]
        assert len(content) < 2_300
        assert content.endswith("END")
        path = content.partition("the whole page is in ")[2].partition(" …]")[0]
        assert Path(path).read_bytes().count(b"word") == 5_000  # noqa: ASYNC240


async def test_long_pages_are_summarized_if_wanted(start: Start) -> None:
    long = f"<main><p>{'word ' * 5_000}END</p></main>".encode()
    async with Site({"/h": page(long, content_type="text/html")}) as site:
        talk = await start("web: {extract_summarize: true}\n")
        (result,) = await talk.say(
            calls("web_extract", urls=[site.url("/h")]), says("Five thousand words.")
        )
        content = read(result)["content"]
        assert content.startswith("Five thousand words.\n\n[A summary; the whole page is in ")


async def test_any_searxng_server_can_search(start: Start) -> None:
    answer = {"results": [{"url": "http://a.example/", "title": "A <b>b</b>", "content": "c"}]}
    body = page(json.dumps(answer).encode(), content_type="application/json")
    async with Site({"/search": body}) as site:
        talk = await start(SEARXNG_URL=site.url("/").rstrip("/"))
        (result,) = await talk.say(calls("web_search", query="herons & egrets"))
        hit = {"url": "http://a.example/", "title": "A b", "description": "c", "position": 1}
        assert json.loads(result.text) == {"success": True, "data": {"web": [hit]}}
        assert b"GET /search?q=herons+%26+egrets&format=json " in site.asked[0]
        assert [type(each) for each in talk.judged] == [CallServer]


async def test_a_backend_without_its_key_says_which_one_it_needs(start: Start) -> None:
    talk = await start("web: {backend: exa}\n")
    search, extract = await talk.say(
        calls("web_search", query="x"), calls("web_extract", urls=["http://a.example/"])
    )
    assert search.text == "The web backend exa needs EXA_API_KEY; set it in `.env`."
    assert extract.text == search.text


async def test_an_unknown_backend_is_named(start: Start) -> None:
    talk = await start("web: {search_backend: nosuch}\n")
    (result,) = await talk.say(calls("web_search", query="x"))
    assert result.text == "There is no web backend 'nosuch'; see `web.backend`."
