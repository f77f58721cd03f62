"""Text in files: encodings, line ends, notebooks and documents."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.errors import ToolError
from hermes.tools.edits.text import Splice, apply_splices
from hermes.tools.files.access import suffix

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Characters that no text in a single-byte encoding has.
_CONTROL = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f]")


class TextFile(Value):
    """The characters of a file with its own line ends; `mark` is its byte order mark."""

    raw: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def text(self) -> str:
        """Return the text with "\\n" for every line end, for models and edits."""
        return self.raw.replace("\r\n", "\n")

    @property
    def newline(self) -> str:
        pairs = self.raw.count("\r\n")
        return "\r\n" if pairs * 2 > self.raw.count("\n") else "\n"

    def apply_splices(self, splices: Iterable[Splice]) -> TextFile:
        """Apply splices of `text`; everything outside them stays."""
        # Each pair in `raw` is one character longer than in `text`, from its newline on.
        dropped = [match.start() - n for n, match in enumerate(re.finditer("\r\n", self.raw))]
        moved = [
            Splice(
                start=splice.start + bisect_left(dropped, splice.start),
                end=splice.end + bisect_left(dropped, splice.end),
                text=splice.text.replace("\n", self.newline),
            )
            for splice in splices
        ]
        return TextFile(raw=apply_splices(self.raw, moved), encoding=self.encoding, mark=self.mark)

    def with_text(self, text: str) -> TextFile:
        """Return new text in the encoding and with the line ends of this file."""
        if self.mark:
            text = text.removeprefix("\ufeff")
        if "\n" in self.raw:
            text = text.replace("\r\n", "\n").replace("\n", self.newline)
        return TextFile(raw=text, encoding=self.encoding, mark=self.mark)

    def encode(self) -> bytes:
        try:
            return self.mark + self.raw.encode(self.encoding)
        except UnicodeEncodeError as error:
            letter = self.raw[error.start]
            raise ToolError(
                f"The file is in {self.encoding}, which has no {letter!r}. Nothing was changed; "
                "leave such letters out or convert the file to UTF-8 first."
            ) from error


def decode_text(data: bytes) -> TextFile | None:
    """Return the text in these bytes, or None. Bytes that are not Unicode are read as Windows-1252
    or Latin-1, so that they can be written back unchanged."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _in_encoding(data[len(mark) :], encoding, mark)
    if b"\0" in data:
        return None
    if (unicode := _in_encoding(data, "utf-8")) is not None:
        return unicode
    if _CONTROL.search(data):
        return None
    return _in_encoding(data, "cp1252") or _in_encoding(data, "latin-1")


def _in_encoding(data: bytes, encoding: str, mark: bytes = b"") -> TextFile | None:
    try:
        raw = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in raw else TextFile(raw=raw, encoding=encoding, mark=mark)


_OUTPUT_CHARS = 2_000


def is_document(path: str) -> bool:
    return suffix(path) in (".ipynb", ".docx", ".xlsx", ".pptx", ".pdf")


def extract_text(path: str, data: bytes) -> str:
    """Return the text of a document; raise ToolError for a damaged one and for formats that need an
    external program."""
    match suffix(path):
        case ".ipynb":
            return _notebook(path, data)
        case ".docx" | ".xlsx" | ".pptx" as kind:
            # Zip and XML are imported only by the few sessions that open such a file.
            from hermes.tools.files.office import sheet_text, slide_text, word_text

            readers = {".docx": word_text, ".xlsx": sheet_text, ".pptx": slide_text}
            try:
                return "\n".join(readers[kind](data))
            except ToolError as error:
                raise ToolError(f"{path} cannot be read: {error}.") from error
        case _:
            # Most PDFs contain glyph numbers instead of letters; without their fonts that is noise.
            raise ToolError(
                f"{path} is a PDF. Get its text with terminal: pdftotext -layout FILE - "
                "(or a Python PDF package)."
            )


def _notebook(path: str, data: bytes) -> str:
    try:
        cells = decode(dict[str, list[JsonObject] | JsonValue], data)["cells"]
        return "\n\n".join(_notebook_cell(number, cell) for number, cell in enumerate(cells, 1))
    except (DecodeError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{path} is not a readable notebook ({error}).") from error


def _notebook_cell(number: int, cell: JsonObject) -> str:
    parts = [
        f"[cell {number}: {cell.get('cell_type', 'unknown')}]",
        _join_source(cell.get("source")),
    ]
    for output in cell.get("outputs", ()):
        shown = output.get("data", {})
        text = _join_source(output.get("text")) or _join_source(shown.get("text/plain"))
        text = text or "".join(f"({kind})" for kind in shown if kind.startswith("image/"))
        if "ename" in output:
            text = f"{output['ename']}: {output.get('evalue', '')}"
        if text := text.strip("\n"):
            more = "\n… (output cut)" if len(text) > _OUTPUT_CHARS else ""
            parts.append(f"[output]\n{text[:_OUTPUT_CHARS]}{more}")
    return "\n".join(parts)


def _join_source(source: JsonValue) -> str:
    return "".join(source) if isinstance(source, list) else str(source or "")
