"""Compile the policy's data: programs.json, places.json and words.json from TOML."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from hermes.codec.json import convert
from hermes.policy.places.places import COMPILED as PLACES
from hermes.policy.places.places import Lists
from hermes.policy.programs.records import COMPILED as PROGRAMS
from hermes.policy.programs.records import Program
from hermes.policy.words import COMPILED as WORDS

# For people and for tests; the policy does not need them.
EXAMPLES = ("allow", "ask", "deny")


def records() -> list[dict[str, Any]]:
    """All records in the order of their files, with names and examples."""
    return [
        record
        for path in sorted(PROGRAMS.parent.glob("*.toml"))
        for record in tomllib.loads(path.read_text(encoding="utf-8"))["program"]
    ]


def programs() -> str:
    names: dict[str, int] = {}
    partly: dict[str, int] = {}
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
            if name in names or name in partly:
                raise ValueError(f"Two records name {name}.")
            (names if "check" in fields else partly)[name] = len(kept)
            for flag in fields.get("flags", ()):
                flags.setdefault(flag, []).append(name)
            if "runs_code" in fields:
                languages[name] = fields["runs_code"]
        kept.append(fields)
    value = {
        "names": names,
        "partly": partly,
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
    lists = tomllib.loads(WORDS.with_suffix(".toml").read_text(encoding="utf-8"))
    return _packed({name: text.split() for name, text in lists.items()})


def _packed(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    for path, text in ((PROGRAMS, programs()), (PLACES, places()), (WORDS, words())):
        path.write_text(text, encoding="utf-8")
        print(f"{path}: {len(text)} bytes")
