"""Logins that run out are renewed once, whoever asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.core.errors import ProviderError
from hermes.credentials.auth_file import AuthEntry
from hermes.net.http import HttpClient
from tests.credentials.authority import CLIENT, Authority
from tests.credentials.bench import Bench, HandClock, failed, write_login


class Login:
    """A bench with one login at the authority, and how to change it."""

    def __init__(
        self, home: Home, authority: Authority, clock: HandClock, http: HttpClient
    ) -> None:
        write_login(home, "p", authority.url, "device")
        self.home, self.authority, self.clock, self.http = home, authority, clock, http
        self.bench = self.other_process()

    def other_process(self) -> Bench:
        return Bench(self.home.root, clock=self.clock, http=self.http)

    async def begin(self) -> AuthEntry:
        tokens = self.authority.issue("f")
        entry = AuthEntry(
            id="abc123",
            label="login",
            auth_type="oauth",
            source="device_code",
            access_token=tokens["access_token"],
            refresh_token=tokens["refresh_token"],
            expires_at=self.clock.now() + tokens["expires_in"],
            client_id=CLIENT,
        )
        await self.bench.put(entry)
        return entry

    async def entry(self) -> AuthEntry:
        found = (await self.bench.store.auth_file.read_fresh()).entry("p", "abc123")
        assert found is not None
        return found


@pytest.fixture
async def login(
    home: Home, authority: Authority, clock: HandClock, http: HttpClient
) -> AsyncIterator[Login]:
    found = Login(home, authority, clock, http)
    await found.begin()
    yield found
    await found.bench.pool.close()


async def test_a_fresh_token_is_used_as_it_is(login: Login) -> None:
    held = await login.bench.pool.pick()
    assert login.authority.accepts(held.key)
    assert login.authority.asked == []


async def test_a_token_is_renewed_two_minutes_before_its_end(login: Login) -> None:
    before = await login.entry()
    login.clock.passed += 3600 - 121
    assert (await login.bench.pool.pick()).key == before.access_token
    login.clock.passed += 2
    held = await login.bench.pool.pick()
    after = await login.entry()
    assert held.key == after.access_token != before.access_token
    assert after.refresh_token != before.refresh_token
    assert after.expires_at == login.clock.now() + 3600


async def test_many_sessions_and_processes_renew_once(login: Login) -> None:
    login.clock.passed += 4000
    processes = [login.other_process() for _ in range(5)]
    async with asyncio.TaskGroup() as group:
        work = [group.create_task(b.pool.pick()) for b in processes for _ in range(4)]
    assert len({task.result().key for task in work}) == 1
    assert set(login.authority.refreshes.values()) == {1}
    assert len(login.authority.refreshes) == 1


async def test_a_refused_token_is_renewed_and_asked_with_again(login: Login) -> None:
    held = await login.bench.pool.pick()
    login.authority.forget_access()
    assert await login.bench.pool.report(held, failed("auth")) == "again"
    fresh = await login.bench.pool.pick(again=held.id)
    assert fresh.key != held.key
    assert login.authority.accepts(fresh.key)


async def test_twenty_refused_calls_renew_once(login: Login) -> None:
    held = await login.bench.pool.pick()
    login.authority.forget_access()
    processes = [login.other_process() for _ in range(4)]
    async with asyncio.TaskGroup() as group:
        work = [group.create_task(b.pool.report(held, failed("auth"))) for b in processes * 5]
    assert {task.result() for task in work} == {"again"}
    assert sum(login.authority.refreshes.values()) == 1


async def test_renewing_in_vain_has_an_end(login: Login) -> None:
    await login.bench.put(AuthEntry(id="spare1", label="spare", access_token="sk-spare"))
    verdicts = []
    for _ in range(3):
        held = await login.bench.pool.pick(again="abc123")
        verdicts.append(await login.bench.pool.report(held, failed("auth")))
    assert verdicts == ["again", "again", "rotate"]
    assert (await login.bench.pool.pick()).label == "spare"


async def test_a_token_that_another_program_wrote_is_taken_over(login: Login) -> None:
    """It holds no lock and knows nothing of us, and our refresh token is void by then."""
    entry = await login.entry()
    held = await login.bench.pool.pick()
    path = login.bench.store.auth_file.path
    login.authority.refreshes[entry.refresh_token] += 1
    theirs = login.authority.issue("f")

    def write() -> None:
        raw = json.loads(path.read_text())
        stored = raw["credential_pool"]["p"][0]
        stored["access_token"] = theirs["access_token"]
        stored["refresh_token"] = theirs["refresh_token"]
        path.write_text(json.dumps(raw))

    login.authority.rotates = False  # their use of the token is not held against us
    write()
    assert await login.bench.pool.report(held, failed("auth")) == "again"
    assert (await login.bench.pool.pick()).key == theirs["access_token"]
    assert login.authority.refreshes[theirs["refresh_token"]] == 0


async def test_a_void_refresh_token_is_looked_up_again_before_the_login_is_dead(
    login: Login,
) -> None:
    """The other program used it a moment ago, and writes its successor a moment later."""
    held = await login.bench.pool.pick()
    path = login.bench.store.auth_file.path
    theirs = login.authority.issue("g")
    login.authority.revoke("f")

    async def writes_late() -> None:
        await login.authority.arrived.wait()
        await asyncio.sleep(0.1)
        raw = json.loads(path.read_text())
        raw["credential_pool"]["p"][0] |= {
            "access_token": theirs["access_token"],
            "refresh_token": theirs["refresh_token"],
        }
        path.write_text(json.dumps(raw))

    async with asyncio.TaskGroup() as group:
        group.create_task(writes_late())
        verdict = group.create_task(login.bench.pool.report(held, failed("auth")))
    assert verdict.result() == "again"
    assert not (await login.entry()).is_dead
    assert (await login.bench.pool.pick()).key == theirs["access_token"]


async def test_a_revoked_login_is_dead_and_says_what_to_do(login: Login) -> None:
    held = await login.bench.pool.pick()
    login.authority.revoke("f")
    assert await login.bench.pool.report(held, failed("auth")) == "rotate"
    entry = await login.entry()
    assert (entry.last_status, entry.last_error_reason) == ("dead", "invalid_grant")
    with pytest.raises(ProviderError, match=r"has expired.*hermes login p"):
        await login.bench.pool.pick()
    assert sum(login.authority.refreshes.values()) == 1


async def test_a_dead_login_is_left_out(login: Login) -> None:
    await login.bench.put(AuthEntry(id="spare1", label="spare", access_token="sk-spare"))
    login.authority.revoke("f")
    login.clock.passed += 4000
    assert (await login.bench.pool.pick()).label == "spare"
    assert (await login.other_process().pool.pick()).label == "spare"


async def test_an_authority_that_is_away_costs_nothing_while_the_token_is_good(
    login: Login,
) -> None:
    login.authority.broken = True
    login.clock.passed += 3600 - 60
    held = await login.bench.pool.pick()
    assert login.authority.accepts(held.key)


async def test_an_authority_that_is_away_is_asked_again_soon(login: Login) -> None:
    login.authority.broken = True
    login.clock.passed += 4000
    with pytest.raises(ProviderError) as caught:
        await login.bench.pool.pick()
    assert caught.value.retryable
    assert caught.value.retry_after == pytest.approx(10, abs=0.2)
    login.authority.broken = False
    login.clock.passed += 10.1
    assert login.authority.accepts((await login.bench.pool.pick()).key)
    assert not (await login.entry()).is_dead


async def test_whoever_is_stopped_does_not_stop_a_renewal(login: Login) -> None:
    login.clock.passed += 4000
    work = asyncio.create_task(login.bench.pool.pick())
    await login.authority.arrived.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await login.bench.pool.close()
    assert login.authority.accepts((await login.entry()).access_token)


async def test_a_wrong_client_id_does_not_end_a_login(login: Login) -> None:
    await login.bench.put(replace(await login.entry(), client_id="another"))
    held = await login.bench.pool.pick()
    login.authority.forget_access()
    await login.bench.pool.report(held, failed("auth"))
    assert not (await login.entry()).is_dead


async def test_a_clock_that_runs_fast_does_not_matter(login: Login) -> None:
    login.authority.skew = -7200.0
    login.clock.passed += 3500
    held = await login.bench.pool.pick()
    assert login.authority.accepts(held.key)


async def test_a_borrowed_token_is_exchanged_and_never_stored(
    home: Home, authority: Authority, clock: HandClock, http: HttpClient
) -> None:
    write_login(
        home,
        "p",
        authority.url,
        "device",
        exchange_url=f"{authority.url}/copilot_internal/v2/token",
        refused_prefix="ghp_",
    )
    bench = Bench(home.root, keys="A", secrets=["gho_secret"], clock=clock, http=http)
    held = await bench.pool.pick()
    assert held.key.startswith("tid=")
    assert held.url == f"{authority.url}/models"
    assert (await bench.pool.pick()).key == held.key
    clock.passed += 1500 - 119
    assert (await bench.pool.pick()).key != held.key
    authority.forget_access()
    held = await bench.pool.pick()
    assert await bench.pool.report(held, failed("auth")) == "again"
    assert authority.accepts((await bench.pool.pick()).key)
    await bench.pool.close()
    written = b"".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())
    assert b"gho_secret" not in written
    assert b"tid=" not in written
    classic = Bench(home.root, keys="A", secrets=["ghp_secret"], clock=clock, http=http)
    with pytest.raises(ProviderError, match="not accept classic tokens"):
        await classic.pool.pick()
