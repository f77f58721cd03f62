"""Trains the text classifier and the triage table of `hermes.policy.scan`.

    python scripts/train_classifier.py [--hold-out AUTHORS] FOLDER…

FOLDERs hold real documents (README, licences, manuals), which are negatives: of each only a half
is used, chosen by content hash, and the other half is left for measurement. `--hold-out gnuz`
trains without these authors of `training/scan`, measures on them and writes nothing. Needs
scikit-learn.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from hermes.codec.values import Value
from hermes.policy.scan.classifier import BIAS, CheckedMatch, feature_names, passage_features
from hermes.policy.scan.concepts import match_concepts, read_concepts
from hermes.policy.scan.disguises import disguises
from hermes.policy.scan.normal import MAX_LENGTH, readings
from hermes.policy.scan.rules import is_quotation, match_rules
from hermes.policy.scan.scanner import MOST_SIGNS, SCOPES, Kind
from hermes.policy.scan.triage import select_parts, split_pieces, stem_scores, stems

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "training/scan"
PACKAGE = ROOT / "src/hermes/policy/scan"
KINDS: tuple[Kind, ...] = ("memory", "skill", "context", "tool_description")
DOCUMENT = re.compile(
    r"(?i)(readme|licen[cs]e|copying|copyright|notice|changelog|news)|.*\.(md|rst)"
)
WORD = re.compile(r"[^\W\d_]+")
# A feature needs so many texts; a weight below the minimum is dropped and the rest fitted again.
MIN_TEXTS, MIN_WEIGHT = 5, 0.05
SELECTION, FINAL = 0.05, 0.1
# The highest-scoring passages of a text that are learned from.
HOSTILE_PASSAGES, BENIGN_PASSAGES = 2, 3
ROUNDS = 3
# Skills are orders that the owner wants a model to follow: mistakes there count more.
SKILL_WEIGHT = 4.0
# A stem of the triage table needs so many pieces of text, and such a log ratio.
MIN_PIECES, MIN_RATIO = 5, 0.8


class Source(Value):
    """A text to train on; `corpus` is its author, "documents" or "skills"."""

    corpus: str
    hostile: bool
    kind: Kind
    text: str


class Example(Value):
    """A text as feature names, one list for each passage."""

    source: Source
    passages: list[list[str]]


def corpora() -> Iterator[Source]:
    for path in sorted(CORPUS.glob("*.jsonl")):
        side, _, author = path.stem.partition("_")
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                row = json.loads(line)
                yield Source(
                    corpus=author, hostile=side == "hostile", kind=row["kind"], text=row["text"]
                )


def lessons() -> Iterator[Source]:
    """Sentences under `## hostile KIND` and `## benign KIND`; `⏎` is a new line."""
    hostile = False
    kind: Kind = "context"
    for line in (CORPUS / "lessons.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            side, name = line.removeprefix("## ").split()
            hostile = side == "hostile"
            kind = next(each for each in KINDS if each == name)
        elif line and not line.startswith("#"):
            text = line.replace("⏎", "\n")
            yield Source(corpus="lessons", hostile=hostile, kind=kind, text=text)


def own_documents() -> Iterator[Source]:
    own = [path for folder in ("docs", "src") for path in sorted((ROOT / folder).rglob("*.md"))]
    for path in [*sorted(ROOT.glob("*.md")), *own]:
        yield _document(path, path.read_text(encoding="utf-8", errors="replace"))


def _document(path: Path, text: str) -> Source:
    if path.name == "SKILL.md":
        return Source(corpus="skills", hostile=False, kind="skill", text=text)
    return Source(corpus="documents", hostile=False, kind="context", text=text)


def real_documents(folders: Sequence[Path]) -> Iterator[Source]:
    """The training half of the documents below these folders, each content once."""
    seen: set[bytes] = set()
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        name = path.name.removesuffix(".gz")
        if path.is_symlink() or not path.is_file():
            continue
        if not DOCUMENT.fullmatch(name.partition(".")[0]) and not DOCUMENT.fullmatch(name):
            continue
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
        digest = hashlib.sha256(raw).digest()
        if digest[0] % 2 == 0 and digest not in seen and len(raw) > 40 and b"\0" not in raw:
            seen.add(digest)
            text = raw.decode("utf-8", "replace")[:MAX_LENGTH]
            yield _document(path, text)


def log_ratios(sources: Sequence[Source]) -> dict[str, float]:
    """How much more often a stem occurs in hostile texts than in documents and code."""
    counts = {side: Counter[str]() for side in (True, False)}
    for each in sources:
        if each.hostile or each.corpus in ("documents", "skills"):
            counts[each.hostile].update(_stems_of_pieces(each.text))
    for path in sorted((ROOT / "src").rglob("*.py")):
        counts[False].update(_stems_of_pieces(path.read_text(encoding="utf-8")))
    sizes = {side: counts[side].total() for side in (True, False)}
    return {
        stem: round(
            math.log((counts[True][stem] + 1) / sizes[True])
            - math.log((counts[False][stem] + 2) / sizes[False]),
            1,
        )
        for stem, count in (counts[True] + counts[False]).items()
        if count >= MIN_PIECES
    }


def _stems_of_pieces(text: str) -> Iterator[str]:
    """Each stem once for a piece of the text."""
    plain = readings(text[:MAX_LENGTH])[0]
    for start, end in split_pieces(0, len(plain)):
        words = set(WORD.findall(plain[start:end]))
        yield from {stem for word in words for stem in stems([word])}


def example(source: Source) -> Example:
    """The features of all passages, as written and behind disguises."""
    text, kind = source.text, source.kind
    plain, own = readings(text[:MAX_LENGTH].removeprefix("\ufeff"))
    found = []
    for reading in dict.fromkeys((plain, own, *(each for _, each in disguises(text, plain)))):
        spans = select_parts(reading)
        read = list(read_concepts(reading, spans))
        seen = list(match_rules(reading, SCOPES[kind], kind, spans))
        for start, row in read:
            seen += match_concepts(row, start, SCOPES[kind], kind)
        told = [
            CheckedMatch(sign=sign, mentioned=is_quotation(reading, sign.start, sign.end))
            for sign in seen[:MOST_SIGNS]
        ]
        found += [
            sorted(feature_names(features))
            for _, _, features in passage_features(reading, read, told, kind)
        ]
    return Example(source=source, passages=found)


class Trainer:
    """Logistic regression over passages. Which passages of a text count is decided by the previous
    round: most sentences of a hostile text are harmless."""

    def __init__(self, examples: Sequence[Example]) -> None:
        counts: Counter[str] = Counter()
        for each in examples:
            if each.source.corpus != "documents":
                counts.update({name for passage in each.passages for name in passage})
        self._columns = {
            name: at
            for at, name in enumerate(sorted(n for n, k in counts.items() if k >= MIN_TEXTS))
        }
        self._matrix, self._owners = self._rows(examples)
        self._hostile = np.array([each.source.hostile for each in examples])[self._owners]
        importance = [SKILL_WEIGHT if e.source.corpus == "skills" else 1.0 for e in examples]
        self._importance = np.array(importance)[self._owners]
        self._weights = np.zeros(len(self._columns))
        self._bias = 0.0
        used = np.arange(len(self._columns))
        for round_ in range(ROUNDS):
            self._fit(used, SELECTION, every=round_ == 0)
        used = np.flatnonzero(np.abs(self._weights) >= MIN_WEIGHT)
        for _ in range(2):
            self._fit(used, FINAL, every=False)

    def scores(self, examples: Sequence[Example]) -> Any:
        """The score of the worst passage of each text."""
        matrix, owners = self._rows(examples)
        best = np.full(len(examples), -30.0)
        np.maximum.at(best, owners, matrix @ self._weights + self._bias)
        return best

    def weights(self) -> dict[str, float]:
        kept = {name: float(self._weights[at]) for name, at in self._columns.items()}
        return {f"{BIAS}:": self._bias, **kept}

    def _rows(self, examples: Sequence[Example]) -> tuple[Any, Any]:
        columns, ends, owners = [], [0], []
        for number, each in enumerate(examples):
            for passage in each.passages:
                columns += [self._columns[name] for name in passage if name in self._columns]
                ends.append(len(columns))
                owners.append(number)
        shape = (len(owners), len(self._columns))
        ones = np.ones(len(columns), dtype=np.float32)
        return csr_matrix((ones, columns, ends), shape=shape), np.array(owners)

    def _fit(self, used: Any, strength: float, *, every: bool) -> None:
        scores = self._matrix @ self._weights + self._bias
        order = np.lexsort((-scores, self._owners))
        starts = np.r_[True, np.diff(self._owners[order]) != 0]
        places = np.arange(len(order))
        rank = np.empty_like(places)
        rank[order] = places - np.maximum.accumulate(np.where(starts, places, 0))
        limit = np.where(self._hostile, HOSTILE_PASSAGES, BENIGN_PASSAGES)
        chosen = np.ones(len(rank), dtype=bool) if every else rank < limit
        model = LogisticRegression(C=strength, solver="liblinear", max_iter=200)
        model.fit(
            self._matrix[:, used][chosen],
            self._hostile[chosen],
            sample_weight=self._importance[chosen],
        )
        self._weights = np.zeros(len(self._columns))
        self._weights[used] = model.coef_[0]
        self._bias = float(model.intercept_[0])


def report(trainer: Trainer, examples: Sequence[Example]) -> Iterator[str]:
    """How many hostile texts are found at a given rate of false alarms, by kind of text."""
    for kind in KINDS:
        chosen = [each for each in examples if each.source.kind == kind]
        scores = trainer.scores(chosen)
        hostile = np.array([each.source.hostile for each in chosen])
        for share in (0.01, 0.02, 0.03, 0.05):
            limit = np.quantile(scores[~hostile], 1 - share)
            found = np.mean(scores[hostile] > limit)
            yield f"{kind}: {share:.0%} alarmed, {found:.1%} found above {limit:.2f}\n"


def write(name: str, what: str, values: dict[str, float], scale: int, least: float) -> None:
    lines = [
        f"{key}\t{round(scale * value)}"
        for key, value in sorted(values.items())
        if abs(value) >= least or key == f"{BIAS}:"
    ]
    head = f"# Written by scripts/train_classifier.py: {what}."
    (PACKAGE / name).write_text("\n".join([head, *lines, ""]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hold-out", default="")
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    every = [*corpora(), *lessons(), *own_documents(), *real_documents(options.folders)]
    held = [each for each in every if each.corpus and each.corpus in options.hold_out]
    sources = [each for each in every if each not in held] if held else every
    table = stem_scores()
    table.clear()
    ratios = log_ratios(sources)
    table.stems = {stem: round(10 * ratio) for stem, ratio in ratios.items()}
    trainer = Trainer([example(each) for each in sources])
    if held:
        sys.stdout.writelines(report(trainer, [example(each) for each in held]))
        return
    write("triage.txt", "a stem, and 10 times its log ratio", ratios, 10, MIN_RATIO)
    write("weights.txt", "a feature, and 100 times its weight", trainer.weights(), 100, 0.02)
    sys.stdout.write(f"{len(trainer.weights())} features from {len(sources)} texts\n")


if __name__ == "__main__":
    main()
