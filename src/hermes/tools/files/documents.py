"""Extracts text from notebooks, word files and spreadsheets."""

from __future__ import annotations

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.errors import ToolError
from hermes.tools.files.kinds import suffix

_OUTPUT_CHARS = 2_000


def is_document(path: str) -> bool:
    return suffix(path) in (".ipynb", ".docx", ".xlsx", ".pdf")


def extract_text(path: str, data: bytes) -> str:
    """Return the text of a document; ToolError for a damaged one and for formats that need an
    external program."""
    match suffix(path):
        case ".ipynb":
            return _notebook(path, data)
        case ".docx" | ".xlsx":
            return _office(path, data)
        case _:
            # Most PDFs contain glyph numbers instead of letters; without their fonts that is noise.
            raise ToolError(
                f"{path} is a PDF. Get its text with terminal: pdftotext -layout FILE - "
                "(or a Python PDF package)."
            )


def _office(path: str, data: bytes) -> str:
    # Zip and XML are imported only by the few sessions that open such a file.
    from hermes.tools.files.office import sheet_text, word_text

    read = word_text if suffix(path) == ".docx" else sheet_text
    try:
        return "\n".join(read(data))
    except ToolError as error:
        raise ToolError(f"{path} cannot be read: {error}.") from error


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
        if text := _notebook_output(output).strip("\n"):
            more = "\n… (output cut)" if len(text) > _OUTPUT_CHARS else ""
            parts.append(f"[output]\n{text[:_OUTPUT_CHARS]}{more}")
    return "\n".join(parts)


def _notebook_output(output: JsonObject) -> str:
    if "ename" in output:
        return f"{output['ename']}: {output.get('evalue', '')}"
    data = output.get("data", {})
    pictures = "".join(f"({kind})" for kind in data if kind.startswith("image/"))
    return _join_source(output.get("text")) or _join_source(data.get("text/plain")) or pictures


def _join_source(source: JsonValue) -> str:
    return "".join(source) if isinstance(source, list) else str(source or "")
