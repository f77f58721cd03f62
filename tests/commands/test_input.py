"""Pictures are checked and copied before a message refers to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.commands.input import attach_image
from hermes.core.errors import UsageError
from tests.commands.conftest import Talk

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


async def test_a_picture_is_kept_under_its_content(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    image = await attach_image(talk.app.context.home, tmp_path / "a.png")
    (tmp_path / "a.png").unlink()
    assert image.media_type == "image/png"
    (kept,) = (talk.app.context.home.cache / "images").iterdir()
    assert (image.file, kept.read_bytes()) == (str(kept), PNG)


async def test_a_text_is_no_picture(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("hello")
    with pytest.raises(UsageError, match="not an image"):
        await attach_image(talk.app.context.home, tmp_path / "a.png")
