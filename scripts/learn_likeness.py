"""Learns the weights of `hermes.policy.scan.likeness` from the corpora of texts.

    python scripts/learn_likeness.py [DOCUMENT…]

Documents are further texts that are no injections. Nothing is learnt from a passage that only
speaks of injections: whether it does is decided elsewhere.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hermes.policy.scan import likeness
from hermes.policy.scan.mention import spoken_of
from hermes.policy.scan.normal import folded
from hermes.policy.scan.sense import rows

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests/policy/corpus_injection"
WEIGHTS = ROOT / "src/hermes/policy/scan/weights.txt"
ROUNDS, PACE, SEEN, GAIN = 10, 0.15, 3, 2.0
# How fast a weight is forgotten: a word must prove more than an idea.
DECAY, DECAY_OF_WORDS = 0.004, 0.01
# How many passages of documents are learnt from, and from where on one is nearly an injection.
PASSAGES, SUSPECT = 6000, -1.0
MADE = 1500
KINDS = ("context", "memory", "tool_description")
# Of the parts of a language, those that texts are not composed of.
NO_PARTS = ("slot ", "solo", "benign")
# Parts that mean nothing alone, and parts that mean enough alone.
CIRCUMSTANCES = frozenset(("addr", "when", "hide", "auth"))
ENOUGH = frozenset(("void", "leak", "role", "noask"))

Bag = list[list[str]]


def bag(text: str, kind: str) -> Bag:
    """The features of the passages of a text."""
    found: Bag = []
    plain = folded(text[:65536])
    for start, row in rows(plain):
        for first, last in likeness.passages(row.ideas):
            told = sorted(likeness.features(row, first, last, kind))
            if told and not spoken_of(plain, start + row.place(first, last)[0]):
                found.append(told)
    return found


def corpus(name: str) -> Iterator[Bag]:
    for path in sorted(CORPUS.glob(f"{name}*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            each = json.loads(line)
            yield bag(each["text"], each["kind"])


def clauses() -> dict[str, dict[str, list[str]]]:
    """By language, the parts that injections are put together from."""
    found: dict[str, dict[str, list[str]]] = {}
    lines: list[str] = []
    for line in (CORPUS / "clauses.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            language, _, part = line.removeprefix("## ").partition(" ")
            lines = found.setdefault(language, {}).setdefault(part, [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def composed(parts: dict[str, list[str]], chance: random.Random) -> str:
    """One injection of some parts; the first of them wants something."""
    names = [name for name in parts if not name.startswith(NO_PARTS)]
    main = chance.choice([name for name in names if name not in CIRCUMSTANCES])
    least = 0 if main in ENOUGH else 1
    others = [name for name in names if name != main] or names
    chosen = [main, *(chance.choice(others) for _ in range(chance.randint(least, 3)))]
    chance.shuffle(chosen)
    chosen.sort(key=lambda name: name != "addr")
    said = [chance.choice(parts[name]) for name in dict.fromkeys(chosen) if name != "all"]
    if "all" in parts:
        said = chance.sample(parts["all"], len(chosen) + 1)
    text = chance.choice((". ", ", ", " and ", ": ", "; ", ".\n", " ")).join(said)
    for _ in range(2):
        text = re.sub(r"\{(\w+)\}", lambda slot: chance.choice(parts[f"slot {slot[1]}"]), text)
    return text[0].upper() + text[1:] + chance.choice((".", "", "!"))


def made(count: int) -> Iterator[Bag]:
    """Injections put together by chance, half of them in English."""
    chance = random.Random(7)
    languages = clauses()
    others = sorted(set(languages) - {"en"})
    for text in languages["en"]["solo"]:
        for kind in KINDS:
            yield bag(text, kind)
    for _ in range(count):
        language = "en" if chance.random() < 0.5 else chance.choice(others)
        text = composed(languages[language], chance)
        yield bag(text, chance.choices(KINDS, (5, 2, 2))[0])


class Model:
    """Logistic regression. Of a hostile text only the most suspicious passage counts. A word that
    no hostile text has says nothing, and no word speaks for a text: injections stand in texts
    about anything."""

    def __init__(self, hostile: list[Bag], benign: list[Bag]) -> None:
        seen = Counter(each for one in (*hostile, *benign) for each in _told(one))
        guilty = Counter(each for one in hostile for each in _told(one))
        self._known = {
            each: number
            for number, each in enumerate(seen)
            if seen[each] >= SEEN and ("=" not in each or guilty[each] >= SEEN)
        }
        self._decay = [DECAY_OF_WORDS if "=" in each else DECAY for each in seen]
        self._least = [0.0 if "=" in each else -99.0 for each in seen]
        self._weights = [0.0] * len(seen)
        self._bias = -3.0
        self._learn([(1.0, self._numbers(one)) for one in hostile if one], benign)

    def _numbers(self, one: Bag) -> list[list[int]]:
        return [[self._known[each] for each in told if each in self._known] for told in one]

    def _total(self, told: list[int]) -> float:
        return self._bias + sum([self._weights[each] for each in told])

    def _learn(self, hostile: list[tuple[float, list[list[int]]]], benign: list[Bag]) -> None:
        data = hostile + [(0.0, self._numbers(one)) for one in benign if one]
        chance = random.Random(1)
        for turn in range(ROUNDS):
            chance.shuffle(data)
            pace = PACE / (1 + 0.25 * turn)
            for truth, one in data:
                for told in [max(one, key=self._total)] if truth else one:
                    self._step(told, truth, pace)

    def _step(self, told: list[int], truth: float, pace: float) -> None:
        guess = 1 / (1 + math.exp(-max(-30.0, min(30.0, self._total(told)))))
        step = max(-1.5, min(1.5, (truth - guess) * (GAIN if truth else 1.0)))
        if abs(step) < 0.002:
            return
        self._bias += 0.1 * pace * step
        for each in told:
            weight = self._weights[each]
            weight += pace * (step - self._decay[each] * weight)
            self._weights[each] = max(weight, self._least[each])

    def likeness(self, told: list[str]) -> float:
        return self._total([self._known[each] for each in told if each in self._known])

    def weights(self) -> dict[str, float]:
        told = {each: self._weights[number] for each, number in self._known.items()}
        return {"bias": self._bias, **told}


def _told(one: Bag) -> set[str]:
    return {each for told in one for each in told}


def main(documents: list[str]) -> None:
    hostile = [*corpus("hostile"), *made(MADE)]
    hostile += 2 * list(corpus("hostile_rounds"))
    benign = [*corpus("benign"), *(2 * list(corpus("benign_rounds")))]
    benign += [bag(text, kind) for text in clauses()["en"]["benign"] for kind in KINDS]
    passages: Bag = []
    for path in documents:
        passages += bag(Path(path).read_text(encoding="utf-8", errors="replace"), "context")
    random.Random(2).shuffle(passages)
    some = [[told] for told in passages[:PASSAGES]]
    first = Model(hostile, [*benign, *some])
    # What the first model takes for an injection is what the second one learns most from.
    wrong = [[told] for told in passages[PASSAGES:] if first.likeness(told) > SUSPECT]
    weights = Model(hostile, [*benign, *some, *wrong[:PASSAGES]]).weights()
    lines = [f"{name} {value:.2f}" for name, value in sorted(weights.items()) if abs(value) >= 0.05]
    head = (
        "# Learnt by scripts/learn_likeness.py from the corpora: an idea or two, or a word, and"
        " their weight."
    )
    WEIGHTS.write_text("\n".join([head, *lines, ""]), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} weights; {len(wrong)} of {len(passages)} passages were wrong\n")


if __name__ == "__main__":
    main(sys.argv[1:])
