"""A provider for tests and demonstrations: writes the prompt on a PNG without a server."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from hermes.images.client import ImageServerClient
from hermes.images.hosted import GeneratedImage, HostedProvider, HostedRequest, model_row
from hermes.images.provider import aload_source_image

SIZES = {"landscape": (384, 256), "square": (256, 256), "portrait": (256, 384)}


class LocalTestProvider(HostedProvider):
    NAME = "local-test"
    LABEL = "Local test"
    TAG = "a chequered image with the prompt on it, for tests"
    MODELS = (
        model_row("checker", "Checker", speed="instant", strengths="needs nothing", price="free"),
    )
    MOST_SOURCES = 4

    def is_available(self) -> bool:
        """Return whether the settings choose it."""
        return self.studio.wanted == self.name

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        sizes = [len((await aload_source_image(source))[0]) for source in request.sources]
        text = f"{request.prompt} + {len(sizes)} ({sum(sizes)} bytes)" if sizes else request.prompt
        return GeneratedImage(data=draw_png(text, *SIZES[request.aspect]))


# Five rows of three dots each; an octal digit is one row.
_GLYPHS = {
    "A": "25755", "B": "65656", "C": "34443", "D": "65556", "E": "74647", "F": "74644",
    "G": "34553", "H": "55755", "I": "72227", "J": "11152", "K": "55655", "L": "44447",
    "M": "57755", "N": "65555", "O": "25552", "P": "65644", "Q": "25573", "R": "65655",
    "S": "34216", "T": "72222", "U": "55557", "V": "55552", "W": "55775", "X": "55255",
    "Y": "55222", "Z": "71247", "0": "75557", "1": "26227", "2": "61247", "3": "61216",
    "4": "55711", "5": "74616", "6": "34757", "7": "71244", "8": "75757", "9": "75716",
    ".": "00002", ",": "00024", "!": "22202", "?": "61202", "-": "00700", "'": "22000",
    ":": "02020", "/": "11244", "(": "12221", ")": "42224", "+": "02720", "=": "07070",
}  # fmt: skip
_UNKNOWN = "75557"
_SQUARE = 16
_DOT = 3
_MARGIN = 12
_STEP_X, _STEP_Y = 4 * _DOT, 7 * _DOT
_LIGHT, _DARK, _INK = 236, 214, 24


def draw_png(text: str, width: int, height: int) -> bytes:
    """Draw a grey chequered PNG with as many words of the text as fit."""
    rows = [
        bytearray(_DARK if (x // _SQUARE + y // _SQUARE) % 2 else _LIGHT for x in range(width))
        for y in range(height)
    ]
    for x, y in _dots(text, width, height):
        for line in rows[y : y + _DOT]:
            line[x : x + _DOT] = bytes((_INK,)) * _DOT
    return _png(width, height, rows)


def _dots(text: str, width: int, height: int) -> Iterator[tuple[int, int]]:
    columns = (width - 2 * _MARGIN) // _STEP_X
    most = (height - 2 * _MARGIN) // _STEP_Y
    for number, line in enumerate(_lines(text.upper().split(), columns)[:most]):
        for column, sign in enumerate(line):
            glyph = _GLYPHS.get(sign, "" if sign == " " else _UNKNOWN)
            for down, row in enumerate(glyph):
                for right in range(3):
                    if int(row, 8) >> (2 - right) & 1:
                        x = _MARGIN + column * _STEP_X + right * _DOT
                        yield x, _MARGIN + number * _STEP_Y + down * _DOT


def _lines(words: list[str], columns: int) -> list[str]:
    lines = [""]
    for word in words:
        word = word[:columns]
        if lines[-1] and len(lines[-1]) + 1 + len(word) > columns:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _png(width: int, height: int, rows: list[bytearray]) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\x00" + row for row in rows), 9)
    chunks = ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(name + data))
    return struct.pack(">I", len(data)) + name + data + check
