"""Extracts text from Word files, spreadsheets and slides with the standard library."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from hermes.core.errors import ToolError

# A few bytes of zip can expand to gigabytes; no ordinary document part is larger than this.
MAX_PART_BYTES = 64 * 1024 * 1024
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SLIDE = re.compile(r"ppt/slides/slide(\d+)\.xml")
_LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_DAY_ZERO = datetime(1899, 12, 30)  # noqa: DTZ001 - sheets know no time zones
_DATE_FORMATS = {*range(14, 23), *range(45, 48)}
_NOT_FORMAT = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')


class DocumentParts:
    """The XML parts of a zipped document."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except zipfile.BadZipFile as error:
            raise ToolError("it is not a zipped document") from error

    @property
    def names(self) -> list[str]:
        return self._zip.namelist()

    def root(self, name: str) -> Element:
        """Return the root element of a part; an empty one when the part is missing."""
        try:
            with self._zip.open(name) as part:
                data = part.read(MAX_PART_BYTES + 1)
        except KeyError:
            return Element("missing")
        except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
            raise ToolError(f"its part {name} is damaged or encrypted") from error
        if len(data) > MAX_PART_BYTES:
            raise ToolError(f"its part {name} is larger than {MAX_PART_BYTES:,} bytes")
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
            raise ToolError(f"its part {name} declares entities, which no document needs")
        try:
            return ElementTree.fromstring(data)
        except ElementTree.ParseError as error:
            raise ToolError(f"its part {name} is not XML") from error


def word_text(data: bytes) -> Iterator[str]:
    """Return paragraphs and table rows in order."""
    body = DocumentParts(data).root("word/document.xml").find(f"{_W}body")
    if body is None:
        raise ToolError("it has no document text")
    yield from _blocks(body)


def _blocks(parent: Element) -> Iterator[str]:
    for child in parent:
        if child.tag == f"{_W}p":
            yield _paragraph(child)
        elif child.tag == f"{_W}tbl":
            for row in child.iter(f"{_W}tr"):
                yield " | ".join(" ".join(_blocks(cell)) for cell in row.findall(f"{_W}tc"))
        elif child.tag in (f"{_W}sdt", f"{_W}sdtContent"):
            yield from _blocks(child)


def _paragraph(paragraph: Element) -> str:
    pieces: list[str] = []
    for node in paragraph.iter():
        if node.tag == f"{_W}t":
            pieces.append(node.text or "")
        elif node.tag == f"{_W}tab":
            pieces.append("\t")
        elif node.tag in (f"{_W}br", f"{_W}cr"):
            pieces.append("\n")
    return "".join(pieces)


def slide_text(data: bytes) -> Iterator[str]:
    """Return each slide under its number, one line per paragraph."""
    parts = DocumentParts(data)
    numbers = sorted(int(match[1]) for name in parts.names if (match := _SLIDE.fullmatch(name)))
    for number in numbers:
        yield f"[slide {number}]"
        for paragraph in parts.root(f"ppt/slides/slide{number}.xml").iter(f"{_A}p"):
            text = "".join(node.text or "" for node in paragraph.iter(f"{_A}t"))
            if text.strip():
                yield text


def sheet_text(data: bytes) -> Iterator[str]:
    """Return each sheet under its name, one line per row, cells separated by tabs."""
    parts = DocumentParts(data)
    links = {
        link.get("Id", ""): posixpath.normpath(posixpath.join("xl", link.get("Target", "")))
        for link in parts.root("xl/_rels/workbook.xml.rels")
    }
    strings = [_string(item) for item in parts.root("xl/sharedStrings.xml").findall(f"{_S}si")]
    dates = _date_styles(parts.root("xl/styles.xml"))
    for sheet in parts.root("xl/workbook.xml").iter(f"{_S}sheet"):
        yield f"[sheet: {sheet.get('name', '')}]"
        target = links.get(sheet.get(_LINK, ""), "").lstrip("/")
        for row in parts.root(target).iter(f"{_S}row"):
            yield "\t".join(_cells(row, strings, dates))


def _cells(row: Element, strings: list[str], dates: set[int]) -> Iterator[str]:
    at = 0
    for cell in row.findall(f"{_S}c"):
        column = _column(cell.get("r", ""))
        while at < column:
            yield ""
            at += 1
        yield _cell(cell, strings, dates)
        at += 1


def _column(reference: str) -> int:
    """Return the column of a cell: "C7" is column 2; a missing reference means the next one."""
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = number * 26 + ord(letter.upper()) - 64
    return number - 1


def _cell(cell: Element, strings: list[str], dates: set[int]) -> str:
    kind, value = cell.get("t", "n"), cell.findtext(f"{_S}v", "")
    if kind == "s" and value.isdigit() and int(value) < len(strings):
        return strings[int(value)]
    if kind == "inlineStr":
        inline = cell.find(f"{_S}is")
        return _string(inline) if inline is not None else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    if kind == "n" and value and int(cell.get("s", "0")) in dates:
        return _date(value)
    return value


def _string(item: Element) -> str:
    return "".join(node.text or "" for node in item.iter(f"{_S}t"))


def _date_styles(styles: Element) -> set[int]:
    """Return the cell styles whose numbers are days since 1899."""
    custom = {
        int(each.get("numFmtId", "0"))
        for each in styles.iter(f"{_S}numFmt")
        if re.search("[ymdhs]", _NOT_FORMAT.sub("", each.get("formatCode", "")).lower())
    }
    formats = styles.find(f"{_S}cellXfs")
    if formats is None:
        return set()
    return {
        index
        for index, each in enumerate(formats)
        if int(each.get("numFmtId", "0")) in _DATE_FORMATS | custom
    }


def _date(value: str) -> str:
    try:
        moment = _DAY_ZERO + timedelta(days=float(value))
    except (ValueError, OverflowError):
        return value
    moment = (moment + timedelta(milliseconds=500)).replace(microsecond=0)
    if float(value).is_integer():
        return moment.date().isoformat()
    return moment.time().isoformat() if float(value) < 1 else moment.isoformat(sep=" ")
