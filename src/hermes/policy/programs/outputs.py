"""Computes the output of programs where the text tells it: `output` of a record or step."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Callable

from hermes.policy.call import Call
from hermes.policy.shell.state import ANYTHING, NOTHING, SOME, UNKNOWN, Stream

FETCHED = Stream(origin="network")
_FIXED = {
    "": None,
    "nothing": NOTHING,
    "anything": ANYTHING,
    "some": Stream(text=SOME),
    "everything": Stream(text="**"),
    "file": Stream(origin="file"),
    "environment": Stream(origin="environment"),
    "endless": Stream(origin="endless"),
    "network": FETCHED,
}
_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "base64": lambda text: base64.b64decode(text + b"==="),
    "base32": base64.b32decode,
    "hex": binascii.unhexlify,
}


def make_output(kind: str, call: Call, words: list[str], inner: Stream | None) -> Stream | None:
    """`words` are the operands, `inner` is the output of the command that the program runs."""
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _DECODERS:
        return decode_stream(content_of(call, words), kind)
    if (encoding := kind.removesuffix("-input")) in _DECODERS:
        return decode_stream(call.stdin, encoding)
    match kind:
        case "inner":
            return inner
        case "same":
            return Stream(text=UNKNOWN, origin=call.stdin.origin)
        case "folder":
            return Stream(text=call.state.cwd)
        case "root":
            return Stream(text=call.paths.root)
        case "operands":
            return Stream(text="\n".join(words))
        case "entries":
            return Stream(text="\n".join(posixpath.join(word, "*") for word in words) or "*")
        case "paths":
            return Stream(text="\n".join(map(call.path, words)))
        case "dirname":
            text = posixpath.dirname(words[0]) or "." if words else UNKNOWN
            return Stream(text=UNKNOWN if UNKNOWN in text else text)
        case "basename":
            text = posixpath.basename(words[0].rstrip("/")) if words else UNKNOWN
            return Stream(text=text.removesuffix(words[1]) if len(words) > 1 else text)
    return _from_files(kind, content_of(call, words))


def _from_files(kind: str, found: Stream) -> Stream:
    match kind:
        case "content":
            return found
        case "part":
            return Stream(text=part_of(found.text), origin=found.origin)
        case "first":
            # The first lines of endless input have an end.
            origin = "" if found.origin == "endless" else found.origin
            return Stream(text=part_of(found.text), origin=origin)
        case "reversed" if found.known:
            text = "\n".join(line[::-1] for line in found.text.split("\n"))
            return Stream(text=text, origin=found.origin or "decoded")
    return Stream(text=UNKNOWN, origin=found.origin)


def part_of(text: str) -> str:
    # Some of all entries is an unknown entry.
    return re.sub(r"(?m)(^|/)\*\*?$", rf"\1{SOME}", text)


def content_of(call: Call, words: list[str]) -> Stream:
    """The content of the files among the words, or the input when there are none."""
    names = [each for each in words if not each.lstrip("+").isdigit()]
    if not names:
        return call.stdin
    call.reads(*names)
    streams = [_content(call, name) for name in names]
    origin = next((each.origin for each in streams if each.origin), "")
    return Stream(text="".join(each.text for each in streams), origin=origin)


def _content(call: Call, name: str) -> Stream:
    if name == "-":
        return call.stdin
    if name in ("/dev/zero", "/dev/urandom", "/dev/random"):
        return Stream(origin="endless")
    return call.state.files.get(call.path(name), Stream(origin="file"))


def decode_stream(stream: Stream, encoding: str) -> Stream:
    if not stream.known:
        return Stream(text=UNKNOWN, origin=stream.origin)
    try:
        plain = _DECODERS[encoding]("".join(stream.text.split()).encode())
    except (binascii.Error, ValueError):
        return Stream(text=UNKNOWN, origin=stream.origin)
    return Stream(text=plain.decode("utf-8", "replace"), origin=stream.origin or "decoded")
