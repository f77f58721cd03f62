from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.edits.text import Splice
from hermes.tools.files.access import image_type, is_device, suffix
from hermes.tools.files.textfile import TextFile, decode_text

texts = st.text(st.sampled_from("ab\r\nü"), max_size=40)


@settings(deadline=None)
@given(text=texts, encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
def test_text_that_is_read_and_written_is_the_same_bytes(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    found = decode_text(data)
    assert found is not None
    assert found.encode() == data
    assert found.text == text.replace("\r\n", "\n")


@settings(deadline=None)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_binary_or_come_back_as_they_were(data: bytes) -> None:
    found = decode_text(data)
    assert found is None or found.encode() == data


@settings(deadline=None)
@given(raw=texts, cut=st.tuples(st.integers(0, 40), st.integers(0, 40)), new=st.text("x\n"))
def test_an_edit_keeps_every_letter_and_line_end_outside_of_it(
    raw: str, cut: tuple[int, int], new: str
) -> None:
    file = TextFile(raw=raw)
    start, end = sorted(min(place, len(file.text)) for place in cut)
    letters = re.findall(r"\r\n|[\s\S]", raw)
    written = [*letters[:start], new.replace("\n", file.newline), *letters[end:]]
    assert file.apply_splices((Splice(start=start, end=end, text=new),)).raw == "".join(written)


@pytest.mark.parametrize(
    "data", [b"a\0b", b"\xff\xfe\x00\x00a\0\0\0", b"\x93\x01\x02", b"\x7fELF\0"]
)
def test_binary_is_not_text(data: bytes) -> None:
    assert decode_text(data) is None


def test_pictures_are_known_by_their_first_bytes() -> None:
    assert image_type(b"\xff\xd8\xff\xe0abc") == "image/jpeg"
    assert image_type(b"RIFF\x01\x02\x03\x04WEBPVP8") == "image/webp"
    assert image_type(b"GIF89a") == "image/gif"
    assert image_type(b"BMW is a car") == ""


def test_devices_are_known_by_their_paths() -> None:
    assert is_device("/dev/urandom")
    assert is_device("/proc/12/fd/1")
    assert not is_device("/dev/shm/a.txt")
    assert not is_device("/proc/cpuinfo")
    assert not is_device("/home/dev/zero")


def test_a_suffix_needs_a_name_before_it() -> None:
    assert (suffix("/a.b/c.JSON"), suffix(".json"), suffix("a.b/c")) == (".json", "", "")
