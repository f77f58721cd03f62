"""The redactor: secrets of many kinds are masked, what only looks like one is left alone."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.policy.redact.formats import formats
from hermes.policy.redact.redactor import RedactedStream, Redactor
from hermes.policy.redact.spans import Channel, Redacted
from tests.policy.secret_samples import lines, sample

KINDS = [line.split("\t", 1) for line in (*lines("kinds"), *lines("kinds_held"))]
SEEDS = range(2)
CHANNELS: tuple[Channel, ...] = ("model", "log")


def shown(text: str, *values: str) -> str:
    return Redactor(values).redact(text).text


@pytest.mark.parametrize("name", ["kinds", "kinds_held", "kinds_fresh"])
@pytest.mark.parametrize("channel", CHANNELS)
def test_secrets_of_at_least_98_percent_of_all_samples_are_masked(
    name: str, channel: Channel
) -> None:
    redactor = Redactor()
    total, leaked = 0, []
    for line in lines(name):
        kind, pattern = line.split("\t", 1)
        for seed in SEEDS:
            text, secrets = sample(pattern, seed)
            out = redactor.redact(text, channel).text
            total += 1
            leaked += [kind] if any(secret in out for secret in secrets) else []
    assert len(leaked) <= total * 0.02, sorted(set(leaked))


@pytest.mark.parametrize("name", ["lookalikes", "lookalikes_held", "lookalikes_fresh"])
def test_at_most_one_percent_of_the_lookalikes_is_masked(name: str) -> None:
    rows = [sample(line, 0)[0] for line in lines(name)]
    masked = [row for row in rows if shown(row) != row]
    assert len(masked) <= len(rows) * 0.01, masked


@pytest.mark.parametrize(
    "line",
    [
        "docker run --rm -v $PWD:/w:ro -w /w alpine ls",
        'podman run -v "$(pwd)":/app:ro,z -v "$PWD":/src img',
        "docker run -v $PWD:/usr/src/app:delegated -v ${PWD}/data:/data:rw img",
        "export ROOTS=$PWD:/opt/a:/opt/b",
        "PWD=/w:ro",
        "rsync -a $TOKEN_DIR/ $HOST_KEY:/srv/www",
        "- ./secrets:/run/secrets:ro",
    ],
)
def test_what_a_shell_puts_between_colons_is_no_secret(line: str) -> None:
    assert shown(line) == line


@pytest.mark.parametrize(
    "line",
    [
        "PWD=hunter2;UID=sa",
        '$password = "hunter2x9"',
        "$env:API_TOKEN='a8f3k2m9q1z7'",
        "password: /w0rd!:x",
    ],
)
def test_a_value_stays_one_whatever_sign_stands_before_its_name(line: str) -> None:
    assert "***" in shown(line)


def test_many_kinds_are_known() -> None:
    assert len({kind for kind, _ in KINDS}) >= 250
    assert len(set(formats().kinds)) >= 120


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sk-proj-abcdefghijklmnop1234", "sk-pro...1234"),
        ("OPENAI_API_KEY=sk-abc", "OPENAI_API_KEY=***"),
        ('key = os.getenv("X_TOKEN")', 'key = os.getenv("X_TOKEN")'),
        ("postgres://u:p4ss@h/db", "postgres://u:***@h/db"),
        ('"token_count": 12', '"token_count": 12'),
        ("+14155550123", "+1415***0123"),
        ("password: hunter2", "password: ***"),
        ("author: Jane", "author: Jane"),
    ],
)
def test_what_a_log_shows(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("| user | password |\n|---|---|\n| bob | k3!xPq9z |", "| bob | *** |"),
        ("user,token\nbob,a8Xk29QqLm\n", "bob,***\n"),
        ("Пароль: k3!xPq9z", "Пароль: ***"),
        ("echo k3xPq9zT | sudo -S id", "echo *** | sudo -S id"),
        ('server.login("bob", "k3xPq9zTw")', 'server.login("bob", "***")'),
        ("%22password%22%3A%22k3xPq9zT%22", "%22password%22%3A%22***%22"),
        ("snmp-server community k3xPq9zT RO", "snmp-server community *** RO"),
    ],
)
def test_a_secret_is_told_by_its_surroundings(text: str, expected: str) -> None:
    assert shown(text).endswith(expected)


def test_a_header_keeps_its_name_and_scheme() -> None:
    token = "abcDEF123456" * 3
    assert shown(f"Authorization: Bearer {token}") == "Authorization: Bearer abcDEF...3456"


def test_a_private_key_is_replaced_as_a_whole() -> None:
    body = "\n".join(["QUJD" * 16] * 4)
    text = f"x\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\ny"
    assert shown(text) == "x\n[REDACTED PRIVATE KEY]\ny"


def test_a_model_sees_what_kind_of_secret_it_was_and_which() -> None:
    redactor = Redactor()
    first, second = "ghp_" + "a1B2" * 9, "ghp_" + "c3D4" * 9
    text = f"{first} {second} {first}"
    assert redactor.redact(text, "model") == Redacted(
        text="[secret:github#1] [secret:github#2] [secret:github#1]", found=("github",)
    )
    assert redactor.redact(second, "model").text == "[secret:github#2]"


@pytest.mark.parametrize("channel", CHANNELS)
def test_what_was_redacted_is_not_redacted_again(channel: Channel) -> None:
    for _, pattern in KINDS:
        once = Redactor().redact(sample(pattern, 1)[0], channel).text
        assert Redactor().redact(once, channel).text == once


def encodings(value: str) -> Iterator[str]:
    raw = value.encode()
    yield from (value, value[::-1], json.dumps(value), quote(value, safe=""), value.upper())
    yield from (raw.hex(), raw.hex().upper(), raw.hex(":"), "".join(f"\\x{b:02x}" for b in raw))
    for before in (b"", b"a", b"ab", b"abc"):
        yield base64.b64encode(before + raw + b"tail").decode()
        yield base64.urlsafe_b64encode(before + raw).decode().rstrip("=")
    yield base64.b32encode(raw).decode()
    yield " ".join(value)
    yield "\n".join(value[at : at + 7] for at in range(0, len(value), 7))
    yield f'"{value[:9]}" + "{value[9:]}"'
    yield ", ".join(str(byte) for byte in raw)


def known_values(count: int) -> list[str]:
    chance = random.Random(7)
    signs = ("", "-_", "+/=", "!@#$%^&*", " ")
    found = []
    for number in range(count):
        letters = string.ascii_letters + string.digits + signs[number % len(signs)]
        inner = "".join(chance.choices(letters, k=chance.randrange(14, 60)))
        found.append(f"q{inner}7")
    return found


def test_a_known_value_is_found_in_every_encoding() -> None:
    values = known_values(40)
    redactor = Redactor(values)
    for value in values:
        for coded in encodings(value):
            out = redactor.redact(f"before {coded} after", "model").text
            assert coded[4:-8] not in out, (value, coded, out)


def test_known_values_do_not_show_in_a_repr() -> None:
    assert "correct-horse" not in repr(Redactor(["correct-horse-battery-1"]))


def test_a_short_known_value_is_only_found_as_it_is_written() -> None:
    assert shown("the pass-word swordfish", "swordfish") == "the pass-word ***"
    assert shown("sword fish", "swordfish") == "sword fish"


def test_people_are_replaced_by_digests_on_request() -> None:
    text = "jane@example.com called from +1 415 555 0123, user_id: 12345"
    out = Redactor(pii=True).redact(text, "model")
    assert out.found == ("email", "phone", "id")
    assert "jane" not in out.text
    assert "0123" not in out.text
    assert "12345" not in out.text
    assert Redactor(pii=True).redact(text, "model") == out
    assert shown("jane@example.com") == "jane@example.com"


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_is_redacted_without_harm(text: str) -> None:
    once = shown(text)
    assert isinstance(once, str)
    if not Redactor().spans(text):
        assert once == text


@given(st.integers(min_value=0), st.data())
@settings(max_examples=100, deadline=None)
def test_a_secret_that_comes_in_pieces_does_not_leak(seed: int, data: st.DataObject) -> None:
    _, pattern = KINDS[seed % len(KINDS)]
    text, secrets = sample(pattern, 1)
    value = "zK9-known-Value_42xyz"
    whole = f"Some words first.\n{text}\nand {value} then\n{value[:9]} {value[9:]} end."
    redactor = Redactor([value])
    expected = redactor.redact(whole, "log").text
    if any(secret in expected for secret in secrets):
        return
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    stream = RedactedStream(redactor, "log")
    ends = [*cuts, len(whole)]
    pieces = [whole[a:b] for a, b in zip([0, *cuts], ends, strict=True)]
    out = "".join(stream.feed(piece) for piece in pieces) + stream.close()
    assert not any(secret in out for secret in [*secrets, value])


def test_ordinary_text_is_shown_as_it_comes() -> None:
    stream = RedactedStream(Redactor(["zK9-known-Value_42xyz"]))
    assert stream.feed("The quick brown fox ") == "The quick brown fox "
    assert stream.feed("jumps ov") == "jumps "
    assert stream.feed("er the dog.\n") == "over the dog.\n"
    assert stream.close() == ""


def test_no_text_makes_it_slow() -> None:
    """Doubling a text that provokes backtracking must not take four times the work."""
    redactor = Redactor()
    for piece in (
        "password=" * 9,
        "a" * 60,
        "://a:b",
        "eyJ" * 20,
        "key-key_",
        '\\"',
        "-----BEGIN ",
        "a|password|",
        'login("a", ',
        "key: {value ",
        "пароль ",
        "snmp-server ",
        "echo a | ",
        "a@b.c:",
    ):
        redactor.redact(piece * 3000)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("token = 'q9Zk4mT7xW2sR8vB1nC6'", "| q9Zk4mT7xW2sR8vB1nC6 |"),
        ("DB_PASSWORD=Kx9#mVq2Lp", 'connect("db", "Kx9#mVq2Lp")'),
        ("password: hunter2x9", "login hunter2x9 ok"),
    ],
)
def test_a_value_masked_once_is_masked_without_its_name(first: str, later: str) -> None:
    redactor = Redactor()
    assert redactor.redact(later, "model").text == later
    label = redactor.redact(first, "model").text
    again = redactor.redact(later, "model").text
    assert again != later
    assert label[label.index("[secret:") : label.index("]")] in again


def test_a_value_masked_once_is_masked_in_a_stream_of_pieces() -> None:
    redactor = Redactor()
    redactor.redact("token = 'q9Zk4mT7xW2sR8vB1nC6'", "model")
    stream = RedactedStream(redactor, "model")
    out = (
        "".join(map(stream.feed, ("it was q9Zk4m", "T7xW2sR8v", "B1nC6 yesterday.")))
        + stream.close()
    )
    assert out == "it was [secret:token#1] yesterday."


def test_ordinary_words_after_a_name_are_not_remembered() -> None:
    redactor = Redactor()
    redactor.redact("password: winterlamp", "model")
    assert redactor.redact("the winterlamp is on", "model").text == "the winterlamp is on"


@pytest.mark.parametrize(
    "line",
    [
        "to identify performance issues and identify stakeholders",
        "if (password !== form.password) return false;",
        "'Password': result,",
        'warningKey = "twoStepLoginPolicyWarningV2";',
        "private_key = PrivateKey::Ed25519(keypair);",
        'names = [\n    "AccessToken",\n    "H264Layer",\n    "Mp4Format",\n]',
        "token = f'explained_{uuid.uuid4()}'",
        "'secret_key': re.compile(r'[A-Za-z0-9+/]{40}'),",
        ":type credential: ~azure.core.credentials_async.AsyncTokenCredential",
        'copyPassword: "Copy password",',
    ],
)
def test_code_that_mentions_a_secret_is_left_alone(line: str) -> None:
    assert shown(line) == line
