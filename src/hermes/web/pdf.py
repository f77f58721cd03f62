"""Extracts the text of PDF files in a child process with limits: parsers of PDF files are large,
and the files come from anywhere."""

from __future__ import annotations

import importlib.util
import resource
import shutil
import subprocess
import sys

from hermes.config.extras import need_extra
from hermes.core.errors import ToolError

SECONDS = 60
MEMORY_BYTES = 2 * 1024 * 1024 * 1024
MOST_BYTES = 20_000_000
# Runs without the modules of Hermes. The form feed separates pages, as in the output of pdftotext.
_CHILD = """\
import io, sys
from pypdf import PdfReader
for page in PdfReader(io.BytesIO(sys.stdin.buffer.read())).pages:
    sys.stdout.buffer.write(page.extract_text().encode("utf-8", "replace") + b"\\f")
"""


def pdf_text(data: bytes) -> str:
    """Return the text with a line `[page N]` before each page. Raise ToolError for a damaged file
    or if no parser is installed."""
    pages = _run(_parser(), data).split("\f")
    if pages and not pages[-1].strip():
        pages.pop()
    if not any(page.strip() for page in pages):
        raise ToolError("the PDF has no text; it may consist of scanned images.")
    return "\n\n".join(f"[page {number}]\n{page.strip()}" for number, page in enumerate(pages, 1))


def _parser() -> list[str]:
    if program := shutil.which("pdftotext"):
        return [program, "-q", "-enc", "UTF-8", "-", "-"]
    if importlib.util.find_spec("pypdf") is not None:
        return [sys.executable, "-I", "-c", _CHILD]
    raise ToolError(need_extra("PDF files", "pdf"))


def _run(command: list[str], data: bytes) -> str:
    try:
        done = subprocess.run(
            command,
            input=data,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            preexec_fn=_limit,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"the PDF took longer than {SECONDS} s to read.") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ToolError(f"the PDF cannot be read ({lines[-1][:200] if lines else 'damaged'}).")
    return done.stdout[:MOST_BYTES].decode("utf-8", "replace")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
