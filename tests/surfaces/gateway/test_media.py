"""Files that answers name are sent when they may be, and files of people reach the model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.core.effects import Allow, Ask, Decision, Deny
from hermes.surfaces.gateway.media import MediaRules, extract_media, strip_tags
from hermes.surfaces.gateway.platform import InboundFile
from hermes.testing.request import Request
from hermes.testing.steps import Step, says
from tests.surfaces.gateway.fake import ABILITIES, gateway

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


def allow(_: str) -> Decision:
    return Allow()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "a picture.png"
    path.write_bytes(PNG)
    return path


@pytest.mark.parametrize("form", ['MEDIA:"{}"', "MEDIA:'{}'", "MEDIA:`{}`", "{}", " {} "])
def test_a_file_is_taken_out_of_the_text(picture: Path, form: str) -> None:
    text = f"Look:\n{form.format(picture)}\nNice?"
    found = extract_media(text, MediaRules(allow, ()))
    assert found.text == "Look:\nNice?"
    assert [file.kind for file in found.files] == ["image"]
    assert found.notes == ()


def test_presentations_are_asked_for_by_marks(tmp_path: Path) -> None:
    sound = tmp_path / "a.ogg"
    sound.write_bytes(b"x")
    found = extract_media(f"[[audio_as_voice]]\nMEDIA:{sound}", MediaRules(allow, ()))
    (file,) = found.files
    assert (file.kind, file.as_voice, found.text) == ("voice", True, "")
    found = extract_media(f"[[as_document]] MEDIA:{sound}.", MediaRules(allow, ()))
    assert found.files[0].as_document


@pytest.mark.parametrize(
    "text",
    [
        "```\nMEDIA:{0}\n```",
        "`MEDIA:{0}`",
        "> MEDIA:{0}",
        "~~~sh\n{0}\n~~~",
        "see `x` and `MEDIA:{0}`",
    ],
)
def test_tags_in_code_and_quotes_are_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    text = text.format(path)
    assert extract_media(text, MediaRules(allow, ())).text == text


def test_refused_and_missing_files_are_mentioned(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    (tmp_path / "link.png").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe.png")

    def decide(real: str) -> Decision:
        if not real.startswith(str(tmp_path)):
            return Ask(reason="outside", category="outside")
        return Deny(reason="no", category="secret")

    for name in ("a.png", "missing.png", "link.png", "pipe.png", "../../../../etc/passwd"):
        tag = f"MEDIA:{tmp_path / name}"
        found = extract_media(f"Here: {tag}", MediaRules(decide, ()))
        assert (found.files, found.text) == ((), f"Here: {tag}")
        assert len(found.notes) == 1
    large = extract_media(f"MEDIA:{path}", MediaRules(allow, (), max_bytes=3))
    assert "too large" in large.notes[0]


def test_files_below_configured_roots_may_be_sent(picture: Path) -> None:
    def outside(_: str) -> Decision:
        return Ask(reason="outside", category="outside")

    tag = f'MEDIA:"{picture}"'
    assert extract_media(tag, MediaRules(outside, ())).files == ()
    assert len(extract_media(tag, MediaRules(outside, (str(picture.parent),))).files) == 1


def test_a_tag_that_has_only_begun_is_held_back() -> None:
    assert strip_tags("Here it is:\nMEDI") == "Here it is:\n"
    assert strip_tags("Here it is:\nMEDIA:/tmp/a") == "Here it is:"
    assert strip_tags("The MEDIAN") == "The MEDIAN"


async def test_an_answer_sends_files_of_the_workspace_and_no_secrets(tmp_path: Path) -> None:
    work = tmp_path / "stage" / "work"

    def rule(_: Request) -> Step:
        return says(f"Two files.\nMEDIA:{work}/a.png\nMEDIA:{tmp_path}/stage/home/.env")

    async with gateway(tmp_path, rule, abilities=replace(ABILITIES, files=True)) as own:
        (work / "a.png").write_bytes(PNG)
        (tmp_path / "stage" / "home" / ".env").write_text("KEY=1")
        await own.say("send them", chat="c1")
        posts = [post for _, post in own.fake.messages.values()]
        assert "The file .env was not sent" in posts[0].text
        sent = [post.file.path for post in posts if post.file is not None]
        assert sent == [f"{work}/a.png"]


async def test_pictures_and_documents_reach_the_model(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        (tmp_path / "in.png").write_bytes(PNG)
        (tmp_path / "in.pdf").write_bytes(b"%PDF")
        picture = InboundFile(kind="image", name="in.png")
        paper = InboundFile(kind="file", name="in.pdf")
        own.fake.files = {
            "in.png": replace(picture, path=str(tmp_path / "in.png")),
            "in.pdf": replace(paper, path=str(tmp_path / "in.pdf")),
        }
        large = InboundFile(kind="video", name="big.mp4")
        await own.say("what is this?", files=(picture, paper, large))
        content = own.stage.server.requests[0].body["messages"][-1]["content"]
        kinds = [part["type"] for part in content]
        assert "image_url" in kinds
        text = str(content)
        assert "in.pdf" in text and str(tmp_path / "in.pdf") in text
        assert "big.mp4" in text and "The file is gone." in text
