"""Logging in, against a server that is as strict as real ones."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.core.errors import ConfigError, ProviderError
from hermes.credentials.oauth.client import (
    OAuthErrorResponse,
    TokenEndpoint,
    TokenSet,
    jwt_claims,
    refresh_tokens,
    request_tokens,
)
from hermes.credentials.oauth.flows import log_in
from hermes.credentials.oauth.logins import (
    Login,
    LoginCatalogue,
    discover_endpoints,
    exchange_token,
)
from hermes.credentials.oauth.redirect import RedirectResult, listen_for_redirect, parse_redirect
from hermes.net.http import HttpClient, Timeouts
from tests.credentials.authority import CLIENT, Authority
from tests.credentials.bench import START, HandClock, write_login


class Person:
    """Somebody at a screen, who follows a page when `opens` is given and pastes `brings`."""

    def __init__(self, http: HttpClient, brings: str = "", *, opens: bool = False) -> None:
        self._http = http
        self._brings = brings
        self._opens = opens
        self.codes: list[tuple[str, str]] = []
        self.pages: list[str] = []
        self.rejections: list[str] = []
        self.shown = asyncio.Event()
        self.visit: asyncio.Task[str] | None = None
        self.change: Callable[[str], str] = lambda url: url

    def show_code(self, url: str, code: str, *, whole_url: str, seconds: float) -> None:
        self.codes.append((url, code))

    def show_page(self, url: str, *, paste: bool) -> None:
        self.pages.append(url)
        self.shown.set()
        if self._opens:
            self.visit = asyncio.create_task(self._browse(url))

    async def read_pasted(self) -> str:
        if self._brings:
            return self._brings
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never

    def reject_pasted(self, why: str) -> None:
        self.rejections.append(why)

    async def _browse(self, url: str) -> str:
        """As a browser: to the page, and back to where it leads."""
        _, location = await get(self._http, url)
        _, body = await get(self._http, self.change(location))
        return body


async def get(http: HttpClient, url: str) -> tuple[int, str]:
    async with http.get(url, headers={}, timeouts=Timeouts()) as answer:
        body = (await answer.read()).decode()
        return answer.status, answer.headers.get("location", body)


def device(authority: Authority) -> Login:
    return Login(
        provider="test",
        flow="device",
        client_id=CLIENT,
        device_url=f"{authority.url}/device/code",
        token_url=f"{authority.url}/token",
        scope="models",
    )


def browser(authority: Authority) -> Login:
    return replace(device(authority), flow="pkce", authorize_url=f"{authority.url}/authorize")


async def test_a_device_code_leads_to_tokens(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    authority.answers = ["authorization_pending", "authorization_pending"]
    person = Person(http)
    tokens = await log_in(device(authority), person, http=http, clock=clock)
    assert authority.accepts(tokens.access_token)
    assert tokens.expires_at == clock.now() + 3600
    assert person.codes == [(f"{authority.url}/activate", "WXYZ-1234")]
    assert authority.asked[0].fields == {"client_id": CLIENT, "scope": "models"}
    assert clock.passed == 15  # three polls, five seconds apart


async def test_a_server_that_wants_fewer_questions_gets_them(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    authority.answers = ["slow_down", "authorization_pending", "slow_down"]
    await log_in(device(authority), Person(http), http=http, clock=clock)
    assert clock.passed == 5 + 10 + 10 + 15


async def test_a_server_that_stumbles_is_asked_again(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    authority.answers = ["malformed", "authorization_pending"]
    tokens = await log_in(device(authority), Person(http), http=http, clock=clock)
    assert authority.accepts(tokens.access_token)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("access_denied", "it was denied"),
        ("expired_token", "not used in time"),
        ("unauthorized_client", "unauthorized client"),
    ],
)
async def test_a_login_that_fails_says_why_and_how_to_go_on(
    authority: Authority, http: HttpClient, clock: HandClock, answer: str, words: str
) -> None:
    authority.answers = ["authorization_pending", answer]
    with pytest.raises(ProviderError, match=f"{words}.*hermes login test"):
        await log_in(device(authority), Person(http), http=http, clock=clock)


async def test_a_code_that_nobody_types_in_expires_by_our_clock(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    authority.answers = ["authorization_pending"] * 1000
    with pytest.raises(ProviderError, match="not used in time"):
        await log_in(device(authority), Person(http), http=http, clock=clock)
    assert clock.passed <= authority.expires_in


async def test_a_login_can_be_stopped(authority: Authority, http: HttpClient) -> None:
    class Waiting(HandClock):
        async def sleep(self, seconds: float) -> None:
            waits.set()
            await asyncio.sleep(3600)

    waits = asyncio.Event()
    work = asyncio.create_task(log_in(device(authority), Person(http), http=http, clock=Waiting()))
    await waits.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert authority.paths() == ["/device/code"]


async def test_without_a_client_id_another_way_is_reported(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    login = replace(device(authority), client_id="", key_page="https://keys.test")
    with pytest.raises(ConfigError, match=r"HERMES_TEST_CLIENT_ID.*auth add test.*keys\.test"):
        await log_in(login, Person(http), http=http, clock=clock)
    assert authority.asked == []


@pytest.mark.parametrize("skew", [-86_400.0, 0.0, 86_400.0])
@pytest.mark.parametrize("tells_lifetime", [True, False])
async def test_the_clock_of_the_server_does_not_matter(
    authority: Authority, http: HttpClient, clock: HandClock, skew: float, tells_lifetime: bool
) -> None:
    authority.skew, authority.tells_lifetime = skew, tells_lifetime
    tokens = await log_in(device(authority), Person(http), http=http, clock=clock)
    assert tokens.expires_at == clock.now() + 3600


async def test_the_browser_comes_back_with_a_code(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    person = Person(http, opens=True)
    tokens = await log_in(browser(authority), person, http=http, clock=clock)
    assert authority.accepts(tokens.access_token)
    query = parse_qs(urlsplit(person.pages[0]).query)
    assert query["redirect_uri"][0].startswith("http://127.0.0.1:")
    assert person.visit is not None
    assert "You are logged in." in await person.visit


async def test_what_the_browser_shows_can_be_pasted(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    person = Person(http)

    async def pasted() -> str:
        return (await get(http, person.pages[0]))[1]

    person.read_pasted = pasted  # type: ignore[method-assign]
    tokens = await log_in(browser(authority), person, http=http, clock=clock)
    assert authority.accepts(tokens.access_token)


async def test_a_page_that_shows_the_code_needs_no_port(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    login = replace(browser(authority), redirect_uri="https://vendor.test/code")
    person = Person(http)

    async def pasted() -> str:
        back = parse_redirect((await get(http, person.pages[0]))[1])
        return f" {back.code}#{back.state}\n"

    person.read_pasted = pasted  # type: ignore[method-assign]
    tokens = await log_in(login, person, http=http, clock=clock)
    assert authority.accepts(tokens.access_token)


@pytest.mark.parametrize("brings", ["code-1#wrong", "code-1", "https://x/?code=code-1&state=no"])
async def test_a_code_of_another_login_is_refused(
    authority: Authority, http: HttpClient, clock: HandClock, brings: str
) -> None:
    person = Person(http, brings)
    with pytest.raises(ProviderError, match="belongs to another login"):
        await log_in(browser(authority), person, http=http, clock=clock)
    assert person.rejections == ["the code belongs to another login"] * 2
    assert authority.asked == []


async def test_a_visit_without_our_state_is_ignored(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    person = Person(http, opens=True)
    person.change = lambda url: url.replace("state=", "state=x")
    work = asyncio.create_task(log_in(browser(authority), person, http=http, clock=clock))
    await person.shown.wait()
    assert person.visit is not None
    assert "belongs to another login" in await person.visit
    redirect = parse_qs(urlsplit(person.pages[0]).query)["redirect_uri"][0]
    assert (await get(http, redirect))[0] == 404
    assert not work.done()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_a_refusal_in_the_browser_is_reported(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    person = Person(http, "https://x/?error=access_denied")
    with pytest.raises(ProviderError, match="access denied"):
        await log_in(browser(authority), person, http=http, clock=clock)


async def test_the_codex_flow_leads_to_tokens_with_an_account(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    authority.answers = ["403", "404"]
    login = Login(
        provider="openai-codex",
        flow="codex",
        client_id=CLIENT,
        issuer=authority.url,
        token_url=f"{authority.url}/token",
        redirect_uri=f"{authority.url}/deviceauth/callback",
        account_claim=("https://api.openai.com/auth", "chatgpt_account_id"),
    )
    person = Person(http)
    tokens = await log_in(login, person, http=http, clock=clock)
    assert authority.accepts(tokens.access_token)
    assert tokens.account_id == "account-7"
    assert person.codes == [(f"{authority.url}/codex/device", "CODE-1")]
    assert clock.passed == 15


async def test_a_login_may_be_exchanged_for_a_token_that_models_accept(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    login = replace(device(authority), exchange_url=f"{authority.url}/copilot_internal/v2/token")
    authority.skew = 5000.0
    tokens = await log_in(login, Person(http), http=http, clock=clock)
    assert tokens.access_token.startswith("tid=")
    assert tokens.expires_at == clock.now() + 1500
    assert tokens.url == f"{authority.url}/models"
    refused = await exchange_token(login, "unknown", http=http, clock=clock)
    assert isinstance(refused, OAuthErrorResponse)
    assert refused.status == 401


async def test_an_issuer_tells_its_addresses(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    login = Login(provider="x", flow="device", issuer=authority.url, client_id=CLIENT)
    found = await discover_endpoints(login, http=http)
    assert found.token_url == f"{authority.url}/token"
    assert authority.accepts(
        (await log_in(login, Person(http), http=http, clock=clock)).access_token
    )


async def test_refreshing_keeps_a_token_that_is_not_replaced(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    authority.rotates = False
    tokens = authority.issue("f")
    for _ in range(2):
        found = await refresh_tokens(
            device(authority).token_endpoint(), tokens["refresh_token"], http=http, now=clock.now()
        )
        assert isinstance(found, TokenSet)
        assert found.refresh_token == tokens["refresh_token"]


async def test_an_unreachable_server_is_a_refusal(http: HttpClient) -> None:
    endpoint = TokenEndpoint(url="http://127.0.0.1:9/token", client_id="c")
    found = await refresh_tokens(endpoint, "r", http=http, now=START)
    assert isinstance(found, OAuthErrorResponse)
    assert found.code == "unreachable"


async def test_a_client_can_authenticate_with_basic_and_name_a_resource(
    authority: Authority, http: HttpClient
) -> None:
    endpoint = TokenEndpoint(
        url=f"{authority.url}/token",
        client_id=CLIENT,
        client_secret="s:1",
        auth_method="client_secret_basic",
        resource="https://api.test/mcp",
    )
    token = authority.issue("f")["refresh_token"]
    found = await refresh_tokens(endpoint, token, http=http, now=START)
    assert isinstance(found, TokenSet)
    asked = authority.asked[-1]
    assert asked.fields == {
        "grant_type": "refresh_token",
        "refresh_token": token,
        "client_id": CLIENT,
        "resource": "https://api.test/mcp",
    }
    basic = base64.b64encode(f"{CLIENT}:s%3A1".encode()).decode()
    assert asked.headers["authorization"] == f"Basic {basic}"
    assert "s:1" not in repr(endpoint)


async def test_a_grant_that_the_server_refuses_keeps_its_code(
    authority: Authority, http: HttpClient
) -> None:
    endpoint = TokenEndpoint(url=f"{authority.url}/token", client_id=CLIENT)
    fields = {"grant_type": "client_credentials", "scope": "read"}
    found = await request_tokens(endpoint, fields, http=http, now=START)
    assert found == OAuthErrorResponse(code="invalid_request", text="invalid request", status=400)


async def test_a_redirect_is_refused_until_its_state_is_known(http: HttpClient) -> None:
    async with listen_for_redirect(host="localhost") as callback:
        assert callback.url.startswith("http://localhost:")
        assert (await get(http, f"{callback.url}?code=c&state="))[0] == 400
        callback.state = "s"
        assert (await get(http, f"{callback.url}?code=c&state=x"))[0] == 400
        assert (await get(http, f"{callback.url}?code=c&state=s&iss=https://idp.test"))[0] == 200
        found = await callback.wait(Person(http), 5)
        assert found == RedirectResult(code="c", state="s", issuer="https://idp.test")
        with pytest.raises(TimeoutError):
            async with listen_for_redirect("s") as silent:
                await silent.wait(Person(http), 0.01)


def test_the_shipped_logins_have_no_client_id(home: Home) -> None:
    logins = LoginCatalogue(home, lambda _name: "")
    assert set(logins.names()) == {"nous", "openai-codex", "anthropic", "copilot", "xai", "vertex"}
    for name in logins.names():
        found = logins.get(name)
        assert found is not None
        assert found.client_id == ""


def test_a_client_id_comes_from_the_environment_or_the_home(home: Home) -> None:
    env = {"HERMES_OPENAI_CODEX_CLIENT_ID": "from-env"}
    codex = LoginCatalogue(home, lambda name: env.get(name, "")).get("openai-codex")
    assert codex is not None
    assert codex.client_id == "from-env"
    write_login(home, "mine", "https://idp.test", "device")
    mine = LoginCatalogue(home, lambda _name: "").get("mine")
    assert mine is not None
    assert (mine.client_id, mine.token_url) == (CLIENT, "https://idp.test/token")


@pytest.mark.parametrize(
    "text",
    [
        '[nous]\ntoken_url = "http://plain.test/token"',
        '[nous]\nflow = "magic"',
        "[nous]\nunknown = 1",
        "nous = 1",
        "[nous",
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(home: Home, text: str) -> None:
    home.root.mkdir()
    (home.root / "oauth.toml").write_text(text)
    with pytest.raises(ConfigError):
        LoginCatalogue(home, lambda _name: "").get("nous")


async def test_each_login_has_its_own_state_and_challenge(
    authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    person = Person(http, opens=True)
    for _ in range(2):
        await log_in(browser(authority), person, http=http, clock=clock)
    one, other = (parse_qs(urlsplit(page).query) for page in person.pages)
    assert one["state"] != other["state"]
    assert one["code_challenge"] != other["code_challenge"]
    assert len(one["code_challenge"][0]) == 43


def test_tokens_are_not_shown() -> None:
    assert "token" not in repr(TokenSet(access_token="token", expires_at=START))


def test_tokens_of_any_kind_have_claims_or_none() -> None:
    for token in ("", "a", "a.b.c", "a.###.c", "a.bnVsbA.c"):
        assert jwt_claims(token) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("http://127.0.0.1:1/callback?code=c&state=s", RedirectResult(code="c", state="s")),
        ("/callback?error=access_denied&state=s", RedirectResult(error="access_denied", state="s")),
        ("code=c&state=s", RedirectResult(code="c", state="s")),
        ("c#s", RedirectResult(code="c", state="s")),
        ("", RedirectResult()),
    ],
)
def test_what_comes_back_is_read_in_all_its_forms(text: str, found: RedirectResult) -> None:
    assert parse_redirect(text) == found
