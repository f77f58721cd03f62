"""Every skill that comes with Hermes is valid, short, and speaks only of tools that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes.app.skill_scan import scan_skill
from hermes.skills.files import read_tree
from hermes.skills.frontmatter import quickly, split
from hermes.skills.scan import CATEGORY_FILE
from hermes.skills.seeding import SHIPPED
from hermes.skills.skill import MAIN, READABLE, parse
from hermes.tools.catalogue import TARGETS
from hermes.tools.toolsets import TOOLSETS

SKILLS = sorted(path.parent for path in SHIPPED.rglob(MAIN))
MOST_WORDS = 900
LONGEST_DESCRIPTION = 60
# Words in code marks that look like tools: verbs and nouns joined by a line.
TOOL = re.compile(r"`([a-z]+(?:_[a-z]+)+)(?:\(|`)")


def text_of(skill: Path) -> str:
    return (skill / MAIN).read_text(encoding="utf-8")


def test_there_are_some() -> None:
    assert len(SKILLS) >= 3


@pytest.mark.parametrize("skill", SKILLS, ids=lambda path: path.name)
def test_a_shipped_skill_is_valid_and_in_its_place(skill: Path) -> None:
    parsed, _ = parse(text_of(skill))
    assert parsed.name == skill.name
    assert len(parsed.description) <= LONGEST_DESCRIPTION
    assert skill.parent.parent == SHIPPED
    assert (skill.parent / CATEGORY_FILE).is_file()
    # Read at the first start, so without the library.
    quickly(split(text_of(skill))[0])


@pytest.mark.parametrize("skill", SKILLS, ids=lambda path: path.name)
def test_a_shipped_skill_is_short_and_has_steps_and_a_verification(skill: Path) -> None:
    _, body = parse(text_of(skill))
    assert len(body.split()) <= MOST_WORDS
    sections = re.findall(r"^## (.+)$", body, re.MULTILINE)
    assert {"When to use", "Steps", "Verification"} <= set(sections)
    steps = body.partition("## Steps")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\d+\. ", steps, re.MULTILINE)) >= 3
    checks = body.partition("## Verification")[2]
    assert len(re.findall(r"^- ", checks, re.MULTILINE)) >= 2


@pytest.mark.parametrize("skill", SKILLS, ids=lambda path: path.name)
def test_a_shipped_skill_names_only_what_exists(skill: Path) -> None:
    text = text_of(skill)
    parsed, body = parse(text)
    conditions = parsed.conditions
    known = set(TARGETS)
    assert set(TOOL.findall(body)) <= known
    assert {*conditions.requires_tools} <= known
    assert {*conditions.requires_toolsets, *conditions.fallback_for_toolsets} <= set(TOOLSETS)
    siblings = {path.name for path in SKILLS}
    assert set(parsed.related) <= siblings
    folders = "|".join(READABLE)
    for path in re.findall(rf"`((?:{folders})/[\w./-]+)`", body):
        assert (skill / path).is_file(), path


@pytest.mark.parametrize("skill", SKILLS, ids=lambda path: path.name)
def test_a_shipped_skill_passes_the_scan(skill: Path) -> None:
    files = {name: data.decode() for name, data in read_tree(skill).items() if name != MAIN}
    found = scan_skill(text_of(skill), files)
    assert (found.verdict, found.findings) == ("safe", ())
