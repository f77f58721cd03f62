"""Adding, removing and looking at keys; logging in and out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.config.home import Home
from hermes.core.errors import NotFound, ProviderError, UsageError
from hermes.credentials.admin import AccountRow, CredentialAdmin
from hermes.credentials.auth_file import AuthEntry
from hermes.net.http import HttpClient
from tests.credentials.authority import Authority
from tests.credentials.bench import START, Bench, HandClock, failed, write_login

KEYRING = """
import json, pathlib
FILE = pathlib.Path(__file__).with_name("ring.json")

def _all():
    return json.loads(FILE.read_text()) if FILE.exists() else {}

def get_password(service, name):
    return _all().get(service + " " + name)

def set_password(service, name, secret):
    if FILE.with_name("locked").exists():
        raise RuntimeError("the keyring is locked")
    FILE.write_text(json.dumps({**_all(), service + " " + name: secret}))

def delete_password(service, name):
    FILE.write_text(json.dumps({k: v for k, v in _all().items() if k != service + " " + name}))
"""


class Agreeing:
    """Somebody who does what a login asks for."""

    def show_code(self, url: str, code: str, *, whole_url: str, seconds: float) -> None:
        pass

    def show_page(self, url: str, *, paste: bool) -> None:
        raise AssertionError("this login needs no page")

    async def read_pasted(self) -> str:
        raise AssertionError("this login needs nothing pasted")

    def reject_pasted(self, why: str) -> None:
        raise AssertionError("this login needs nothing pasted")


@pytest.fixture
def keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A keyring like that of an operating system, in a folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "keyring.py").write_text(KEYRING)
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("keyring", None)
    yield folder
    sys.modules.pop("keyring", None)


async def test_keys_are_listed_without_their_secrets(home: Home) -> None:
    bench = Bench(home.root, keys="A")
    admin = CredentialAdmin(bench.store, "p")
    await admin.add_key(" sk-secret-1 \n", label="work")
    await admin.add_key("sk-secret-2")
    rows = await admin.rows()
    assert [(row.index, row.label, row.source, row.status) for row in rows] == [
        (1, "A", "env:A", "ok"),
        (2, "work", "manual", "ok"),
        (3, "key 1", "manual", "ok"),
    ]
    assert [row.current for row in rows] == [True, False, False]
    assert "secret" not in repr(rows)


async def test_what_is_stored_is_the_key_and_nothing_borrowed(home: Home) -> None:
    bench = Bench(home.root, keys="A")
    row = await CredentialAdmin(bench.store, "p").add_key("sk-secret-1", label="work")
    stored = json.loads((home.root / "auth.json").read_text())
    assert stored["credential_pool"] == {
        "p": [
            {
                "id": row.id,
                "label": "work",
                "access_token": "sk-secret-1",
                "added_at": START,
            }
        ]
    }


@pytest.mark.parametrize("key", ["", "abc", "changeme", "***********"])
async def test_what_cannot_be_a_key_is_refused(home: Home, key: str) -> None:
    with pytest.raises(UsageError, match="not an API key"):
        await CredentialAdmin(Bench(home.root).store, "p").add_key(key)


async def test_a_key_is_added_once(home: Home) -> None:
    admin = CredentialAdmin(Bench(home.root, keys="A").store, "p")
    with pytest.raises(UsageError, match="already has this key as number 1"):
        await admin.add_key("secret-A")


@pytest.mark.parametrize("which", ["2", "work", "id"])
async def test_a_key_is_removed_by_number_label_or_id(home: Home, which: str) -> None:
    admin = CredentialAdmin(Bench(home.root, keys="A").store, "p")
    added = await admin.add_key("sk-secret-1", label="work")
    gone = await admin.remove(added.id if which == "id" else which)
    assert gone.id == added.id
    assert [row.label for row in await admin.rows()] == ["A"]
    assert "sk-secret-1" not in (home.root / "auth.json").read_text()


async def test_a_borrowed_key_is_suppressed_until_it_is_added_again(home: Home) -> None:
    admin = CredentialAdmin(Bench(home.root, keys="AB").store, "p")
    await admin.remove("A")
    assert [row.label for row in await admin.rows()] == ["B"]
    again = CredentialAdmin(Bench(home.root, keys="AB").store, "p")
    assert [row.label for row in await again.rows()] == ["B"]
    assert (await again.add_key("secret-A")).label == "A"
    assert [row.label for row in await again.rows()] == ["A", "B"]
    assert "secret-A" not in (home.root / "auth.json").read_text()


async def test_names_that_fit_none_or_several_are_reported(home: Home) -> None:
    bench = Bench(home.root)
    await bench.put(AuthEntry(id="1a", label="same", access_token="sk-1"))
    await bench.put(AuthEntry(id="2b", label="same", access_token="sk-2"))
    admin = CredentialAdmin(bench.store, "p")
    with pytest.raises(UsageError, match="2 keys are called 'same'"):
        await admin.remove("same")
    with pytest.raises(NotFound, match="no key 'other'"):
        await admin.remove("other")


async def test_a_resting_key_tells_how_long_and_can_be_woken(home: Home) -> None:
    bench = Bench(home.root, keys="AB")
    admin = CredentialAdmin(bench.store, "p")
    await bench.pool.report(await bench.pool.pick(), failed("rate_limit", retry_after=90))
    first, second = await admin.rows()
    assert (first.status, first.why, first.left_seconds) == ("resting", "rate_limit", 90.0)
    assert second.current
    assert await admin.reset() == 1
    assert (await admin.rows())[0].status == "ok"
    assert await bench.next_key() == "A"
    assert await admin.reset() == 0


async def test_logging_in_stores_tokens_and_makes_it_the_active_provider(
    home: Home, authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    write_login(home, "p", authority.url, "device", label="Test Vendor")
    bench = Bench(home.root, http=http, clock=clock)
    row = await CredentialAdmin(bench.store, "p").log_in(Agreeing())
    assert (row.type, row.label, row.status) == ("oauth", "Test Vendor", "ok")
    assert authority.accepts((await bench.pool.pick()).key)
    assert (await bench.store.auth_file.read()).active_provider == "p"


async def test_logging_in_again_takes_the_place_of_the_old_login(
    home: Home, authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    write_login(home, "p", authority.url, "device")
    bench = Bench(home.root, http=http, clock=clock)
    admin = CredentialAdmin(bench.store, "p")
    first = await admin.log_in(Agreeing())
    held = await bench.pool.pick()
    authority.revoke("device")
    await bench.pool.report(held, failed("auth"))
    assert (await admin.rows())[0].status == "dead"
    authority.__init__(clock.now)  # type: ignore[misc]
    second = await admin.log_in(Agreeing())
    assert (second.id, second.status) == (first.id, "ok")
    assert len(await admin.rows()) == 1
    other = await admin.log_in(Agreeing(), label="second")
    assert (other.label, other.source) == ("second", "manual:device_code")
    assert len(await admin.rows()) == 2


async def test_logging_out_gives_tokens_back_and_forgets_them(
    home: Home, authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    write_login(home, "p", authority.url, "device")
    bench = Bench(home.root, http=http, clock=clock)
    admin = CredentialAdmin(bench.store, "p")
    await admin.log_in(Agreeing())
    await admin.add_key("sk-secret-1")
    stored = (await bench.store.auth_file.read()).entries("p")[0]
    gone = await admin.log_out()
    assert [row.why for row in gone] == [""]
    assert authority.revoked == [stored.refresh_token]
    assert [row.type for row in await admin.rows()] == ["api_key"]
    assert (await bench.store.auth_file.read()).active_provider == ""
    assert stored.refresh_token not in (home.root / "auth.json").read_text()


async def test_logging_out_works_without_the_authority(
    home: Home, authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    write_login(home, "p", authority.url, "device")
    bench = Bench(home.root, http=http, clock=clock)
    admin = CredentialAdmin(bench.store, "p")
    await admin.log_in(Agreeing())
    authority.broken = True
    assert [row.why for row in await admin.log_out()] == ["kept"]
    assert await admin.rows() == ()


async def test_a_login_that_fails_leaves_everything_as_it_was(
    home: Home, authority: Authority, http: HttpClient, clock: HandClock
) -> None:
    write_login(home, "p", authority.url, "device")
    authority.answers = ["access_denied"]
    with pytest.raises(ProviderError, match="denied"):
        await CredentialAdmin(Bench(home.root, http=http, clock=clock).store, "p").log_in(
            Agreeing()
        )
    assert not (home.root / "auth.json").exists()


async def test_a_provider_without_a_login_names_the_other_road(home: Home) -> None:
    with pytest.raises(NotFound, match="hermes auth add p"):
        await CredentialAdmin(Bench(home.root).store, "p").log_in(Agreeing())


async def test_a_keyring_keeps_the_key_if_there_is_one(home: Home, keyring: Path) -> None:
    bench = Bench(home.root)
    row = await CredentialAdmin(bench.store, "p").add_key("sk-secret-1", label="work")
    assert row.kept_in == "keyring"
    assert "sk-secret-1" not in (home.root / "auth.json").read_text()
    assert "sk-secret-1" in (keyring / "ring.json").read_text()
    other = Bench(home.root)
    assert (await other.pool.pick()).key == "sk-secret-1"
    await CredentialAdmin(other.store, "p").remove("work")
    assert "sk-secret-1" not in (keyring / "ring.json").read_text()


async def test_a_keyring_that_fails_is_one_that_is_not_there(home: Home, keyring: Path) -> None:
    (keyring / "locked").touch()
    bench = Bench(home.root)
    row = await CredentialAdmin(bench.store, "p").add_key("sk-secret-1")
    assert row.kept_in == ""
    assert (await bench.pool.pick()).key == "sk-secret-1"


async def test_homes_do_not_share_what_a_keyring_keeps(tmp_path: Path, keyring: Path) -> None:
    one, other = Bench(tmp_path / "one"), Bench(tmp_path / "other")
    row = await CredentialAdmin(one.store, "p").add_key("sk-secret-1")
    await other.put(AuthEntry(id=row.id, label="x", kept_in="keyring"))
    with pytest.raises(ProviderError):
        await other.pool.pick()


def test_rows_are_plain_values() -> None:
    row = AccountRow(
        provider="p", index=1, id="a", label="", type="api_key", source="manual", status="ok"
    )
    assert replace(row, current=True).current
