from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from hermes.core.messages import joined_text
from hermes.core.tools import ToolOutput
from hermes.tools.files.read import read_file

if TYPE_CHECKING:
    from tests.tools.conftest import ToolRunner

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LINKS = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def said(output: ToolOutput) -> str:
    return joined_text(output.parts)


def zipped(parts: dict[str, str]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return whole.getvalue()


async def test_a_notebook_is_shown_as_cells_with_outputs(runner: ToolRunner) -> None:
    book = {
        "cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "words"]},
            {
                "cell_type": "code",
                "source": "1 + 1",
                "outputs": [
                    {"output_type": "stream", "text": ["printed\n"]},
                    {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                    {"output_type": "display_data", "data": {"image/png": "iVBO"}},
                    {"output_type": "error", "ename": "ValueError", "evalue": "bad"},
                ],
            },
        ]
    }
    runner.put("a.ipynb", json.dumps(book))
    output = await runner.run(read_file, path="a.ipynb")
    assert [row.partition("|")[2] for row in said(output).splitlines()[:-1]] == [
        "[cell 1: markdown]",
        "# Title",
        "words",
        "",
        "[cell 2: code]",
        "1 + 1",
        *("[output]", "printed", "[output]", "2"),
        *("[output]", "(image/png)", "[output]", "ValueError: bad"),
    ]
    assert said(output).endswith("[text extracted from the document]")


async def test_a_word_file_is_shown_as_paragraphs_and_table_rows(runner: ToolRunner) -> None:
    body = """<w:p><w:r><w:t>Hello</w:t></w:r><w:r><w:tab/><w:t>world</w:t></w:r></w:p>
      <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc>
      <w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
      <w:p><w:r><w:t>one</w:t><w:br/><w:t>two</w:t></w:r></w:p>"""
    document = f"<w:document {WORD}><w:body>{body}</w:body></w:document>"
    runner.put("a.docx", zipped({"word/document.xml": document}))
    output = await runner.run(read_file, path="a.docx")
    assert said(output).splitlines()[:4] == ["1|Hello\tworld", "2|a | b", "3|one", "4|two"]


def sheet_file() -> bytes:
    rows = """<row r="1"><c r="A1" t="s"><v>0</v></c>
      <c r="C1" t="inlineStr"><is><t>in</t></is></c></row>
      <row r="2"><c r="A2"><v>1.5</v></c><c r="B2" s="1"><v>45291</v></c>
      <c r="C2" s="2"><v>45291.75</v></c><c r="D2" t="b"><v>1</v></c></row>"""
    return zipped(
        {
            "xl/workbook.xml": f'<workbook {SHEET} {LINKS}><sheets><sheet name="Data" sheetId="1"'
            ' r:id="rId1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": '<Relationships xmlns="x"><Relationship Id="rId1"'
            ' Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/sharedStrings.xml": f"<sst {SHEET}><si><r><t>sha</t></r><r><t>red</t></r></si>"
            "</sst>",
            "xl/styles.xml": f'<styleSheet {SHEET}><numFmts><numFmt numFmtId="164"'
            ' formatCode="yyyy\\-mm\\-dd hh:mm"/></numFmts><cellXfs><xf numFmtId="0"/>'
            '<xf numFmtId="14"/><xf numFmtId="164"/></cellXfs></styleSheet>',
            "xl/worksheets/sheet1.xml": f"<worksheet {SHEET}><sheetData>{rows}</sheetData>"
            "</worksheet>",
        }
    )


async def test_a_spreadsheet_is_shown_as_rows_with_real_dates(runner: ToolRunner) -> None:
    runner.put("a.xlsx", sheet_file())
    output = await runner.run(read_file, path="a.xlsx")
    assert said(output).splitlines()[:3] == [
        "1|[sheet: Data]",
        "2|shared\t\tin",
        "3|1.5\t2023-12-31\t2023-12-31 18:00:00\tTRUE",
    ]


async def test_a_pdf_names_the_program_that_reads_it(runner: ToolRunner) -> None:
    runner.put("a.pdf", b"%PDF-1.7\n\x00\x01")
    output = await runner.run(read_file, path="a.pdf")
    assert output.failed
    assert "pdftotext" in said(output)


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa">]><w:document/>'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", b"not a zip"),
        ("b.docx", zipped({"other.xml": "<a/>"})),
        ("c.docx", zipped({"word/document.xml": "<broken"})),
        ("d.docx", zipped({"word/document.xml": BOMB})),
        ("e.docx", zipped({"word/document.xml": " " * (65 * 1024 * 1024)})),
        ("f.ipynb", b"[1, 2]"),
        ("g.ipynb", b'{"cells": 3}'),
        ("h.ipynb", b'{"cells": ["x"]}'),
    ],
)
async def test_a_broken_or_hostile_document_is_an_error(
    runner: ToolRunner, name: str, data: bytes
) -> None:
    runner.put(name, data)
    output = await runner.run(read_file, path=name)
    assert output.failed
    assert name in said(output)
