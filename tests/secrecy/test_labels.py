"""A label stands for a secret and never takes its place."""

from __future__ import annotations

from hermes.core.events import ToolFinished
from hermes.core.secrets import LABEL
from hermes.policy.redact.spans import PLACEHOLDER
from hermes.testing.steps import calls, says
from tests.secrecy.conftest import Open

SECRET = "ghp_" + "aB3dE6gH9j" * 3 + "kLmN12"
TEXT = f"name: x\ntoken: {SECRET}\nport: 80\n"
LABELLED = "name: y\ntoken: [secret:github#1]\nport: 80\n"


async def results(here: Open, *steps: object) -> tuple[list[str], str]:
    run = await here([calls("read_file", path="conf.yaml"), *steps, says("done")])
    run.work.joinpath("conf.yaml").write_text(TEXT)
    shown = await run.say("change the name")
    found = [r.event.result.text for r in shown if isinstance(r.event, ToolFinished)]
    return found, run.work.joinpath("conf.yaml").read_text()


async def test_a_file_is_shown_with_labels_and_not_overwritten_with_them(here: Open) -> None:
    write = calls("write_file", path="conf.yaml", content=LABELLED)
    (read, wrote), text = await results(here, write)
    assert "[secret:github#1]" in read
    assert SECRET not in read
    assert wrote.startswith("conf.yaml was not written: [secret:github#1] in the new text")
    assert text == TEXT


async def test_a_patch_does_not_bring_a_label_in(here: Open) -> None:
    change = calls(
        "patch",
        path="conf.yaml",
        old_string="name: x",
        new_string="name: y\nold: [secret:github#1]",
    )
    (_, patched), text = await results(here, change)
    assert "was not written" in patched
    assert text == TEXT


async def test_other_lines_of_such_a_file_can_be_changed(here: Open) -> None:
    change = calls("patch", path="conf.yaml", old_string="name: x", new_string="name: y")
    _, text = await results(here, change)
    assert text == TEXT.replace("name: x", "name: y")


async def test_a_file_that_is_about_labels_can_be_written_again(here: Open) -> None:
    run = await here([calls("write_file", path="doc.md", content="[secret:x#1] and\n"), says("a")])
    run.work.joinpath("doc.md").write_text("[secret:x#1] or\n")
    await run.say("go")
    assert run.work.joinpath("doc.md").read_text() == "[secret:x#1] and\n"


def test_core_knows_every_label_that_the_redactor_makes() -> None:
    for text in ("[secret:github#12]", "[REDACTED PRIVATE KEY]", "[phone:0a1b]", "[id:9]"):
        assert PLACEHOLDER.fullmatch(text)
        assert LABEL.fullmatch(text)
