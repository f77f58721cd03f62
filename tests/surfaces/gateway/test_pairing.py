"""Pairing codes: who gets one, who is let in, and what the files give away."""

from __future__ import annotations

import json
import stat
from hashlib import sha256
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.core.errors import ConfigError, NotFound
from hermes.surfaces.gateway.pairing import (
    ALPHABET,
    CODE_SECONDS,
    LOCKOUT_SECONDS,
    REQUEST_SECONDS,
    PairingStore,
)
from hermes.testing.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(tmp_path: Path, clock: VirtualClock) -> PairingStore:
    return PairingStore(Home(tmp_path / "home"), clock)


async def test_an_approved_person_is_known_in_every_process(
    store: PairingStore, tmp_path: Path, clock: VirtualClock
) -> None:
    code = await store.request("telegram", "42", "Ann\nLee")
    assert len(code) == 8
    assert set(code) <= set(ALPHABET)
    assert not store.is_approved("telegram", ("42",))
    other = PairingStore(Home(tmp_path / "home"), clock)
    row = other.approve("telegram", f" {code[:4].lower()}-{code[4:]} ")
    assert (row.user_id, row.user_name) == ("42", "Ann Lee")
    assert store.is_approved("telegram", ("a", "42"))
    assert not store.is_approved("signal", ("42",))
    assert store.pending() == ()
    assert [row.user_id for row in store.approved()] == ["42"]


async def test_a_code_works_once(store: PairingStore) -> None:
    code = await store.request("telegram", "42", "Ann")
    store.approve("telegram", code)
    with pytest.raises(NotFound, match="hermes pairing list"):
        store.approve("telegram", code)


async def test_a_code_expires_after_an_hour(store: PairingStore, clock: VirtualClock) -> None:
    code = await store.request("telegram", "42", "Ann")
    await clock.advance(CODE_SECONDS)
    with pytest.raises(NotFound):
        store.approve("telegram", code)
    assert not store.is_approved("telegram", ("42",))


async def test_a_code_is_valid_until_its_last_second(
    store: PairingStore, clock: VirtualClock
) -> None:
    code = await store.request("telegram", "42", "Ann")
    await clock.advance(CODE_SECONDS - 1)
    assert store.approve("telegram", code).user_id == "42"


async def test_a_person_gets_one_code_in_ten_minutes(
    store: PairingStore, clock: VirtualClock
) -> None:
    assert await store.request("telegram", "42", "Ann")
    assert await store.request("telegram", "42", "Ann") == ""
    assert await store.request("signal", "42", "Ann")
    await clock.advance(REQUEST_SECONDS)
    assert await store.request("telegram", "42", "Ann")


async def test_three_requests_wait_at_most(store: PairingStore, clock: VirtualClock) -> None:
    codes = [await store.request("telegram", str(number), "") for number in range(4)]
    assert [bool(code) for code in codes] == [True, True, True, False]
    await clock.advance(CODE_SECONDS)
    assert await store.request("telegram", "4", "")


async def test_five_wrong_codes_lock_a_platform_for_an_hour(
    store: PairingStore, clock: VirtualClock
) -> None:
    code = await store.request("telegram", "42", "Ann")
    for _ in range(5):
        with pytest.raises(NotFound):
            store.approve("telegram", "AAAAAAAA")
    with pytest.raises(ConfigError, match="in 60 minutes"):
        store.approve("telegram", code)
    assert await store.request("telegram", "43", "Bob") == ""
    other = await store.request("signal", "42", "Ann")
    assert store.approve("signal", other).platform == "signal"
    await clock.advance(LOCKOUT_SECONDS)
    late = await store.request("telegram", "43", "Bob")
    assert store.approve("telegram", late).user_id == "43"


async def test_a_right_code_forgives_the_wrong_ones(store: PairingStore) -> None:
    for user in ("1", "2"):
        code = await store.request("telegram", user, "")
        for _ in range(4):
            with pytest.raises(NotFound):
                store.approve("telegram", "AAAAAAAA")
        assert store.approve("telegram", code).user_id == user


async def test_revoking_takes_effect_in_every_process(
    store: PairingStore, tmp_path: Path, clock: VirtualClock
) -> None:
    store.approve("telegram", await store.request("telegram", "42", "Ann"))
    assert store.is_approved("telegram", ("42",))
    PairingStore(Home(tmp_path / "home"), clock).revoke("telegram", "42")
    assert not store.is_approved("telegram", ("42",))
    with pytest.raises(NotFound, match="not paired"):
        store.revoke("telegram", "42")


async def test_waiting_requests_can_be_cleared(store: PairingStore) -> None:
    code = await store.request("telegram", "42", "Ann")
    assert await store.request("signal", "43", "Bob")
    assert store.clear_pending() == 2
    with pytest.raises(NotFound):
        store.approve("telegram", code)


async def test_the_files_are_private_and_do_not_reveal_a_code(store: PairingStore) -> None:
    code = await store.request("telegram", "42", "Ann")
    store.approve("signal", await store.request("signal", "1", ""))
    files = [path for path in store.folder.iterdir() if path.suffix == ".json"]
    assert {path.name for path in files} == {
        "telegram-pending.json",
        "signal-pending.json",
        "signal-approved.json",
        "_rate_limits.json",
    }
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    stored = b"".join(path.read_bytes() for path in files)
    parts = {code[start : start + 4] for start in range(5)}
    assert not any(part.encode() in stored.upper() for part in parts if not _is_hex(part))
    # A fast hash could be searched for all codes.
    entry = next(iter(json.loads((store.folder / "telegram-pending.json").read_text()).values()))
    fast = {sha256(text.encode()).hexdigest() for text in (code, entry["salt"] + code)}
    assert entry["hash"] not in fast


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789ABCDEF" for letter in text)


async def test_a_damaged_file_lets_nobody_in(store: PairingStore) -> None:
    store.approve("telegram", await store.request("telegram", "42", "Ann"))
    (store.folder / "telegram-approved.json").write_text("{")
    with pytest.raises(ConfigError, match="damaged"):
        store.is_approved("telegram", ("42",))


def test_codes_have_no_letters_that_look_alike() -> None:
    assert not set("01IO") & set(ALPHABET)
    assert len(ALPHABET) == 32
