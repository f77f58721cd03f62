"""Compile the tables of `hermes.policy.scan`: rules, lexicon and vocabulary, to JSON."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.policy.scan.normal import own_letters
from scripts.generate_policy import expand

FOLDER = Path(__file__).parent.parent / "src/hermes/policy/scan"
COMPILED = FOLDER / "tables.json"
# What an expression of rules.toml writes as `…` and `≈`: up to n words.
BETWEEN = r"(?:(?:\W{1,6}\w+){0,%d}?\W{1,6})"
BENT = r"(?:(?:s|es|d|ed|ing)?(?!\w)|(?<=\W))"
PLAIN = r"(?:(?!\w)|(?<=\W))"
GAPS = {
    ".": r"[^|]?",
    "..": r"[^|]{0,4}?",
    "...": r"[^|]{0,9}?",
    "~": r"[^|n]{0,9}?",
    "^": r"[|/:][m,_.]{0,2}?",
    ">>": r".{0,16}?",
}
HEADING = re.compile(r"= (?P<idea>\w{1,2}|\.)(?: (?P<joined>\[\])?.*)?")
# Hyphens and dots inside a phrase.
INSIDE = re.compile(r"(?<=\w)[-.](?=\w)")
# Scripts without spaces between words.
JOINED = (("\u0e00", "\u0e7f"), ("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uac00", "\ud7af"))


def load(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))


def rules() -> list[dict[str, Any]]:
    file = load("rules.toml")
    for rule in file["rule"]:
        tail = expand(rule.get("tail", ""), file["lists"])
        tail = tail.replace("≈", BETWEEN % 8).replace("…", BETWEEN % 3)
        rule["tail"] = (BENT if rule.get("bent", True) else PLAIN) + tail
        starts = re.split(r"\s+\|\s+|\s*\n\s*", rule["starts"].strip())
        rule["starts"] = [start.replace("^", "\n") for start in starts]
    found: list[dict[str, Any]] = file["rule"]
    return found


def shape(text: str) -> tuple[str, str]:
    parts = text.split()
    expression = "".join(GAPS.get(part) or f"[{part}]_*" for part in parts)
    return expression, "".join(part for part in parts if len(part) == 1 and part not in GAPS)


def lexicon() -> dict[str, Any]:
    """Where a word stands under two headings, the first one counts."""
    words: dict[str, dict[str, Any]] = {}
    stems: dict[str, dict[str, Any]] = {}
    joined: dict[str, str] = {}
    for idea, word, is_joined in lexicon_words():
        if is_joined:
            joined.setdefault(word, idea)
            continue
        first, *rest = word.split()
        entry = (stems if first.endswith("*") else words).setdefault(first.rstrip("*"), {})
        if not rest:
            entry["idea"] = entry.get("idea", ".") if entry.get("idea", ".") != "." else idea
        elif rest[0].endswith("*"):
            entry.setdefault("loose", []).append((idea, *rest))
        else:
            entry.setdefault("phrases", {}).setdefault(rest[0], []).append((idea, *rest))
    for entry in (*words.values(), *stems.values()):
        for phrases in (entry.get("loose", []), *entry.get("phrases", {}).values()):
            phrases.sort(key=len, reverse=True)
    return {"words": words, "stems": stems, "joined": joined}


def lexicon_words() -> Iterator[tuple[str, str, bool]]:
    idea, joined = "", False
    for line in (FOLDER / "lexicon.txt").read_text(encoding="utf-8").splitlines():
        if heading := HEADING.fullmatch(line):
            idea, joined = heading["idea"], bool(heading["joined"])
        elif line and not line.startswith("#"):
            for word in line.split(","):
                plain = own_letters(word.strip())
                if spaced := plain if joined else INSIDE.sub(" ", plain):
                    yield idea, spaced, joined


def without(letters: str) -> Iterator[str]:
    """The letters of scripts without spaces except these, as ranges of an expression."""
    for low, high in JOINED:
        at = ord(low)
        for each in (*(ord(letter) for letter in letters if low <= letter <= high), ord(high) + 1):
            if at < each:
                yield f"{chr(at)}-{chr(each - 1)}"
            at = each + 1


def by_first_letter(alternatives: str) -> str:
    """The same alternatives grouped by first letter, so that most positions fail at once."""
    groups: dict[str, list[str]] = {}
    depth, start = 0, 0
    for at, sign in enumerate(alternatives + "|"):
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and depth == 0:
            one = alternatives[start:at]
            head = r"\b" if one.startswith(r"\b") else one[0] if one[0].isalpha() else ""
            groups.setdefault(head, []).append(one.removeprefix(head))
            start = at + 1
    return "|".join(f"{head}(?:{'|'.join(rests)})" for head, rests in groups.items())


def compiled() -> str:
    words, code, concepts = load("vocabulary.toml"), load("code.toml"), load("concepts.toml")
    meanings = lexicon()
    known = sorted(meanings["joined"], key=len, reverse=True)
    first = "".join(sorted({word[0] for word in known}))
    fragments = words["expressions"] | {
        "joined": "|".join(map(re.escape, known)),
        "first": re.escape(first),
        "unknown": "".join(without(first)),
        "ranges": "".join(f"{low}-{high}" for low, high in JOINED),
    }
    expressions = {name: expand(text, fragments) for name, text in words["expressions"].items()}
    expressions["speakers"] = by_first_letter(expressions["speakers"])
    expressions["installers"] = "(?i)" + expand(code["lists"]["installers"], {})
    for pattern in code["pattern"]:
        pattern["expression"] = expand(pattern["expression"], code["lists"])
    for rule in concepts["sense"]:
        rule["shapes"] = [shape(text) for text in rule["shapes"]]
    value = {
        "rules": rules(),
        "code": code["pattern"],
        "concepts": concepts["sense"],
        "lexicon": meanings,
        "lists": {
            name: text.split() if isinstance(text, str) else text
            for name, text in words["lists"].items()
        },
        "expressions": expressions,
    }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    text = compiled()
    COMPILED.write_text(text, encoding="utf-8")
    print(f"{COMPILED}: {len(text)} bytes")
    # Checks that the scanner can load it.
    importlib.import_module("hermes.policy.scan.tables")
