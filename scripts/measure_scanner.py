"""Measures the text scanner and the redactor on public repositories; it holds no data itself.

    python -m scripts.measure_scanner FOLDER [--part look|once|all] [--only NAME…] [--show N]

FOLDER holds git directories or clones, at any depth of two. Repositories are split in two halves
by a hash of their name: improve with `look`, and measure once with `once`. Prints one JSON line
per figure. `--show` prints that many examples of each wrong answer.

- `scan`: which context files, skills, READMEs and MCP tool descriptions raise an alarm
- `attacks`: which texts of public attack sets (Tensor Trust, BIPIA, garak) are found
- `redact`: wrong masks in source files (each candidate is shown, a person must judge), and which
  samples of the rule sets gitleaks and trufflehog are masked
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hermes.policy.redact.redactor import Redactor
from hermes.policy.scan.scanner import Kind, ScanResult, TextScanner
from scripts.rule_set_samples import Sample, gitleaks_samples, trufflehog_samples

KINDS: dict[str, tuple[Kind, re.Pattern[str]]] = {
    "context_files": (
        "context",
        re.compile(
            r"(?i)(?:^|/)(?:(?:agents|claude|gemini|copilot-instructions)\.md|\.cursorrules"
            r"|[^/]*\.(?:mdc|instructions\.md))$"
        ),
    ),
    "skills": ("skill", re.compile(r"(?:^|/)SKILL\.md$")),
    "readmes": ("context", re.compile(r"(?i)(?:^|/)readme(?:\.md|\.rst|\.txt)?$")),
}
DESCRIPTION = re.compile(
    r"""\bdescription\s*[:=]\s*\(?\s*(?P<quote>["'`])(?P<text>(?:(?!(?P=quote)).){20,2000})""", re.S
)
SERVER = re.compile(r"(?i)mcp")
SOURCE = re.compile(r"\.(?:py|js|ts|tsx|go|java|rs|c|h|cc|cpp|rb|php|kt|cs|sh|swift|scala)$")
TEST = re.compile(r"(?i)test|mock|fixture|example|sample|spec")
# Collections with thousands of files count as often as other repositories with many.
MOST_PER_REPOSITORY = 300
MOST_SOURCE_BYTES = 3_000_000


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.parent.name if folder.name in ("repo", ".git") else folder.name
        listed = self._git("ls-tree", "-r", "--name-only", "-z", "HEAD").decode(errors="replace")
        self.paths = [path for path in listed.split("\0") if path]

    @property
    def part(self) -> str:
        return ("look", "once")[hashlib.sha256(self.name.encode()).digest()[0] % 2]

    def read(self, paths: list[str]) -> Iterator[tuple[str, str]]:
        """Yield the texts of files; links and binary files are left out."""
        wanted = "".join(f"HEAD:{path}\n" for path in paths).encode()
        data = self._git("cat-file", "--batch", stdin=wanted)
        at = 0
        for path in paths:
            end = data.index(b"\n", at)
            head = data[at:end].split()
            if head[-1] == b"missing":
                at = end + 1
                continue
            size = int(head[-1])
            body = data[end + 1 : end + 1 + size]
            at = end + 2 + size
            if size > 120 and b"\0" not in body:
                yield path, body.decode("utf-8", "replace")

    def _git(self, *words: str, stdin: bytes = b"") -> bytes:
        command = ["git", "-C", str(self.folder), *words]
        return subprocess.run(command, input=stdin, capture_output=True, check=False).stdout


def choose(paths: list[str], most: int) -> list[str]:
    """Return at most so many paths, the same ones each time."""
    return sorted(paths, key=lambda path: hashlib.sha256(path.encode()).digest())[:most]


def measure_scan(repositories: list[Repository], show: int) -> None:
    for name, (kind, expression) in KINDS.items():
        texts = (
            (f"{each.name}/{path}", text)
            for each in repositories
            for path, text in each.read(
                choose([p for p in each.paths if expression.search(p)], MOST_PER_REPOSITORY)
            )
        )
        report_verdicts(name, kind, texts, show)
    report_verdicts("tool_descriptions", "tool_description", descriptions(repositories), show)


def descriptions(repositories: list[Repository]) -> Iterator[tuple[str, str]]:
    for each in repositories:
        if SERVER.search(each.name):
            paths = [p for p in each.paths if SOURCE.search(p) and not TEST.search(p)]
            for path, text in each.read(choose(paths, MOST_PER_REPOSITORY)):
                for match in DESCRIPTION.finditer(text):
                    yield f"{each.name}/{path}", match["text"]


def report_verdicts(name: str, kind: Kind, texts: Iterator[tuple[str, str]], show: int) -> None:
    verdicts: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    seen: set[str] = set()
    for path, text in texts:
        if text in seen:
            continue
        seen.add(text)
        found = scan(kind, text)
        verdicts[found.verdict] += 1
        serious = [each for each in found.findings if each.severity != "low"]
        causes.update({f"{each.id}:{each.severity}" for each in serious})
        if serious and show:
            show -= 1
            for each in serious[:4]:
                print(f"  {found.verdict} {path}:{each.line} {each.id} {each.severity} {each.text}")
    report(name, len(seen), **verdicts, causes=dict(causes.most_common(12)))


def scan(kind: Kind, text: str) -> ScanResult:
    scanner = TextScanner()
    return scanner.scan_skill(text, {}) if kind == "skill" else scanner.scan(text, kind)


def measure_attacks(repositories: list[Repository]) -> None:
    for name, texts in attack_sets(repositories):
        verdicts: Counter[str] = Counter(
            scan("context", text).verdict for text in dict.fromkeys(texts) if text
        )
        report(name, verdicts.total(), **verdicts)


def attack_sets(repositories: list[Repository]) -> Iterator[tuple[str, list[str]]]:
    for each in repositories:
        files = dict(each.read([p for p in each.paths if p.endswith((".jsonl", ".json"))]))
        for path, text in files.items():
            if path.endswith("_robustness_dataset.jsonl"):
                rows = [json.loads(line) for line in text.split("\n") if line.startswith('{"')]
                yield f"tensor_trust/{Path(path).stem}", [row["attack"] for row in rows]
            elif path.endswith("text_attack_test.json"):
                yield "bipia/text", [one for group in json.loads(text).values() for one in group]
            elif path.endswith("inthewild_jailbreak_llms.json"):
                yield "garak/in_the_wild", [str(one) for one in json.loads(text)]


def measure_redaction(repositories: list[Repository], show: int) -> None:
    size, kinds = 0, Counter[str]()
    for each in repositories:
        paths = [p for p in each.paths if SOURCE.search(p) and not TEST.search(p)]
        taken = 0
        for path, text in each.read(choose(paths, 600)):
            if taken > MOST_SOURCE_BYTES:
                break
            taken += len(text)
            for span in Redactor().spans(text):
                if span.kind == "phone":
                    continue
                kinds[span.kind] += 1
                if show:
                    line = text.count("\n", 0, span.start) + 1
                    around = text[max(0, span.start - 60) : span.end + 20]
                    print(f"  {span.kind} {each.name}/{path}:{line} {around!r}")
        size += taken
    per_mb = round(kinds.total() / max(size / 1e6, 0.001), 2)
    report(
        "source_masks", kinds.total(), megabytes=round(size / 1e6, 1), per_mb=per_mb, kinds=kinds
    )
    for name, samples in rule_sets(repositories):
        report_samples(name, samples, show)


def rule_sets(repositories: list[Repository]) -> Iterator[tuple[str, list[Sample]]]:
    for each in repositories:
        generator = [p for p in each.paths if p.endswith("config/utils/generate.go")]
        if generator:
            rules = [p for p in each.paths if "/config/rules/" in p and p.endswith(".go")]
            template = dict(each.read(generator))[generator[0]]
            texts = (text for _, text in each.read(rules))
            yield "gitleaks", list(gitleaks_samples(texts, template))
        tests = [p for p in each.paths if p.startswith("pkg/detectors/") and p.endswith("_test.go")]
        if tests:
            texts = (text for path, text in each.read(tests))
            yield "trufflehog", [s for s in trufflehog_samples(texts) if len(s.secret) > 7]


def report_samples(name: str, samples: list[Sample], show: int) -> None:
    missed = [each for each in samples if not is_masked(each)]
    for each in missed[:: max(1, len(missed) // show)] if show else ():
        print(f"  {each.secret[:60]!r} in {each.text[:160]!r}")
    masked = len(samples) - len(missed)
    report(name, len(samples), masked=masked, percent=round(100 * masked / max(len(samples), 1), 1))


def is_masked(sample: Sample) -> bool:
    # A redactor remembers what it found, so each sample gets its own.
    found = Redactor().redact(sample.text, "model")
    return sample.secret not in found.text if sample.secret else bool(found.found)


def report(name: str, cases: int, **figures: object) -> None:
    print(json.dumps({"measure": name, "cases": cases, **figures}), flush=True)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("folder", type=Path)
    reader.add_argument("--part", choices=("look", "once", "all"), default="all")
    reader.add_argument("--only", nargs="*", default=("scan", "attacks", "redact"))
    reader.add_argument("--show", type=int, default=0)
    given = reader.parse_args()
    folders = sorted(given.folder.glob("*/HEAD")) + sorted(given.folder.glob("*/*/HEAD"))
    found = [Repository(each.parent) for each in folders]
    chosen = [each for each in found if given.part in ("all", each.part)]
    if "scan" in given.only:
        measure_scan(chosen, given.show)
    if "attacks" in given.only:
        measure_attacks(found)
    if "redact" in given.only:
        measure_redaction(chosen, given.show)


if __name__ == "__main__":
    main()
