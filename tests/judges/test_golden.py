"""What is sent to each vendor is what that vendor understands."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hermes.testing.wires.table import named_body, wire_of
from tests.judges.judge import Judge
from tests.judges.vendors import PLAIN, SPEAKS, VENDORS

FOLDER = Path(__file__).parents[1] / "providers" / "golden"
FILES = sorted(FOLDER.glob("*.json"))


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_vendor_understands_its_requests(path: Path, judge: Judge) -> None:
    for request in json.loads(path.read_text("utf-8")):
        place = urlsplit(request["url"]).path
        wire = wire_of(place)
        assert wire is not None
        known = [row for row in SPEAKS.get(path.stem, ()) if row in VENDORS[wire]]
        rows = known or [PLAIN[wire]]
        body = named_body(request["body"], place)
        assert judge.complaints(wire, body, among=rows) == [], request["url"]


def test_only_vendors_that_exist_are_listed() -> None:
    assert set(SPEAKS) <= {path.stem for path in FILES}
