"""The framing of HTTP/1.1: any cutting of the bytes gives the same content."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.net.http11 import ProtocolError, ResponseBody, parse_head

PIECES = st.lists(st.binary(min_size=1, max_size=40), max_size=8)


def chunked(pieces: list[bytes], *, trailer: bytes = b"") -> bytes:
    whole = b"".join(b"%x;note=1\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return whole + b"0\r\n" + trailer + b"\r\n"


def fed(body: ResponseBody, data: bytes, cuts: list[int]) -> bytes:
    found, at = b"", 0
    for cut in cuts:
        found += body.feed(data[at : at + cut])
        at += cut
    return found + body.feed(data[at:])


@given(PIECES, st.lists(st.integers(1, 9), max_size=60), st.booleans())
def test_a_chunked_body_is_the_same_however_it_arrives(
    pieces: list[bytes], cuts: list[int], has_trailer: bool
) -> None:
    body = ResponseBody(200, {"transfer-encoding": "chunked"})
    data = chunked(pieces, trailer=b"x-end: 1\r\n" if has_trailer else b"")
    assert fed(body, data, cuts) == b"".join(pieces)
    assert body.done


@given(st.binary(max_size=100), st.lists(st.integers(1, 9), max_size=30))
def test_a_body_with_a_length_ends_there(content: bytes, cuts: list[int]) -> None:
    body = ResponseBody(200, {"content-length": str(len(content))})
    assert fed(body, content, cuts) == content
    assert body.done


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    body = ResponseBody(200, {})
    assert (body.feed(b"abc"), body.done, body.ends_with_connection) == (b"abc", False, True)


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body(status: int) -> None:
    assert ResponseBody(status, {"content-length": "10"}).done


def test_the_head_is_read_with_names_in_small_letters() -> None:
    status, headers = parse_head(b"HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\nX-A: 1\r\nx-a: 2")
    assert (status, headers) == (429, {"retry-after": "3", "x-a": "1, 2"})


@pytest.mark.parametrize(
    "head", [b"", b"SSH-2.0-OpenSSH", b"HTTP/2 200", b"HTTP/1.1 xx", b"HTTP/1.1 200 OK\r\nbad"]
)
def test_what_is_not_http_is_refused(head: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_head(head)


@pytest.mark.parametrize("size", [b"zz", b"-1", b""])
def test_a_chunk_of_no_size_is_refused(size: bytes) -> None:
    body = ResponseBody(200, {"transfer-encoding": "chunked"})
    with pytest.raises(ProtocolError):
        body.feed(size + b"\r\nabc\r\n")


@given(st.binary(max_size=200))
def test_random_bytes_never_do_worse_than_a_protocol_error(data: bytes) -> None:
    body = ResponseBody(200, {"transfer-encoding": "chunked"})
    with contextlib.suppress(ProtocolError):
        body.feed(data)
