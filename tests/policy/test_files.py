"""Credentials, own state, devices and start files are guarded in every spelling."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.codec.json import decode
from hermes.codec.values import JsonObject
from hermes.core.effects import Allow, Ask, Decision, Deny, ReadPath
from hermes.policy.places.files import Files, Member, Reference, parse_member, references
from tests.policy.decisions import command, decide, rules

CORPUS = Path(__file__).parent / "corpus_paths"
FILES = Files("/home/me/project", "/home/me", "/home/me/.hermes")


def lines(*names: str) -> list[JsonObject]:
    return [
        decode(dict, line)
        for name in names
        for line in (CORPUS / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
        if line
    ]


def judged(line: JsonObject) -> Decision:
    value = line["value"]
    match line["effect"]:
        case "read":
            return FILES.read(value)
        case "write":
            return FILES.write(value)
        case "attach":
            return FILES.attach(value)
        case "reference":
            return FILES.refer_all(value)
    return FILES.unpack(parse_member(line))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a key, a project and our own state."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("key")
    (tmp_path / "project").mkdir()
    (tmp_path / ".hermes").mkdir()
    (tmp_path / ".hermes" / "config.yaml").write_text("a: 1")
    return tmp_path


def files(home: Path) -> Files:
    return Files(str(home / "project"), str(home), str(home / ".hermes"))


def test_nothing_hostile_is_allowed() -> None:
    rows = lines("hostile", "hostile_held")
    assert [row for row in rows if isinstance(judged(row), Allow)] == []


def test_nothing_good_is_asked_about() -> None:
    rows = lines("good", "good_held")
    assert [row for row in rows if not isinstance(judged(row), Allow)] == []


def test_reading_a_credential_is_asked_about_by_its_name_once() -> None:
    assert FILES.read("~/.ssh/id_rsa") == Ask(
        reason="/home/me/.ssh/id_rsa holds SSH keys.", category="credentials", scopes=("once",)
    )


def test_a_command_behind_a_link_that_cannot_be_read_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links of other processes below /proc exist but cannot be read."""
    (tmp_path / "link").symlink_to(tmp_path)

    def refuse(path: str, **_: object) -> str:
        raise PermissionError(path)

    monkeypatch.setattr(os, "readlink", refuse)
    assert isinstance(decide(f"{tmp_path}/link/2"), Ask)


def test_a_link_to_a_credential_is_one(home: Path) -> None:
    (home / "project" / "notes.txt").symlink_to(home / ".ssh" / "id_rsa")
    (home / "project" / "folder").symlink_to(home / ".ssh")
    assert isinstance(files(home).read("notes.txt"), Ask)
    assert isinstance(files(home).read("folder/id_rsa"), Ask)
    assert isinstance(files(home).write("notes.txt"), Ask)
    assert isinstance(files(home).refer("notes.txt"), Deny)
    assert isinstance(files(home).attach("notes.txt"), Deny)


def test_a_second_name_of_a_credential_is_one(home: Path) -> None:
    os.link(home / ".ssh" / "id_rsa", home / "project" / "data.bin")
    os.link(home / ".hermes" / "config.yaml", home / "project" / "settings.txt")
    assert isinstance(files(home).read("data.bin"), Ask)
    assert isinstance(files(home).read("settings.txt"), Deny)
    (home / "project" / "a").write_text("x")
    os.link(home / "project" / "a", home / "project" / "b")
    assert isinstance(files(home).read("b"), Allow)


def test_a_link_out_of_the_workspace_is_outside(home: Path) -> None:
    (home / "project" / "up").symlink_to("/srv")
    assert isinstance(files(home).write("up/x.txt"), Ask)
    assert isinstance(files(home).refer("up/x.txt"), Deny)


def test_pipes_and_sockets_are_not_files(home: Path) -> None:
    os.mkfifo(home / "project" / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(home / "project" / "s"))
    for name in ("pipe", "s"):
        decision = files(home).read(name)
        assert isinstance(decision, Deny)
        assert decision.category == "device"
    server.close()


def test_our_own_state_is_refused_but_for_what_tools_left_there(home: Path) -> None:
    for name in ("config.yaml", ".env", "auth.json", "hermes.db", "skills/.hub/lock.json"):
        assert isinstance(files(home).read(str(home / ".hermes" / name)), Deny)
    assert isinstance(files(home).read(str(home / ".hermes/sessions/1/out.txt")), Allow)
    assert isinstance(files(home).write(str(home / ".hermes/sessions/1/out.txt")), Deny)


def test_homes_of_others_are_asked_about() -> None:
    assert isinstance(FILES.read("/home/anna/Documents/tax.pdf"), Ask)
    assert isinstance(FILES.read("/root/notes.txt"), Ask)
    for path in ("/home/me/other/a.txt", "/home/linuxbrew/.linuxbrew/bin/jq", "/usr/share/x"):
        assert isinstance(FILES.read(path), Allow), path
    # A container's person is often another one than the owner of the project.
    inside = Files("/home/dev/app", "/root", "/root/.hermes")
    assert isinstance(inside.read("/home/dev/lib/a.py"), Allow)
    assert isinstance(inside.read("/home/anna/a.py"), Ask)


def test_sessions_are_not_sent_without_a_word(home: Path) -> None:
    state = home / ".hermes"
    assert isinstance(files(home).attach(str(state / "sessions/1/out.txt")), Ask)
    assert isinstance(files(home).attach(str(state / "cache/images/1.png")), Allow)
    elsewhere = Files(str(home / "project"), str(home), "/data/cache/hermes")
    assert isinstance(elsewhere.attach("/data/cache/hermes/sessions/1/out.txt"), Ask)


def test_a_project_in_a_system_folder_is_a_project() -> None:
    there = Files("/usr/src/app", "/root", "/root/.hermes")
    assert isinstance(there.write("main.py"), Allow)
    assert isinstance(there.write("/usr/src/other/main.py"), Ask)


def test_references_are_found_as_people_write_them() -> None:
    message = 'see @file:"a b.txt", (@src/x.py:10-25) and @folder:docs, not me@x.org'
    assert references(message) == (
        Reference(kind="file", target="a b.txt"),
        Reference(kind="file", target="src/x.py"),
        Reference(kind="file", target="src/x.py:10-25"),
        Reference(kind="folder", target="docs"),
    )


def test_a_member_that_is_too_large_is_refused() -> None:
    decision = FILES.unpack(Member(name="a", size=2**40))
    assert isinstance(decision, Deny)
    assert decision.category == "too_large"


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_gets_a_decision(text: str) -> None:
    for rule in (FILES.read, FILES.write, FILES.attach, FILES.refer):
        assert isinstance(rule(text), Allow | Ask | Deny)
    FILES.unpack(Member(name=text))
    FILES.refer_all(f"look @{text}")


@given(st.sampled_from(["/etc/shadow", "~/.ssh/id_rsa", "~/.hermes/auth.json", ".env"]), st.data())
@settings(max_examples=200, deadline=None)
def test_no_detour_hides_a_guarded_file(path: str, data: st.DataObject) -> None:
    plain = path.replace("~", "/home/me")
    for detour in data.draw(
        st.lists(st.sampled_from(["./", "x/../", "//", "../project/"]), max_size=4)
    ):
        head, _, name = plain.rpartition("/")
        if detour == "../project/" and head:
            continue
        plain = f"{head}/{detour}{name}" if head else f"{detour.lstrip('/')}{name}"
    if path == ".env" and data.draw(st.booleans()):
        plain = plain.upper()
    assert not isinstance(FILES.read(plain), Allow)


@pytest.mark.parametrize(
    "start",
    [
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk",
        b"-----BEGIN PRIVATE KEY-----\nMIIEvQ",
        b"PuTTY-User-Key-File-3: ssh-ed25519\n",
        b"# created: 2026-01-01T00:00:00Z\n# public key: age1x\n",
    ],
)
def test_a_private_key_is_known_by_its_content(tmp_path: Path, start: bytes) -> None:
    policy = rules(root=str(tmp_path))
    for name in ("deploy", "server.pem", "notes.txt"):
        path = tmp_path / name
        path.write_bytes(b"-----BEGIN CERTIFICATE-----\n")
        assert isinstance(decide(ReadPath(path=str(path)), policy), Allow)
        path.write_bytes(start)
        decision = decide(ReadPath(path=str(path)), policy)
        assert isinstance(decision, Ask)
        assert decision.category == "credentials"
        assert isinstance(decide(command(f"cat {name}", str(tmp_path)), policy), Ask)
