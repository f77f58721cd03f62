"""Logins at a server, against a real authorization server on this machine."""

from __future__ import annotations

import asyncio
import stat
import subprocess
from pathlib import Path

import httpx2
import pytest

from hermes.codec.values import replace
from hermes.config.extension_settings import McpOauthSettings
from hermes.core.errors import HermesError
from hermes.core.messages import Text
from hermes.core.world import SystemClock
from hermes.mcp.oauth.login import log_in
from hermes.mcp.oauth.store import OAuthStore
from hermes.mcp.server import IssuerFailed, McpServer, NeedsLogin
from hermes.testing.context import ScriptedContext
from tests.mcp.conftest import Make, serving_authority, tool_of
from tests.mcp.oauth_stage import Authority


class Browser:
    """A person with a browser that follows redirects; with `pastes` it runs on another machine,
    so that they copy the last address instead. `intrudes` lets a stranger come first."""

    def __init__(
        self,
        *,
        pastes: bool = False,
        first_pastes: tuple[str, ...] = (),
        intrudes: bool = False,
        verify: bool = True,
    ) -> None:
        self._pastes = pastes
        self._first_pastes = first_pastes
        self.rejections: list[str] = []
        self._intrudes = intrudes
        self._verify = verify
        self._line: asyncio.Queue[str] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None
        self.pages: list[int] = []

    def show_page(self, url: str, *, paste: bool) -> None:
        self._work = asyncio.ensure_future(self._visit(url))

    async def read_pasted(self) -> str:
        return await self._line.get()

    def reject_pasted(self, why: str) -> None:
        self.rejections.append(why)

    async def _visit(self, url: str) -> None:
        async with httpx2.AsyncClient(timeout=60, verify=self._verify) as client:
            back = (await client.get(url)).headers["location"]
            if self._intrudes:
                stranger = back.partition("?")[0] + "?code=stolen&state=other"
                self.pages.append((await client.get(stranger)).status_code)
            if self._pastes:
                for text in (*self._first_pastes, back):
                    await self._line.put(text)
            else:
                self.pages.append((await client.get(back)).status_code)


def locked(authority: Authority) -> McpServer:
    return McpServer(name="locked", url=f"{authority.url}/mcp", auth="oauth", timeout=60)


@pytest.fixture
def store(tmp_path: Path) -> OAuthStore:
    return OAuthStore(tmp_path / "tokens", "locked")


async def test_a_login_opens_the_server_and_is_kept_in_private(
    authority: Authority, store: OAuthStore, make: Make, ctx: ScriptedContext, tmp_path: Path
) -> None:
    browser = Browser(intrudes=True)
    await log_in(locked(authority), store, browser, SystemClock())
    assert browser.pages == [400, 200]
    assert authority.asked[0]["resource"] == f"{authority.url}/mcp"
    for name in ("locked.json", "locked.client.json"):
        mode = (tmp_path / "tokens" / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
    output = await ctx.call(await tool_of(make(locked(authority)), "mcp_locked_treasure"))
    assert output.parts == (Text(text="gold"),)


async def test_the_address_can_be_pasted(authority: Authority, store: OAuthStore) -> None:
    await log_in(locked(authority), store, Browser(pastes=True), SystemClock())
    token = store.token()
    assert token is not None
    assert token.access_token in authority.tokens


async def test_a_wrong_paste_is_asked_for_again(authority: Authority, store: OAuthStore) -> None:
    browser = Browser(pastes=True, first_pastes=("https://x/?page=1", "code-1#other"))
    await log_in(locked(authority), store, browser, SystemClock())
    assert browser.rejections == ["there is no code", "the code belongs to another login"]
    assert store.token() is not None


async def test_a_third_wrong_paste_ends_the_login(authority: Authority, store: OAuthStore) -> None:
    browser = Browser(pastes=True, first_pastes=("x=1", "x=2", "x=3"))
    with pytest.raises(HermesError, match="there is no code"):
        await log_in(locked(authority), store, browser, SystemClock())
    assert len(browser.rejections) == 2


async def test_a_refused_login_says_why(authority: Authority, store: OAuthStore) -> None:
    authority.refuses = True
    with pytest.raises(HermesError, match="access_denied"):
        await log_in(locked(authority), store, Browser(), SystemClock())
    assert store.token() is None


async def test_nobody_waits_for_a_login_for_ever(authority: Authority, store: OAuthStore) -> None:
    class Nobody(Browser):
        def show_page(self, url: str, *, paste: bool) -> None:
            return

    server = replace(locked(authority), oauth=McpOauthSettings(timeout=0.2))
    with pytest.raises(HermesError, match="No login within"):
        await log_in(server, store, Nobody(), SystemClock())


async def test_a_token_is_made_new_before_it_is_too_old(
    authority: Authority, store: OAuthStore, make: Make, ctx: ScriptedContext
) -> None:
    authority.lives = 30
    await log_in(locked(authority), store, Browser(), SystemClock())
    before = store.token()
    authority.lives = 3600
    output = await ctx.call(await tool_of(make(locked(authority)), "mcp_locked_treasure"))
    assert output.parts == (Text(text="gold"),)
    after = store.token()
    assert before is not None
    assert after is not None
    assert after.refresh_token != before.refresh_token
    grants = [form["grant_type"] for form in authority.asked]
    assert grants == ["authorization_code", "refresh_token"]


async def test_a_token_that_is_refused_is_made_new_once(
    authority: Authority, store: OAuthStore, make: Make, ctx: ScriptedContext
) -> None:
    await log_in(locked(authority), store, Browser(), SystemClock())
    authority.tokens.clear()
    output = await ctx.call(await tool_of(make(locked(authority)), "mcp_locked_treasure"))
    assert output.parts == (Text(text="gold"),)


async def test_a_login_that_was_taken_back_asks_for_a_new_one(
    authority: Authority, store: OAuthStore, make: Make
) -> None:
    await log_in(locked(authority), store, Browser(), SystemClock())
    authority.tokens.clear()
    authority.revoked = True
    with pytest.raises(NeedsLogin, match="hermes mcp login locked"):
        await make(locked(authority)).link("locked").listing()


async def test_a_failing_authorization_server_keeps_the_login(
    authority: Authority, store: OAuthStore, make: Make
) -> None:
    await log_in(locked(authority), store, Browser(), SystemClock())
    before = store.token()
    authority.tokens.clear()
    authority.broken = True
    with pytest.raises(IssuerFailed, match=r"did not respond \(HTTP 503\); the login is kept"):
        await make(locked(authority)).link("locked").listing()
    assert store.token() == before
    authority.broken = False
    assert (await make(locked(authority)).link("locked").listing()).tools


async def test_an_unreachable_authorization_server_keeps_the_login(
    authority: Authority, store: OAuthStore, make: Make
) -> None:
    await log_in(locked(authority), store, Browser(), SystemClock())
    token = store.token()
    assert token is not None
    moved = replace(token, token_endpoint="http://127.0.0.1:9/token", expires_at=1.0)
    store.put_token(moved)
    with pytest.raises(IssuerFailed, match="authorization server of MCP server locked did not"):
        await make(locked(authority)).link("locked").listing()
    assert store.token() == moved


async def test_an_authorization_server_that_fails_during_a_call_is_named(
    authority: Authority, store: OAuthStore, make: Make, ctx: ScriptedContext
) -> None:
    await log_in(locked(authority), store, Browser(), SystemClock())
    treasure = await tool_of(make(locked(authority)), "mcp_locked_treasure")
    assert not (await ctx.call(treasure)).failed
    authority.tokens.clear()
    authority.broken = True
    output = await ctx.call(treasure)
    assert output.failed
    assert "did not respond (HTTP 503)" in str(output.parts)


async def test_a_login_that_ends_while_it_is_used_asks_for_a_new_one(
    authority: Authority, store: OAuthStore, make: Make, ctx: ScriptedContext
) -> None:
    await log_in(locked(authority), store, Browser(), SystemClock())
    treasure = await tool_of(make(locked(authority)), "mcp_locked_treasure")
    assert not (await ctx.call(treasure)).failed
    authority.tokens.clear()
    authority.revoked = True
    output = await ctx.call(treasure)
    assert output.failed
    assert "hermes mcp login locked" in str(output.parts)


async def test_processes_that_renew_at_once_ask_one_after_the_other(
    authority: Authority, store: OAuthStore, make: Make
) -> None:
    authority.lives = 30
    await log_in(locked(authority), store, Browser(), SystemClock())
    authority.lives = 3600
    many = [make(locked(authority)) for _ in range(3)]
    await asyncio.gather(*(each.link("locked").listing() for each in many))
    assert [form["grant_type"] for form in authority.asked].count("refresh_token") == 1


async def test_a_call_that_needs_more_rights_says_so_and_a_new_login_has_them(
    authority: Authority, store: OAuthStore, make: Make, ctx: ScriptedContext
) -> None:
    server = replace(locked(authority), oauth=McpOauthSettings(scope="look"))
    await log_in(server, store, Browser(), SystemClock())
    authority.needed = "treasure:take"
    treasure = await tool_of(make(server), "mcp_locked_treasure")
    refused = await ctx.call(treasure)
    assert refused.failed
    assert "requires more permissions (treasure:take)" in str(refused.parts)
    assert "hermes mcp login locked" in str(refused.parts)
    await log_in(server, store, Browser(), SystemClock())
    token = store.token()
    assert token is not None
    assert (token.scope, token.wanted) == ("look treasure:take", "")
    assert (await ctx.call(treasure)).parts == (Text(text="gold"),)


async def test_a_login_is_not_shown_to_another_server(
    authority: Authority, store: OAuthStore, make: Make
) -> None:
    await log_in(locked(authority), store, Browser(), SystemClock())
    elsewhere = replace(locked(authority), url="http://127.0.0.1:9/mcp")
    with pytest.raises(NeedsLogin, match="hermes mcp login locked"):
        await make(elsewhere).link("locked").listing()


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, str]:
    files = {"key": str(tmp_path / "key.pem"), "certificate": str(tmp_path / "certificate.pem")}
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    out = ["-keyout", files["key"], "-out", files["certificate"]]
    subprocess.run([*command.split(), *names, *out], check=True, capture_output=True, timeout=120)
    return files


async def test_login_and_refresh_trust_the_configured_certificate(
    certificate: dict[str, str], store: OAuthStore, make: Make, ctx: ScriptedContext
) -> None:
    async with serving_authority(**certificate) as authority:
        server = replace(locked(authority), ssl_verify=certificate["certificate"])
        await log_in(server, store, Browser(verify=False), SystemClock())
        authority.tokens.clear()
        servers = make(server)
        output = await ctx.call(await tool_of(servers, "mcp_locked_treasure"))
        await servers.close()
    assert output.parts == (Text(text="gold"),)
    grants = [form["grant_type"] for form in authority.asked]
    assert grants == ["authorization_code", "refresh_token"]
