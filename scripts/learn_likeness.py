"""Learns the weights of `hermes.policy.scan.likeness` from the corpora of texts.

    python scripts/learn_likeness.py [--without PREFIX] [DOCUMENT…]

Documents are further texts that are no injections. With `--without`, corpora whose names have
this beginning are left out, and what the weights make of them is told instead of written.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hermes.codec.values import Value
from hermes.policy.scan.disguises import disguises
from hermes.policy.scan.finding import signs
from hermes.policy.scan.interest import interest, parts, pieces
from hermes.policy.scan.likeness import BIAS, Told, names, weighed
from hermes.policy.scan.mention import mentioned
from hermes.policy.scan.normal import LONGEST, readings
from hermes.policy.scan.scanner import MOST_SIGNS, SCOPES, Kind
from hermes.policy.scan.sense import in_sense, rows
from hermes.policy.scan.stems import stems

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests/policy/corpus_injection"
INTEREST = ROOT / "src/hermes/policy/scan/interest.txt"
WEIGHTS = ROOT / "src/hermes/policy/scan/weights.txt"
WORD = re.compile(r"[^\W\d_]+")
KINDS: tuple[Kind, ...] = ("memory", "skill", "context", "tool_description")
ROUNDS, PACE, DECAY = 14, 0.5, 0.004
# A feature counts if so many texts have it; a weight is kept if it is so large.
SEEN, SMALLEST = 3, 0.08
# A stem is interesting or dull if it was met so often, and so much more on one side.
OFTEN, TELLING = 5, 0.8
# Of an honest text the passages that look worst are learnt from.
WORST = 3
# How much a document that has nothing to do with orders teaches.
BORING = 0.2
FAR = 30.0


class Source(Value):
    """A text to be learnt from."""

    corpus: str
    hostile: bool
    kind: Kind
    text: str


class Text(Value):
    """A text as sets of features, one for each of its passages."""

    corpus: str
    hostile: bool
    bag: list[list[str]]


def bag(text: str, kind: Kind) -> list[list[str]]:
    """The features of the passages of a text, as it stands and behind its disguises."""
    plain, own = readings(text[:LONGEST].removeprefix("\ufeff"))
    found = []
    for reading in dict.fromkeys((plain, own, *(each for _, each in disguises(text, plain)))):
        spans = parts(reading)
        read = list(rows(reading, spans))
        seen = list(signs(reading, SCOPES[kind], kind, spans))
        for start, row in read:
            seen += in_sense(row, start, SCOPES[kind], kind)
        told = [
            Told(sign=sign, mentioned=mentioned(reading, sign.start, sign.end))
            for sign in seen[:MOST_SIGNS]
        ]
        found += [sorted(names(features)) for _, _, features in weighed(reading, read, told, kind)]
    return found


def corpora() -> Iterator[Source]:
    for path in sorted(CORPUS.glob("*.jsonl")):
        hostile = path.name.startswith("hostile")
        for line in path.read_text(encoding="utf-8").splitlines():
            each = json.loads(line)
            name = path.stem.partition("_")[2]
            yield Source(corpus=name, hostile=hostile, kind=each["kind"], text=each["text"])


def lessons() -> Iterator[Source]:
    """Sentences that were written to be learnt from; `⏎` stands for a new line."""
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


def documents(paths: list[Path]) -> Iterator[Source]:
    """Texts of this project and other ones, all of them honest. Skills are orders to a model that
    are the owner's: they teach as much as any corpus."""
    own = [path for folder in ("docs", "src") for path in sorted((ROOT / folder).rglob("*.md"))]
    for path in [*ROOT.glob("*.md"), *own, *paths]:
        words = path.read_text(encoding="utf-8", errors="replace")
        if path.name == "SKILL.md":
            yield Source(corpus="skills", hostile=False, kind="skill", text=words)
        else:
            yield Source(corpus="documents", hostile=False, kind="context", text=words)


def code() -> Iterator[str]:
    """Where hardly a word is an order."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        yield path.read_text(encoding="utf-8")


def interesting(sources: list[Source]) -> dict[str, float]:
    """How much more often a stem stands in a hostile text than in as much of ordinary ones."""
    counts = {side: Counter[str]() for side in (True, False)}
    for each in sources:
        if each.hostile or each.corpus in ("documents", "skills"):
            counts[each.hostile].update(_stems_of_pieces(each.text))
    for text in code():
        counts[False].update(_stems_of_pieces(text))
    sizes = {side: counts[side].total() for side in (True, False)}
    return {
        stem: math.log((counts[True][stem] + 1) / sizes[True])
        - math.log((counts[False][stem] + 2) / sizes[False])
        for stem, count in (counts[True] + counts[False]).items()
        if count >= OFTEN
    }


def _stems_of_pieces(text: str) -> Iterator[str]:
    """Each stem once for a piece of the text."""
    plain = readings(text[:LONGEST])[0]
    for start, end in pieces(plain, 0, len(plain)):
        words = set(WORD.findall(plain[start:end]))
        yield from {stem for word in words for stem in stems([word])}


def learn_interest(sources: list[Source]) -> dict[str, float]:
    """From now on the parts of long texts are chosen by what was learnt."""
    told = interesting(sources)
    known = interest()
    known.clear()
    known.stems = {stem: round(value, 1) for stem, value in told.items()}
    return known.stems


def read(sources: list[Source]) -> list[Text]:
    return [
        Text(corpus=each.corpus, hostile=each.hostile, bag=bag(each.text, each.kind))
        for each in sources
    ]


class Model:
    """Logistic regression whose weights move the more the more often a feature stands on one side
    only. Of a hostile text only the most suspicious passage counts."""

    def __init__(self, texts: list[Text]) -> None:
        counts = {side: Counter[str]() for side in (True, False)}
        telling = [text for text in texts if text.corpus != "documents"]
        for text in telling:
            counts[text.hostile].update({each for told in text.bag for each in told})
        total = counts[True] + counts[False]
        self._known = {
            each: at for at, each in enumerate(sorted(k for k, n in total.items() if n >= SEEN))
        }
        sizes = {side: sum(text.hostile is side for text in telling) for side in (True, False)}
        self._scale = [_one_sided(each, counts, sizes) for each in self._known]
        self._weights = [0.0] * len(self._known)
        self._moved = [1e-6] * len(self._known)
        self._bias = -1.0
        self._learn(texts)

    def _numbers(self, text: Text) -> list[list[int]]:
        return [[self._known[each] for each in told if each in self._known] for told in text.bag]

    def _total(self, told: list[int]) -> float:
        weights = self._weights
        return self._bias + sum([weights[each] for each in told])

    def _learn(self, texts: list[Text]) -> None:
        data = [(text, self._numbers(text)) for text in texts if text.bag]
        chance = random.Random(1)
        for turn in range(ROUNDS):
            chance.shuffle(data)
            for text, told in data:
                told.sort(key=self._total, reverse=True)
                pace = (BORING if text.corpus == "documents" else 1.0) / (1 + 0.3 * turn)
                for each in told[: 1 if text.hostile else WORST]:
                    self._step(each, float(text.hostile), pace)

    def _step(self, told: list[int], truth: float, pace: float) -> None:
        like = max(-FAR, min(FAR, self._total(told)))
        wrong = truth - 1 / (1 + math.exp(-like))
        if abs(wrong) < 0.003:
            return
        self._bias += 0.01 * pace * wrong
        weights, scale, moved = self._weights, self._scale, self._moved
        for each in told:
            gain = scale[each] * (wrong - DECAY * weights[each] / scale[each] ** 2)
            moved[each] += gain * gain
            weights[each] += PACE * pace * scale[each] * gain / (1.0 + math.sqrt(moved[each])) * 0.3

    def likeness(self, text: Text) -> float:
        return max(map(self._total, self._numbers(text)), default=-FAR)

    def weights(self) -> dict[str, float]:
        told = {each: self._weights[at] for each, at in self._known.items()}
        return {f"{BIAS}:": self._bias, **told}


def _one_sided(each: str, counts: dict[bool, Counter[str]], sizes: dict[bool, int]) -> float:
    hostile = (counts[True][each] + 1) / sizes[True]
    honest = (counts[False][each] + 1) / sizes[False]
    return max(0.05, min(3.0, abs(math.log(hostile / honest))))


def told_of(model: Model, texts: list[Text]) -> Iterator[str]:
    """How many of the hostile texts are found where so many of the honest ones are."""
    hostile = [model.likeness(text) for text in texts if text.hostile]
    honest = sorted((model.likeness(text) for text in texts if not text.hostile), reverse=True)
    for share in (0.01, 0.02, 0.03, 0.05, 0.1):
        least = honest[int(share * len(honest))]
        found = sum(each > least for each in hostile) / len(hostile)
        yield f"{share:.0%} of the honest texts: {found:.1%} of the hostile ones, above {least:.2f}"


def write(path: Path, what: str, lines: list[str]) -> None:
    head = f"# Learnt by scripts/learn_likeness.py: {what}"
    path.write_text("\n".join([head, *lines, ""]), encoding="utf-8")


def write_interest(known: dict[str, float]) -> None:
    lines = [
        f"{stem}\t{round(10 * value)}"
        for stem, value in sorted(known.items())
        if value >= TELLING or value <= -TELLING
    ]
    write(INTEREST, "a stem, and 10 times how much more often it is in injections.", lines)


def write_weights(weights: dict[str, float]) -> None:
    lines = [
        f"{name}\t{round(100 * value)}"
        for name, value in sorted(weights.items())
        if abs(value) >= SMALLEST or name == f"{BIAS}:"
    ]
    write(WEIGHTS, "a feature of a passage, and 100 times its weight.", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", default="")
    parser.add_argument("documents", nargs="*", type=Path)
    asked = parser.parse_args()
    sources = [*corpora(), *lessons(), *documents(asked.documents)]
    if asked.without:
        held = [each for each in sources if each.corpus.startswith(asked.without)]
        sources = [each for each in sources if not each.corpus.startswith(asked.without)]
        learn_interest(sources)
        sys.stdout.writelines(f"{line}\n" for line in told_of(Model(read(sources)), read(held)))
        return
    write_interest(learn_interest(sources))
    weights = Model(read(sources)).weights()
    write_weights(weights)
    sys.stdout.write(f"{len(weights)} weights from {len(sources)} texts\n")


if __name__ == "__main__":
    main()
