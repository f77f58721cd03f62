"""Every vendor's requests, compared as a whole with a file that people can read."""

from __future__ import annotations

import pytest

from hermes.providers.model_catalogue import shipped_catalogue
from tests.providers.golden_requests import FOLDER, golden

WRITE = "run `.venv/bin/python -m tests.providers.golden_requests --write`"


@pytest.mark.parametrize("name", list(shipped_catalogue().vendors))
def test_a_vendor_is_asked_as_its_file_says(name: str) -> None:
    path = FOLDER / f"{name}.json"
    written = path.read_text("utf-8") if path.exists() else ""
    assert golden(shipped_catalogue().vendors[name]) == written, f"check the request, then {WRITE}"


def test_every_file_belongs_to_a_vendor() -> None:
    vendors = set(shipped_catalogue().vendors)
    assert {path.stem for path in FOLDER.iterdir()} == vendors, f"remove old files, then {WRITE}"
