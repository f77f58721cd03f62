"""Fetching: real servers, real sockets; the address that was judged is the one that is asked."""

from __future__ import annotations

import gzip
import ssl
import subprocess
import zlib
from pathlib import Path

import pytest

from hermes.core.effects import FetchUrl
from hermes.core.errors import EffectDenied, ToolError
from hermes.core.ports import FetchResponse
from hermes.policy.urls.url_policy import (
    Blocklist,
    HostResolver,
    StaticResolver,
    SystemResolver,
    UrlPolicy,
)
from hermes.web.fetcher import WebFetcher
from tests.web.site import Site, moved, page


def fetcher(
    resolver: HostResolver | None = None, *, private: bool = True, block: str = ""
) -> WebFetcher:
    blocks = Blocklist((block,) if block else ())
    return WebFetcher(UrlPolicy(resolver or SystemResolver(), allow_private=private, blocks=blocks))


async def get(url: str, by: WebFetcher | None = None, **limits: float) -> FetchResponse:
    return await (by or fetcher()).fetch(FetchUrl(url=url), **limits)  # type: ignore[arg-type]


async def test_a_page_comes_with_its_status_and_headers() -> None:
    async with Site({"/a": page(b"hello", content_type="text/plain")}) as site:
        found = await get(site.url("/a?q=1"))
        assert (found.status, found.body, found.cut) == (200, b"hello", False)
        assert found.headers["content-type"] == "text/plain"
        assert found.url == site.url("/a?q=1")
        assert (await get(site.url("/none"))).status == 404
        assert site.asked[0].startswith(b"GET /a?q=1 HTTP/1.1\r\nhost: 127.0.0.1")


async def test_this_machine_is_closed_unless_the_settings_open_it() -> None:
    async with Site({"/": page(b"x")}) as site:
        for url in (site.url(), site.url(host="localhost"), site.url(host="[::1]")):
            with pytest.raises(EffectDenied, match="allow_private_urls"):
                await get(url, fetcher(private=False))
        assert site.asked == []


async def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    """The name has no meaning to the system: only the answer that was judged leads anywhere."""
    async with Site({"/": page(b"pinned")}) as site:
        answers = StaticResolver({"pinned.example": [["127.0.0.1"], ["169.254.169.254"]]})
        found = await get(site.url(host="pinned.example"), fetcher(answers))
        assert found.body == b"pinned"
        assert f"host: pinned.example:{site.port}".encode() in site.asked[0]


async def test_an_answer_that_changes_to_metadata_is_refused_at_the_redirect() -> None:
    async with Site({"/": moved("/again"), "/again": page(b"never")}) as site:
        answers = StaticResolver({"turning.example": [["127.0.0.1"], ["169.254.169.254"]]})
        with pytest.raises(EffectDenied, match=r"metadata|link-local"):
            await get(site.url(host="turning.example"), fetcher(answers))
        assert len(site.asked) == 1


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "http://[fd00:ec2::254]/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "//169.254.169.254/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
        "http://0.0.0.0:80/",
    ],
)
async def test_no_redirect_leads_to_metadata_or_another_scheme(location: str) -> None:
    async with Site({"/": moved(location)}) as site:
        with pytest.raises(EffectDenied):
            await get(site.url())


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x.example/", "data:,x", "x.example"])
async def test_other_schemes_are_refused(url: str) -> None:
    with pytest.raises(EffectDenied):
        await get(url)


async def test_a_name_with_one_private_answer_among_public_ones_is_refused() -> None:
    answers = StaticResolver({"mixed.example": ["93.184.216.34", "10.0.0.1"]})
    with pytest.raises(EffectDenied):
        await get("http://mixed.example/", fetcher(answers, private=False))


async def test_blocked_sites_are_blocked_behind_redirects_too() -> None:
    async with Site({"/": moved("http://www.bad.example/x")}) as site:
        with pytest.raises(EffectDenied, match=r"bad\.example"):
            await get(site.url(), fetcher(block="bad.example"))


async def test_redirects_are_told_before_they_are_followed_and_have_an_end() -> None:
    told: list[str] = []

    def passing(effect: FetchUrl) -> None:
        told.append(effect.url)
        if effect.url.endswith("/stop"):
            raise EffectDenied("a rule")

    async with Site({"/": moved("/on"), "/on": moved("stop"), "/loop": moved("/loop")}) as site:
        with pytest.raises(EffectDenied, match="a rule"):
            await fetcher().fetch(FetchUrl(url=site.url()), passing=passing)
        assert told == [site.url("/on"), site.url("/stop")]
        with pytest.raises(EffectDenied, match="redirected more than"):
            await get(site.url("/loop"))


async def test_what_is_sent_is_not_sent_again_elsewhere() -> None:
    async with Site({"/in": page(b"got it")}) as other:
        pages = {"/see": moved(other.url("/in"), 303), "/again": moved(other.url("/in"), 307)}
        async with Site(pages) as site:
            for path in ("/see", "/again"):
                await fetcher().fetch(
                    FetchUrl(url=site.url(path), method="POST", sends_body=True),
                    headers={"Authorization": "Bearer k", "content-type": "text/plain"},
                    body=b"words",
                )
        see, again = other.asked
        assert see.startswith(b"GET ")
        assert again.startswith(b"POST ") and again.endswith(b"words")
        assert b"bearer" not in (see + again).lower()


async def test_no_more_is_taken_than_was_wanted() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    pages = {
        "/long": page(b"x" * 10_000),
        "/bomb": page(bomb, content_encoding="gzip"),
        "/packed": page(zlib.compress(b"small"), content_encoding="deflate"),
        "/odd": page(b"?", content_encoding="br"),
    }
    async with Site(dict(pages)) as site:
        long = await get(site.url("/long"), max_bytes=100)
        assert (len(long.body), long.cut) == (100, True)
        whole = await get(site.url("/long"), max_bytes=10_000)
        assert (len(whole.body), whole.cut) == (10_000, False)
        assert len((await get(site.url("/bomb"), max_bytes=1000)).body) == 1000
        assert (await get(site.url("/packed"))).body == b"small"
        with pytest.raises(ToolError, match="compressed as br"):
            await get(site.url("/odd"))


async def test_a_silent_or_broken_server_is_given_up() -> None:
    async with Site({"/silent": b"", "/broken": b"nonsense\r\n\r\n"}) as site:
        with pytest.raises(ToolError, match="did not answer within"):
            await get(site.url("/silent"), timeout=0.1)
        with pytest.raises(ToolError, match="invalid response"):
            await get(site.url("/broken"))
        gone = site.url("/")
    with pytest.raises(ToolError, match=r"not reachable|invalid response"):
        await get(gone)


async def test_headers_cannot_be_smuggled_in() -> None:
    async with Site({"/": page(b"x")}) as site:
        with pytest.raises(ToolError):
            await fetcher().fetch(FetchUrl(url=site.url()), headers={"x": "a\r\nb: c"})
        with pytest.raises(ToolError):
            await fetcher().fetch(FetchUrl(url=site.url(), method="GET /x HTTP/1.1\r\nh"))
        assert site.asked == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, public = folder / "key.pem", folder / "public.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=pinned.example"
    names = ["-addext", "subjectAltName=DNS:pinned.example"]
    files = ["-keyout", str(key), "-out", str(public)]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return key, public


async def test_a_pinned_server_still_has_to_prove_its_name(certificate: tuple[Path, Path]) -> None:
    key, public = certificate
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(public, key)
    answers = StaticResolver({"pinned.example": "127.0.0.1", "other.example": "127.0.0.1"})
    urls = UrlPolicy(answers, allow_private=True)
    informed = WebFetcher(urls, ca_file=str(public))
    async with Site({"/": page(b"secret")}, tls) as site:
        at = f"https://pinned.example:{site.port}/"
        assert (await get(at, informed)).body == b"secret"
        with pytest.raises(ToolError, match="certificate"):
            await get(at.replace("pinned", "other"), informed)
        with pytest.raises(ToolError, match="certificate"):
            await get(at, WebFetcher(urls))
