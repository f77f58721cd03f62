"""Reading `.env`, and who wins about a secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.config.environment import (
    Secrets,
    display_value,
    format_env_line,
    is_secret_name,
    mask,
    parse_env,
    read_env_file,
)
from hermes.config.home import Home


def test_lines_are_read_with_quotes_exports_and_comments() -> None:
    text = (
        "# a comment\n\nPLAIN=one\nexport EXPORTED = two # note\n"
        'SINGLE=\'a # b\' # note\nDOUBLE="a \\"b\\"\\n"\nEMPTY=\nHASH=a#b\r\n'
    )
    assert parse_env(text).variables == {
        "PLAIN": "one",
        "EXPORTED": "two",
        "SINGLE": "a # b",
        "DOUBLE": 'a "b"\n',
        "EMPTY": "",
        "HASH": "a#b",
    }


def test_a_bad_line_is_named_and_the_rest_is_read() -> None:
    found = parse_env("A=1\nnot a line\nB='open\nC=3")
    assert found.variables == {"A": "1", "C": "3"}
    assert [finding.text for finding in found.diagnostics] == [
        ".env line 2 is not NAME=value and is ignored",
        ".env line 3 is not NAME=value and is ignored",
    ]


def test_the_last_of_two_lines_counts() -> None:
    assert parse_env("A=1\nA=2").variables == {"A": "2"}


@given(st.text(st.characters(codec="utf-8")))
def test_what_is_written_is_read_back(value: str) -> None:
    assert parse_env(f"B=1\n{format_env_line('A_KEY', value)}\n").variables["A_KEY"] == value


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    parse_env(text)


def test_a_missing_or_unreadable_file_says_nothing(home: Home) -> None:
    assert read_env_file(home).variables == {}
    home.ensure_folder(home.root)
    home.env_file.write_bytes(b"A=\xff\xfe")
    found = read_env_file(home)
    assert found.variables == {}
    assert "not UTF-8" in found.diagnostics[0].text


def test_the_file_wins_over_the_process() -> None:
    secrets = Secrets({"A_KEY": "file"}, {"A_KEY": "process", "B_KEY": "process", "C": "x"})
    assert (secrets.get("A_KEY"), secrets.source("A_KEY")) == ("file", ".env")
    assert (secrets.get("B_KEY"), secrets.source("B_KEY")) == ("process", "environment")
    assert (secrets.get("NO_KEY"), secrets.source("NO_KEY")) == ("", None)
    assert secrets.names() == ("A_KEY", "B_KEY")


def test_an_empty_line_in_the_file_does_not_hide_the_process() -> None:
    secrets = Secrets({"A_KEY": ""}, {"A_KEY": "process"})
    assert (secrets.get("A_KEY"), secrets.source("A_KEY")) == ("process", "environment")


def test_shadowed_values_are_secret_too_and_no_repr_shows_one() -> None:
    secrets = Secrets({"A_KEY": "file-secret"}, {"A_KEY": "process-secret", "PATH": "/usr/bin:x"})
    assert secrets.values() == {"file-secret", "process-secret"}
    assert "secret" not in repr(secrets)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("OPENROUTER_API_KEY", True),
        ("GITHUB_TOKEN", True),
        ("SUDO_PASSWORD", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("OPENAI_API_KEY_2", True),
        ("PATH", False),
        ("MONKEY", False),
        ("SSH_AUTH_SOCK", False),
        ("OPENAI_BASE_URL", False),
    ],
)
def test_names_tell_what_is_secret(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_a_mask_shows_only_the_ends_of_long_values() -> None:
    assert mask("short") == "***"
    assert mask("sk-or-v1-0123456789abcd7890") == "sk-or-...7890"


def test_passwords_in_addresses_are_not_shown() -> None:
    assert display_value("http://me:pass@host:80/x") == "http://***@host:80/x"
    assert display_value({"Authorization": "Bearer abc"}, secret=True) == {"Authorization": "***"}
    assert display_value("", secret=True) == ""
