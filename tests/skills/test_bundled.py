"""Every skill that comes with Hermes is valid, short, and speaks only of tools that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config.extension_settings import SkillSettings
from hermes.skills.discovery import CATEGORY_FILE, SkillEnvironment, SkillRoot, SkillScanner
from hermes.skills.files import read_tree
from hermes.skills.hub.lock import scan_files
from hermes.skills.seeding import BUNDLED_SKILLS, OPTIONAL
from hermes.skills.session_index import index_text
from hermes.skills.skill import COMPILED, MAIN, READABLE, parse_skill
from hermes.tools.catalogue import declarations
from hermes.tools.toolbox import toolsets_by_name
from scripts.generate_frontmatter import compiled

BUNDLED = sorted(path.parent for path in BUNDLED_SKILLS.rglob(MAIN))
ON_REQUEST = sorted(path.parent for path in OPTIONAL.rglob(MAIN))
SKILLS = [*BUNDLED, *ON_REQUEST]
PAGE = Path(__file__).parents[2] / "docs" / "bundled-skills.md"
MOST_WORDS = 1000
LONGEST_LINE = 110
LINES = range(40, 141)
LONGEST_DESCRIPTION = 60
ROOM_FOR_ONE = 60
# Words in code marks that look like tools: verbs and nouns joined by a line.
TOOL = re.compile(r"`([a-z]+(?:_[a-z]+)+)(?:\(|`)")

every_skill = pytest.mark.parametrize("skill", SKILLS, ids=lambda path: path.name)


def text_of(skill: Path) -> str:
    return (skill / MAIN).read_text(encoding="utf-8")


def section(body: str, name: str) -> str:
    return body.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def test_there_are_skills_for_many_kinds_of_work() -> None:
    assert len(BUNDLED) >= 24
    assert len({path.parent.name for path in BUNDLED}) >= 10
    assert len({path.name for path in SKILLS}) == len(SKILLS)


def test_the_list_of_all_of_them_fits_into_the_prompt_with_room_for_ones_own(
    tmp_path: Path,
) -> None:
    entries = (
        SkillScanner((SkillRoot(path=str(BUNDLED_SKILLS)),), tmp_path / "cache.json").scan().entries
    )
    here = SkillEnvironment(tools=tuple(declarations()), toolsets=tuple(toolsets_by_name()))
    text = index_text(entries, here, most_chars=SkillSettings().index_max_chars - ROOM_FOR_ONE)
    assert [entry.name for entry in entries if f"\n- {entry.name}: " not in text] == []


@every_skill
def test_a_shipped_skill_is_valid_and_in_its_place(skill: Path) -> None:
    parsed, _ = parse_skill(text_of(skill))
    assert parsed.name == skill.name
    assert len(parsed.description) <= LONGEST_DESCRIPTION
    assert (parsed.version, parsed.license) == ("1.0.0", "MIT")
    assert parsed.tags
    assert skill.parent.parent in (BUNDLED_SKILLS, OPTIONAL)
    assert (skill.parent / CATEGORY_FILE).is_file()


def test_the_compiled_frontmatter_is_current() -> None:
    assert COMPILED.read_text(encoding="utf-8") == compiled(), "run `make generate`"


@every_skill
def test_a_shipped_skill_is_short_and_has_steps_and_a_verification(skill: Path) -> None:
    _, body = parse_skill(text_of(skill))
    assert len(body.split()) <= MOST_WORDS
    assert len(body.strip().split("\n")) in LINES
    assert max(map(len, prose(body))) <= LONGEST_LINE
    sections = re.findall(r"^## (.+)$", body, re.MULTILINE)
    assert {"When to use", "Inputs", "Steps", "Pitfalls", "Verification"} <= set(sections)
    assert sections[-1] == "Verification"
    numbers = [int(each) for each in re.findall(r"^(\d+)\. ", section(body, "Steps"), re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 3
    assert len(re.findall(r"^- ", section(body, "Verification"), re.MULTILINE)) >= 2


def prose(body: str) -> Iterator[str]:
    """The lines outside of code."""
    inside = False
    for line in body.split("\n"):
        if line.strip().startswith("```"):
            inside = not inside
        elif not inside:
            yield line


@every_skill
def test_a_shipped_skill_names_only_what_exists(skill: Path) -> None:
    parsed, body = parse_skill(text_of(skill))
    conditions = parsed.conditions
    known = set(declarations())
    assert set(TOOL.findall(body)) <= known
    assert {*conditions.requires_tools} <= known
    assert {*conditions.requires_toolsets, *conditions.fallback_for_toolsets} <= set(
        toolsets_by_name()
    )
    names = {path.name for path in SKILLS}
    assert set(parsed.related) <= names - {skill.name}
    assert set(re.findall(r"skill\s+([a-z]+(?:-[a-z]+)+)", body)) <= names
    folders = "|".join(READABLE)
    mentioned = set(re.findall(rf"(?:`|HERMES_SKILL_DIR}}/)((?:{folders})/[\w./-]+)", body))
    assert mentioned == {name for name in read_tree(skill) if name != MAIN}


@every_skill
def test_a_skill_with_scripts_says_that_it_needs_python(skill: Path) -> None:
    parsed, body = parse_skill(text_of(skill))
    if "HERMES_SKILL_DIR" in body:
        assert "python3" in parsed.commands
        assert "terminal" in parsed.conditions.requires_tools


@every_skill
def test_a_shipped_skill_passes_the_scan(skill: Path) -> None:
    found = scan_files(read_tree(skill))
    # A skill about money or keys has words in it that the scan notes, and no more than notes.
    worse = [finding for finding in found.findings if finding.severity != "low"]
    assert (found.verdict, worse) == ("safe", [])


def rows(folder: Path, skills: list[Path]) -> str:
    """The table of the page: a row for each skill, by category."""
    lines = ["| category | skill | for |", "|---|---|---|"]
    for skill in skills:
        parsed, _ = parse_skill(text_of(skill))
        category = skill.relative_to(folder).parts[0]
        lines.append(f"| {category} | `{parsed.name}` | {parsed.description} |")
    return "\n".join(lines)


def test_the_page_lists_them_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rows(BUNDLED_SKILLS, BUNDLED) in page
    assert rows(OPTIONAL, ON_REQUEST) in page
