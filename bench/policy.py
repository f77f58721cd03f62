"""What guarding costs: judging commands and scripts, masking secrets, looking for injections.

The floor of a text is one pass over its words, that of a command is cutting it into words. All
times are of the processor."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.measure import ROOT, report, rounded
from hermes.core.effects import RunCommand
from hermes.policy.redact.redactor import Redactor
from hermes.policy.rules import PolicySettings, SessionPolicy
from hermes.policy.scan.scanner import TextScanner

HOME = "/home/person"
PROJECT = f"{HOME}/project"
COMMANDS = (
    "ls -la",
    "git status --short && git diff --stat",
    "pytest -q tests/unit -k 'not slow' 2>&1 | tail -20",
    "grep -rn TODO src | head -50",
    "rm -rf build dist",
    "npm ci && npm run build",
    "python3 -c 'import json; print(json.dumps({}))'",
    "find . -name '*.pyc' -delete",
    "sed -i 's/old/new/' src/module.py",
    'for f in *.txt; do mv "$f" "${f%.txt}.md"; done',
    "curl -s https://example.com/releases.json | jq .",
    "tar czf build.tgz -C build . && sha256sum build.tgz",
)
SCRIPT = """
cd src
for f in *.py; do
  if grep -q "import os" "$f"; then
    echo "checking $f"
    python -m py_compile "$f" || exit 1
  fi
done
count=$(ls | wc -l)
echo "there are $count files" > ../build/report.txt
build_part() {
  local name="$1"
  mkdir -p "build/$name"
  cp -r "parts/$name" "build/$name/"
}
build_part one; build_part two
cat <<EOF > ../build/config.json
{"name": "demo", "count": $count}
EOF
cd ..
"""
PYTHON = "import json\nfor name in ('a', 'b'):\n    print(json.dumps({'name': name}))\n"
WORD = re.compile(r"\w+")
TEXT_CHARS = 65_536
MASKED_CHARS = 50_000
TIMES = 7


def main() -> None:
    _commands()
    script = SCRIPT * (10_000 // len(SCRIPT))
    _script("script_10kb", script)
    code = PYTHON * (10_000 // len(PYTHON))
    _script("python_10kb", f"python3 - <<'EOF'\n{code}EOF\n")
    for name, text in _texts().items():
        _text(name, text)


def _commands() -> None:
    rules, costs = _rules(), []
    for command in COMMANDS:
        # A command that was judged before would be answered from memory.
        scripts = iter([f"{command} # {number}" for number in range(1000)])
        judge = _judging(rules, scripts)
        judge()
        costs.append(_best(judge, 20))
    floor = max(_best(partial(shlex.split, each), 20) for each in COMMANDS)
    report(
        "decide",
        commands=len(costs),
        median_ms=rounded(sorted(costs)[len(costs) // 2] * 1000, 3),
        worst_ms=rounded(max(costs) * 1000, 3),
        floor_words_ms=rounded(floor * 1000, 3),
        goal="p95 <= 5 ms",
    )


def _script(name: str, script: str) -> None:
    rules = _rules()
    scripts = iter([f"{script}\n# {number}" for number in range(1000)])
    cost = _best(_judging(rules, scripts), TIMES)
    report(
        f"decide_{name}",
        ms=rounded(cost * 1000, 1),
        floor_words_ms=rounded(_best(lambda: WORD.findall(script), TIMES) * 1000, 3),
        goal="<= 20 ms",
    )


def _text(name: str, text: str) -> None:
    scanner, redactor = TextScanner(), Redactor(["sk-live-abcdefghijklmnop1234"])
    floor = _best(lambda: WORD.findall(text), TIMES)
    scanned = _best(lambda: scanner.scan(text, "context"), TIMES)
    masked = _best(lambda: redactor.redact(text[:MASKED_CHARS], "model"), TIMES)
    report(
        f"text_{name}",
        scan_64kb_ms=rounded(scanned * 1000, 1),
        redact_50kb_ms=rounded(masked * 1000, 1),
        floor_words_ms=rounded(floor * 1000, 2),
        scan_ratio=rounded(scanned / floor, 1),
        goal="scan <= 5 ms, redact <= 5 ms",
    )


def _texts() -> dict[str, str]:
    prose = "\n\n".join(each.read_text() for each in sorted((ROOT / "docs").glob("*.md")))
    core = Path(ROOT / "src" / "hermes" / "core")
    code = "\n".join(each.read_text() for each in sorted(core.glob("*.py")))
    lines = (
        f"2026-01-01T12:{n % 60:02d}:{n * 7 % 60:02d}Z INFO worker-{n % 13} request id={n * 7919} "
        f"path=/api/v1/items/{n % 977} status={200 if n % 17 else 404} took={n % 311}ms"
        for n in range(800)
    )
    texts = {"prose": prose, "code": code, "log": "\n".join(lines)}
    return {
        name: (text * (TEXT_CHARS // len(text) + 1))[:TEXT_CHARS] for name, text in texts.items()
    }


def _rules() -> SessionPolicy:
    return SessionPolicy(
        PolicySettings(), root=PROJECT, home=HOME, state=f"{HOME}/.hermes", keep=lambda _: None
    )


def _judging(rules: SessionPolicy, scripts: Iterator[str]) -> Callable[[], object]:
    def judge() -> object:
        effect = RunCommand(script=next(scripts), cwd=PROJECT)
        return rules.decide(effect, "owner", frozenset({"user"}))

    return judge


def _best(work: Callable[[], object], times: int) -> float:
    """Seconds of the processor that the cheapest of several calls takes."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


if __name__ == "__main__":
    main()
