"""Search services: the documented requests and answers of each, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from hermes.codec.values import replace
from hermes.core.errors import ToolError
from hermes.core.ports import FetchResponse
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.policy.urls.url_policy import SystemResolver, UrlPolicy
from hermes.testing.context import ScriptedContext
from hermes.web.fetcher import WebFetcher
from hermes.web.keyless_search import DuckDuckGo
from hermes.web.page_cache import PageCache
from hermes.web.provider import SearchHit, WebPage
from hermes.web.search_services import HttpSearch, search_services
from tests.web.site import Page, Site, page

KEY = "k-0123456789"
A, B = "https://a.example/1", "https://b.example/2"
EXCERPTS = ["One.", "Two."]

# For each service: path, header of the key, what is sent, what it answers.
SEARCHES: dict[str, tuple[str, str, Any, Any]] = {
    "firecrawl": (
        "/v2/search", f"authorization: Bearer {KEY}", {"query": "q", "limit": 2},
        {"success": True, "data": {"web": [{"url": A, "title": "T", "description": "D"}]}},
    ),
    "exa": (
        "/search", f"x-api-key: {KEY}",
        {"query": "q", "numResults": 2, "contents": {"highlights": True}},
        {"results": [{"url": A, "title": "T", "highlights": ["D"]}]},
    ),
    "parallel": (
        "/v1beta/search", f"x-api-key: {KEY}",
        {"objective": "q", "search_queries": ["q"], "max_results": 2},
        {"results": [{"url": A, "title": "T", "excerpts": ["D"]}]},
    ),
    "tavily": (
        "/search", f"authorization: Bearer {KEY}", {"query": "q", "max_results": 2},
        {"results": [{"url": A, "title": "T", "content": "D"}]},
    ),
    "brave": (
        "/res/v1/web/search?q=q&count=2", f"x-subscription-token: {KEY}", None,
        {"web": {"results": [{"url": A, "title": "T", "description": "<strong>D</strong>"}]}},
    ),
    "serper": (
        "/search", f"x-api-key: {KEY}", {"q": "q", "num": 2},
        {"organic": [{"link": A, "title": "T", "snippet": "D", "position": 1}]},
    ),
    "jina": (
        "/?q=q&num=2", f"authorization: Bearer {KEY}", None,
        {"code": 200, "data": [{"url": A, "title": "T", "description": "D"}]},
    ),
    "perplexity": (
        "/search", f"authorization: Bearer {KEY}", {"query": "q", "max_results": 2},
        {"results": [{"url": A, "title": "T", "snippet": "D"}]},
    ),
    "searxng": (
        "/search?q=q&format=json", "", None,
        {"results": [{"url": A, "title": "T", "content": "D", "score": 1.0}]},
    ),
}  # fmt: skip
EXTRACTS: dict[str, tuple[str, Any, Any]] = {
    "firecrawl": (
        "/v2/scrape", {"url": A, "formats": ["markdown"]},
        {"data": {"markdown": "# T", "metadata": {"title": "T", "sourceURL": A}}},
    ),
    "exa": (
        "/contents", {"urls": [A], "text": True},
        {"results": [{"url": A, "title": "T", "text": "# T"}]},
    ),
    "parallel": (
        "/v1beta/extract", {"urls": [A], "full_content": True},
        {"results": [{"url": A, "title": "T", "full_content": "# T"}]},
    ),
    "tavily": (
        "/extract", {"urls": [A]},
        {"results": [{"url": A, "raw_content": "# T"}], "failed_results": []},
    ),
}  # fmt: skip


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def provider(name: str, site: Site, http: HttpClient) -> HttpSearch:
    """The service at this site; everything but its address is as in the table."""
    service = search_services()[name]
    values = {service.key: KEY, service.url_variable or "x": site.url("/").rstrip("/")}
    if not service.url_variable:
        service = replace(service, url=values["x"])
    return HttpSearch(name, service, http, lambda variable: values.get(variable, ""))


def answering(answer: object, status: int = 200) -> Page:
    return page(json.dumps(answer).encode(), status, content_type="application/json")


def test_every_service_is_covered() -> None:
    assert list(search_services()) == list(SEARCHES)
    extracting = [name for name, each in search_services().items() if each.extract]
    assert extracting == list(EXTRACTS)


@pytest.mark.parametrize("name", SEARCHES)
async def test_a_service_searches(name: str, http: HttpClient) -> None:
    path, header, body, answer = SEARCHES[name]
    async with Site({path.partition("?")[0]: answering(answer)}) as site:
        hits = await provider(name, site, http).search(ScriptedContext(), "q", 2)
    assert hits == [SearchHit(url=A, title="T", description="D", position=1)]
    head, _, sent = site.asked[0].partition(b"\r\n\r\n")
    assert head.split(b" ")[1].decode() == path
    assert header in head.decode()
    assert (json.loads(sent) if sent else None) == body


@pytest.mark.parametrize("name", EXTRACTS)
async def test_a_service_reads_pages(name: str, http: HttpClient) -> None:
    path, body, answer = EXTRACTS[name]
    async with Site({path: answering(answer)}) as site:
        pages = await provider(name, site, http).extract(ScriptedContext(), [A])
    assert [(each.url, each.content, each.error) for each in pages] == [(A, "# T", "")]
    assert json.loads(site.asked[0].partition(b"\r\n\r\n")[2]) == body


async def test_a_page_that_a_service_could_not_read_is_named(http: HttpClient) -> None:
    answer = {
        "results": [{"url": A, "raw_content": "# T"}],
        "failed_results": [{"url": B, "error": "blocked"}],
    }
    async with Site({"/extract": answering(answer)}) as site:
        pages = await provider("tavily", site, http).extract(ScriptedContext(), [A, B])
    assert pages == [WebPage(url=A, content="# T"), WebPage(url=B, error="blocked")]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "exa rejects the key; check EXA_API_KEY."),
        (429, "The quota of exa is used up; set another `web.backend`."),
        (500, "exa answered with status 500; try again later."),
    ],
)
async def test_errors_have_a_next_step(status: int, words: str, http: HttpClient) -> None:
    async with Site({"/search": answering({"error": "x"}, status)}) as site:
        with pytest.raises(ToolError) as raised:
            await provider("exa", site, http).search(ScriptedContext(), "q", 2)
    assert str(raised.value) == words


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"results": 7}', b'{"results": [1]}'])
async def test_strange_answers_are_no_results_or_an_error(body: bytes, http: HttpClient) -> None:
    async with Site({"/search": page(body, content_type="application/json")}) as site:
        try:
            hits: Sequence[SearchHit] = await provider("exa", site, http).search(
                ScriptedContext(), "q", 2
            )
        except ToolError as error:
            assert str(error).startswith("exa sent an invalid answer")
        else:
            assert hits == []


RESULTS = b"""<html><body><div class="results">
<div class="result result--ad"><a class="result__a" href="//duckduckgo.com/y.js?ad=1">Buy!</a></div>
<div class="result"><h2 class="result__title"><a rel="nofollow" class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2F1&amp;rut=0f">Herons &amp;
<b>egrets</b></a></h2>
<a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">They <b>wait</b>.</a></div>
</div></body></html>"""


async def search_page(body: bytes, status: int = 200) -> Sequence[SearchHit]:
    async with Site({"/html/": page(body, status, content_type="text/html")}) as site:
        fetcher = WebFetcher(UrlPolicy(SystemResolver(), allow_private=True))
        context = ScriptedContext(web=fetcher)
        return await DuckDuckGo(site.url("/html/")).search(context, "herons", 5)


async def test_the_result_page_of_duckduckgo_is_read_without_its_advertisements() -> None:
    assert await search_page(RESULTS) == [
        SearchHit(url=A, title="Herons & egrets", description="They wait.", position=1)
    ]


async def test_a_question_whether_a_person_searches_is_named() -> None:
    with pytest.raises(ToolError, match="asks whether a person searches"):
        await search_page(b"<div class='anomaly-modal'>Select all squares</div>", 202)


def test_the_page_cache_forgets_the_oldest_pages_first() -> None:
    cache = PageCache(World().clock)
    for number in range(5):
        url = f"https://a.example/{number}"
        cache.store(url, FetchResponse(url=url, status=200, headers={}, body=b"x" * 4_000_000))
    found = [cache.find_fresh(f"https://a.example/{number}") is not None for number in range(5)]
    assert found == [False, True, True, True, True]
