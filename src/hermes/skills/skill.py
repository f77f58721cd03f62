"""Parses and validates SKILL.md files."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from hermes.codec.json import DecodeError, convert, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import UsageError

FENCE = "---"
DEEPEST = 50
# The parsed frontmatter of the bundled skills, by digest, written by `make generate`. The first
# start in a home reads all of them: 12 ms to load the YAML library and 31 ms to parse 27 skills.
# Later starts use the cache of `scan`.
COMPILED = Path(__file__).with_name("frontmatter.json")


def split_frontmatter(text: str) -> tuple[str, str]:
    """Return the frontmatter and the body. Raises UsageError when there is no frontmatter."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise UsageError("The skill must begin with a line `---` and its frontmatter.")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    raise UsageError("The frontmatter has no end; put a line `---` after it.")


def read_frontmatter(block: str) -> JsonObject:
    """Return the frontmatter as a JSON object. Raises UsageError with the invalid line."""
    return _load_compiled().get(digest(block)) or parse_yaml(block)


def digest(block: str) -> str:
    return hashlib.sha256(block.encode()).hexdigest()[:16]


@cache
def _load_compiled() -> dict[str, JsonObject]:
    return decode(dict[str, JsonObject], COMPILED.read_bytes())


def parse_yaml(block: str) -> JsonObject:
    # Slow to load, and only needed when a skill changes.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(block)
        if data is None:
            return {}
        if not isinstance(data, dict):
            raise UsageError("The frontmatter must consist of `key: value` lines.")
        return decode(JsonObject, encode(_to_json(data, 0)))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 2} of the file)" if mark is not None else ""
        what = str(error.problem or "not YAML").partition("\n")[0]
        raise UsageError(f"The frontmatter is not valid: {what}{where}.") from error
    except (YAMLError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        what = str(error).partition("\n")[0] or type(error).__name__
        raise UsageError(f"The frontmatter is not valid: {what}.") from error


def _to_json(value: Any, depth: int) -> Any:
    """Convert YAML values without a JSON type, such as dates, to text."""
    if depth > DEEPEST:
        raise UsageError(f"The frontmatter is nested deeper than {DEEPEST} levels.")
    if isinstance(value, dict):
        return {str(key): _to_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_to_json(item, depth + 1) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


MAIN = "SKILL.md"
SUPPORT = ("references", "templates", "scripts", "assets")
READABLE = (*SUPPORT, "examples")
MOST_CHARS = 100_000
MOST_FILE_BYTES = 1_048_576
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SkillVariable(Value):
    """An environment variable that a skill needs."""

    name: str
    prompt: str = ""
    help: str = ""
    required_for: str = ""
    optional: bool = False


class CredentialFile(Value):
    """A file in the home, by relative path."""

    path: str
    description: str = ""


class SkillOption(Value):
    """A setting of a skill, stored at `skills.config.<key>`."""

    key: str
    description: str = ""
    default: Any = None
    prompt: str = ""


class SkillConditions(Value):
    """Conditions for listing a skill: all required tools exist and none of those it is a
    fallback for."""

    requires_toolsets: tuple[str, ...] = ()
    requires_tools: tuple[str, ...] = ()
    fallback_for_toolsets: tuple[str, ...] = ()
    fallback_for_tools: tuple[str, ...] = ()


class Skill(Value):
    """The frontmatter of a SKILL.md."""

    name: str
    description: str
    version: str = ""
    author: str = ""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    # macos, linux or windows; empty means all.
    platforms: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: str = ""
    related: tuple[str, ...] = ()
    conditions: SkillConditions = SkillConditions()
    options: tuple[SkillOption, ...] = ()
    variables: tuple[SkillVariable, ...] = ()
    credential_files: tuple[CredentialFile, ...] = ()
    commands: tuple[str, ...] = ()

    def runs_on(self, system: str) -> bool:
        """Return whether the skill supports a system: linux, macos or windows."""
        return not self.platforms or system in self.platforms


def parse_skill(text: str) -> tuple[Skill, str]:
    """Parse a SKILL.md into skill and body. Raises UsageError."""
    block, body = split_frontmatter(text)
    return from_fields(read_frontmatter(block)), body


def validate_skill(text: str, name: str) -> Skill:
    """Validate a SKILL.md for the skill of this name. Raises UsageError."""
    check_name(name)
    if len(text) > MOST_CHARS:
        raise UsageError(
            f"A SKILL.md may have at most {MOST_CHARS} characters; this one has {len(text)}."
        )
    skill, body = parse_skill(text)
    if skill.name != name:
        raise UsageError(f"The frontmatter names the skill {skill.name!r}, not {name!r}.")
    if not body.strip():
        raise UsageError("The skill has no text after its frontmatter; add instructions.")
    return skill


def check_name(name: str) -> str:
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(
            f"{name[:80]!r} is not a valid skill name: use at most {LONGEST_NAME} of a-z, 0-9, "
            "'.', '_' and '-', without '..', starting with a letter or digit."
        )
    return name


def skill_path(name: str, category: str) -> str:
    """Return the skill's folder below the skills folder. Raises UsageError."""
    parts = [*(category.split("/") if category else ()), name]
    return "/".join(check_name(part) for part in parts)


def from_fields(fields: JsonObject) -> Skill:
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not name:
        raise UsageError("The frontmatter needs `name: …`.")
    if not isinstance(description, str) or not description.strip():
        raise UsageError("The frontmatter needs `description: …`.")
    check_name(name)
    if len(description) > LONGEST_DESCRIPTION:
        raise UsageError(
            f"The description has more than {LONGEST_DESCRIPTION} characters; shorten it."
        )
    metadata = _mapping(fields.get("metadata"))
    ours = _mapping(metadata.get("hermes"))
    needed = _mapping(fields.get("prerequisites"))
    declared = [
        *_list(fields.get("required_environment_variables")),
        *_list(needed.get("env_vars")),
    ]
    try:
        declarations = [
            convert(SkillVariable, {"name": v} if isinstance(v, str) else v) for v in declared
        ]
        for each in declarations:
            if not _VARIABLE.fullmatch(each.name):
                raise UsageError(f"{each.name!r} is not a valid name for an environment variable.")
        # The first declaration of a name counts.
        variables = {each.name: each for each in reversed(declarations)}.values()
        return Skill(
            name=name,
            description=" ".join(description.split()),
            version=_text(fields.get("version") or metadata.get("version")),
            author=_text(fields.get("author") or metadata.get("author")),
            license=_text(fields.get("license")),
            compatibility=_text(fields.get("compatibility")),
            allowed_tools=_strings(fields.get("allowed-tools") or fields.get("allowed_tools")),
            platforms=tuple(each.lower() for each in _strings(fields.get("platforms"))),
            tags=_strings(ours.get("tags") or fields.get("tags")),
            category=_text(ours.get("category") or fields.get("category")),
            related=_strings(ours.get("related_skills")),
            conditions=SkillConditions(
                **{field: _strings(ours.get(field)) for field in SkillConditions.__struct_fields__}
            ),
            options=tuple(convert(SkillOption, each) for each in _list(ours.get("config"))),
            variables=tuple(variables)[::-1],
            credential_files=tuple(
                convert(CredentialFile, {"path": each} if isinstance(each, str) else each)
                for each in _list(fields.get("required_credential_files"))
            ),
            commands=_strings(needed.get("commands")),
        )
    except DecodeError as error:
        raise UsageError(f"The frontmatter is not valid: {error}.") from error


def _mapping(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _strings(value: Any) -> tuple[str, ...]:
    """Return the strings of a list, or of a text separated by commas or spaces."""
    if isinstance(value, str):
        return tuple(word for word in re.split(r"[,\s]+", value) if word)
    return tuple(_text(each) for each in _list(value))


def _text(value: Any) -> str:
    return "" if value is None else str(value)
