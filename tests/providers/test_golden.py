"""Every vendor's requests, compared as a whole with a file that people can read."""

from __future__ import annotations

import pytest

from hermes.providers.model_catalogue import shipped_catalogue
from tests.providers.golden_requests import FOLDER, golden


@pytest.mark.parametrize("name", list(shipped_catalogue().vendors))
def test_a_vendor_is_asked_as_its_file_says(name: str) -> None:
    assert golden(shipped_catalogue().vendors[name]) == (FOLDER / f"{name}.json").read_text("utf-8")


def test_every_file_belongs_to_a_vendor() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(shipped_catalogue().vendors)
