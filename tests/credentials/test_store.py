"""auth.json: never torn, never lost, never more than its owner can read."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.codec import file_lock
from hermes.config.home import Home
from hermes.core.errors import ConfigError
from hermes.credentials.auth_file import (
    AuthDocument,
    AuthEntry,
    AuthFile,
    fingerprint_of,
    hold_lock,
    parse_time,
    read_entry,
    write_entry,
)


async def test_what_is_put_is_read_back(home: Home) -> None:
    store = AuthFile(home)
    entry = AuthEntry(id="a1b2c3", label="work", access_token="sk-1", priority=2)
    await store.edit(lambda document: document.put("openrouter", entry))
    assert (await AuthFile(home).read()).entries("openrouter") == (entry,)


async def test_only_the_owner_can_read_it(home: Home) -> None:
    store = AuthFile(home)
    await store.edit(lambda document: document.put("p", AuthEntry(id="1")))
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert home.root.stat().st_mode & 0o777 == 0o700


async def test_what_others_wrote_stays(home: Home) -> None:
    home.root.mkdir()
    theirs = {
        "version": 1,
        "providers": {"nous": {"tokens": {"access_token": "x"}}},
        "credential_pool": {"p": [{"id": "1", "label": "old", "extra": {"a": 1}}, "nonsense"]},
        "more": True,
    }
    (home.root / "auth.json").write_text(json.dumps(theirs))
    store = AuthFile(home)
    await store.edit(lambda document: document.put("p", AuthEntry(id="1", label="new")))
    found = json.loads(store.path.read_text())
    assert found == theirs | {
        "credential_pool": {"p": [{"id": "1", "label": "new", "extra": {"a": 1}}, "nonsense"]}
    }


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1', "\x00\x00"])
async def test_a_damaged_file_is_an_error_and_is_kept(home: Home, content: str) -> None:
    home.root.mkdir()
    path = home.root / "auth.json"
    path.write_text(content)
    store = AuthFile(home)
    with pytest.raises(ConfigError, match="is damaged"):
        await store.read()
    with pytest.raises(ConfigError, match=r"A copy is in auth\.json\.damaged"):
        await store.edit(lambda document: document.put("p", AuthEntry(id="1")))
    assert path.read_text() == content
    copy = home.root / "auth.json.damaged"
    assert copy.read_text() == content
    assert copy.stat().st_mode & 0o777 == 0o600


async def test_a_newer_file_is_not_touched(home: Home) -> None:
    home.root.mkdir()
    (home.root / "auth.json").write_text('{"version": 2}')
    with pytest.raises(ConfigError, match="newer version"):
        await AuthFile(home).edit(lambda document: document.put("p", AuthEntry(id="1")))
    assert (home.root / "auth.json").read_text() == '{"version": 2}'


async def test_changes_by_others_are_seen(home: Home) -> None:
    one, other = AuthFile(home), AuthFile(home)
    await one.edit(lambda document: document.put("p", AuthEntry(id="1")))
    assert [entry.id for entry in (await other.read()).entries("p")] == ["1"]
    await one.edit(lambda document: document.drop("p", "1"))
    assert (await other.read()).entries("p") == ()


async def test_many_changes_at_once_are_all_kept(home: Home) -> None:
    async def add(number: int) -> None:
        entry = AuthEntry(id=f"{number:06x}")
        await AuthFile(home).edit(lambda document: document.put("p", entry))

    async with asyncio.TaskGroup() as group:
        for number in range(25):
            group.create_task(add(number))
    assert len((await AuthFile(home).read()).entries("p")) == 25


async def test_a_lock_is_waited_for_and_then_complained_about(home: Home) -> None:
    path = home.root / "auth.lock"
    async with hold_lock(path):
        with pytest.raises(ConfigError, match=r"has locked .*auth\.lock for"):
            async with hold_lock(path, patience=0.1):
                pass
        with file_lock.hold_lock(path, timeout=0) as inside:
            assert not inside
    with file_lock.hold_lock(path, timeout=0) as inside:
        assert inside


async def test_the_lock_of_a_killed_process_is_free(home: Home) -> None:
    holder = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.credentials.lock_holder",
        str(home.root),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"held\n"
        with file_lock.hold_lock(home.root / "auth.lock", timeout=0) as inside:
            assert not inside
        holder.kill()
        async with hold_lock(home.root / "auth.lock", patience=5):
            pass
    finally:
        if holder.returncode is None:
            holder.kill()
        await holder.wait()


async def test_a_lock_file_that_was_removed_is_made_anew(home: Home) -> None:
    path = home.root / "auth.lock"
    async with hold_lock(path):
        path.unlink()
        async with hold_lock(path, patience=1):
            assert path.exists()


def test_dead_logins_added_by_hand_are_dropped_after_a_day() -> None:
    document = AuthDocument()
    for entry_id, source in (("a", "manual"), ("b", "manual:device_code"), ("c", "device_code")):
        document.put(
            "p", AuthEntry(id=entry_id, source=source, last_status="dead", last_status_at=1000.0)
        )
    document.forget_dead(1000.0 + 86_399)
    assert len(document.entries("p")) == 3
    document.forget_dead(1000.0 + 86_401)
    assert [entry.id for entry in document.entries("p")] == ["c"]


def test_suppressions_come_and_go() -> None:
    document = AuthDocument()
    document.suppress("p", "env:A")
    assert document.suppressed_sources("p") == {"env:A"}
    document.suppress("p", "env:A", on=False)
    assert document.suppressed_sources("p") == frozenset()


def test_entries_of_other_programs_are_understood() -> None:
    raw = {"id": "1", "expires_at": "2025-06-15T15:06:40Z", "refresh_token": None, "x": 1}
    assert read_entry(raw) == AuthEntry(id="1", expires_at=1_750_000_000.0)
    assert parse_time("soon") is None


names = st.text(max_size=12)


@given(
    st.builds(
        AuthEntry,
        id=names,
        label=names,
        priority=st.integers(-5, 5),
        access_token=names,
        expires_at=st.none() | st.floats(0, 2e9),
        last_status=st.sampled_from(["", "dead"]),
    )
)
def test_every_entry_is_read_as_it_was_written(entry: AuthEntry) -> None:
    written = write_entry(entry, {"theirs": 1})
    assert read_entry(written) == entry
    assert written["theirs"] == 1


def test_a_fingerprint_tells_secrets_apart_and_no_more() -> None:
    assert fingerprint_of("sk-one") != fingerprint_of("sk-two")
    assert "sk-one" not in fingerprint_of("sk-one")
    assert fingerprint_of("") == ""


def test_no_repr_shows_a_token() -> None:
    assert "sk-1" not in repr(AuthEntry(id="1", access_token="sk-1", refresh_token="sk-1"))


async def test_a_killed_writer_leaves_the_old_file(home: Home, tmp_path: Path) -> None:
    store = AuthFile(home)
    await store.edit(lambda document: document.put("p", AuthEntry(id="1", access_token="kept")))
    (home.root / ".auth.json.0000.draft").write_bytes(b'{"torn')
    assert (await AuthFile(home).read()).entries("p")[0].access_token == "kept"
