"""The frontmatter of a skill as a value, and what is refused."""

from __future__ import annotations

import pytest

from hermes.core.errors import UsageError
from hermes.skills.skill import (
    CredentialFile,
    Skill,
    SkillConditions,
    SkillOption,
    SkillVariable,
    parse_skill,
    validate_skill,
)
from tests.skills.bench import skill_text

FULL = """\
---
name: deploy
description: >-
  Deploy the site
  with care
version: 2.1
license: MIT
compatibility: needs ssh
allowed-tools: terminal read_file
platforms: [Linux]
required_environment_variables:
  - name: SITE_TOKEN
    prompt: Token of the site
    required_for: uploads
  - OTHER
prerequisites:
  env_vars: [OLD_STYLE]
  commands: [rsync]
required_credential_files:
  - path: site/key.json
    description: the key
metadata:
  hermes:
    tags: [web, ops]
    category: ops
    related_skills: [backup]
    requires_toolsets: [terminal]
    fallback_for_tools: [site_deploy]
    config:
      - key: site.host
        description: where
        default: example.org
---
# Steps
1. Go.
"""


def test_all_fields_are_read() -> None:
    skill, body = parse_skill(FULL)
    assert body == "# Steps\n1. Go.\n"
    assert skill == Skill(
        name="deploy",
        description="Deploy the site with care",
        version="2.1",
        license="MIT",
        compatibility="needs ssh",
        allowed_tools=("terminal", "read_file"),
        platforms=("linux",),
        tags=("web", "ops"),
        category="ops",
        related=("backup",),
        conditions=SkillConditions(
            requires_toolsets=("terminal",), fallback_for_tools=("site_deploy",)
        ),
        options=(SkillOption(key="site.host", description="where", default="example.org"),),
        variables=(
            SkillVariable(name="SITE_TOKEN", prompt="Token of the site", required_for="uploads"),
            SkillVariable(name="OTHER"),
            SkillVariable(name="OLD_STYLE"),
        ),
        credential_files=(CredentialFile(path="site/key.json", description="the key"),),
        commands=("rsync",),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (skill_text("Bad Name"), "is not a valid skill name"),
        (skill_text("a" * 65), "is not a valid skill name"),
        (skill_text("..x"), "is not a valid skill name"),
        ("---\nname: x\n---\nbody", "description"),
        ("---\ndescription: x\n---\nbody", "name"),
        (skill_text("x", "d" * 1025), "1024"),
        (skill_text("x", more="required_environment_variables: [A-B]\n"), "A-B"),
        (skill_text("x", more="metadata:\n  hermes:\n    config: [{default: 1}]\n"), "key"),
    ],
)
def test_a_bad_skill_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_skill(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (skill_text("other"), "not 'mine'"),
        ("---\nname: mine\ndescription: x\n---\n\n", "no text"),
        (skill_text("mine", body="x" * 100_001), "at most 100000"),
    ],
)
def test_what_is_going_to_be_written_is_checked_more(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        validate_skill(text, "mine")
