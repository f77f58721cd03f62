"""Secret values are taken out in every spelling, and nothing else changes its size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.json import decode, encode
from hermes.providers.normalization import ascii_json
from hermes.providers.recorded.masks import SecretMask

SECRET = 'pass "word" é 🙂 \\ 12'
LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="*×※𝄪")


def test_a_value_is_found_plain_in_json_and_in_an_address() -> None:
    mask = SecretMask([SECRET])
    written = encode({"text": f"it is {SECRET}."})
    forms = (SECRET.encode(), written, ascii_json(written), b"/x?q=pass%20%22word%22")
    for form in forms[:3]:
        clean, count = mask.data(form)
        assert count == 1
        assert b"word" not in clean and mask.occurs_in(form) and not mask.occurs_in(clean)


@given(st.text(LETTERS, min_size=8, max_size=30), st.text(LETTERS, max_size=30))
def test_masking_text_and_masking_its_json_come_to_the_same(secret: str, around: str) -> None:
    mask = SecretMask([secret])
    text = f"{around}{secret}{around}"
    clean = mask.text(text)
    assert secret not in clean
    assert len(clean.encode()) == len(text.encode())
    assert decode(str, mask.data(encode(text))[0]) == clean


def test_short_values_are_left_alone() -> None:
    assert SecretMask(["abc", ""]).data(b"abcabcabc") == (b"abcabcabc", 0)


@given(st.integers(1, 9), st.booleans())
def test_a_value_that_comes_a_few_letters_at_a_time_is_found(size: int, crlf: bool) -> None:
    secret = "sk-a-secret-of-some-length"
    text = f"Your key is {secret}, yes."
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events = [b"event: delta\ndata: " + encode({"d": [{"text": each}]}) for each in pieces]
    stream = b"\n\n".join((*events, b"data: [DONE]", b""))
    stream = stream.replace(b"\n", b"\r\n") if crlf else stream
    clean, count = SecretMask([secret]).stream(stream)
    assert count == 1
    blocks = clean.replace(b"\r\n", b"\n").split(b"\n\n")
    said = [decode(dict, block.partition(b"data: ")[2]) for block in blocks[: len(pieces)]]
    joined = "".join(each["d"][0]["text"] for each in said)
    assert joined == text.replace(secret, "*" * len(secret))
    assert clean.endswith(b"data: [DONE]\n\n")


def test_a_stream_without_a_value_keeps_its_bytes() -> None:
    stream = b': hi\r\n\r\ndata: {"a" : 1}\r\n\r\n'
    assert SecretMask(["sk-a-secret"]).stream(stream) == (stream, 0)
