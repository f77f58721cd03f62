"""Compile the policy's data: programs, places, words and code rules, from TOML to JSON."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from hermes.codec.json import convert
from hermes.policy.patterns import COMPILED as WORDS
from hermes.policy.patterns import Vocabulary
from hermes.policy.places.places import COMPILED as PLACES
from hermes.policy.places.places import Lists
from hermes.policy.programs.records import COMPILED as PROGRAMS
from hermes.policy.programs.records import Program
from hermes.policy.programs.script_code import CODE_RULES, CodeRule

SEARCHES = WORDS.parent / "redact/searches.json"
# For people and for tests; the policy does not need them.
EXAMPLES = ("allow", "ask", "deny")


def records() -> list[dict[str, Any]]:
    """All records in the order of their files, with names and examples. `like` takes over what
    another record says, except for names, examples, and fields of its own."""
    found = [
        record
        for path in sorted(PROGRAMS.parent.glob("*.toml"))
        for record in tomllib.loads(path.read_text(encoding="utf-8"))["program"]
    ]
    by_name = {name: record for record in found for name in record["names"].split()}
    for record in found:
        if model := record.pop("like", ""):
            taken = {k: v for k, v in by_name[model].items() if k not in ("names", *EXAMPLES)}
            record.update({**taken, **record})
    return found


def programs() -> str:
    names: dict[str, int] = {}
    flags: dict[str, list[str]] = {}
    languages: dict[str, str] = {}
    kept: list[dict[str, Any]] = []
    for record in records():
        fields = {key: each for key, each in record.items() if key not in ("names", *EXAMPLES)}
        for key in ("values", "reads", "works", "looks"):
            if key in fields:
                fields[key] = " ".join(fields[key].split())
        convert(Program, fields)
        for name in record["names"].split():
            if name in names:
                raise ValueError(f"Two records name {name}.")
            names[name] = len(kept)
            for flag in fields.get("flags", ()):
                flags.setdefault(flag, []).append(name)
            if "runs_code" in fields:
                languages[name] = fields["runs_code"]
        kept.append(fields)
    value = {
        "names": names,
        "flags": flags,
        "languages": languages,
        "records": kept,
    }
    return _packed(value)


def places() -> str:
    value = tomllib.loads(PLACES.with_suffix(".toml").read_text(encoding="utf-8"))
    convert(Lists, value)
    return _packed(value)


def words() -> str:
    """Texts at the top are lists of words; expressions are given in pieces."""
    value: dict[str, Any] = {"words": {}}
    text = WORDS.with_suffix(".toml").read_text(encoding="utf-8")
    for name, given in tomllib.loads(text).items():
        if isinstance(given, str):
            value["words"][name] = given.split()
        else:
            value[name] = given
    value["patterns"] = {name: "".join(pieces) for name, pieces in value["patterns"].items()}
    for expression in value["patterns"].values():
        re.compile(expression)
    convert(Vocabulary, value)
    return _packed(value)


def code_rules() -> str:
    rules = tomllib.loads(CODE_RULES.with_suffix(".toml").read_text(encoding="utf-8"))["rule"]
    for rule in rules:
        rule["expression"] = "".join(rule["expression"])
    convert(list[CodeRule], rules)
    return _packed(rules)


def searches() -> str:
    """Lists are split, fragments inserted, and the lines of expressions joined."""
    value = tomllib.loads(SEARCHES.with_suffix(".toml").read_text(encoding="utf-8"))
    fragments = value.pop("fragments")
    value["lists"] = {name: text.split() for name, text in value["lists"].items()}
    value["expressions"] = {
        name: expand(text, fragments) for name, text in value["expressions"].items()
    }
    for search in value["search"]:
        search["expressions"] = [expand(text, fragments) for text in search["expressions"]]
        if "trim" in search:
            search["trim"] = expand(search["trim"], fragments)
    return _packed(value)


def expand(expression: str, fragments: dict[str, str]) -> str:
    """Joins the lines of an expression and inserts the fragments that it names."""
    joined = "".join(line.lstrip() for line in expression.split("\n"))
    return re.sub(r"\{\{(\w+)\}\}", lambda name: expand(fragments[name[1]], fragments), joined)


def compiled() -> dict[Path, str]:
    """The generated files and what they must hold."""
    return {
        PROGRAMS: programs(),
        PLACES: places(),
        WORDS: words(),
        CODE_RULES: code_rules(),
        SEARCHES: searches(),
    }


def _packed(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    for path, text in compiled().items():
        path.write_text(text, encoding="utf-8")
        print(f"{path}: {len(text)} bytes")
    # Checks that the redactor can load its searches.
    importlib.import_module("hermes.policy.redact.heuristics")
