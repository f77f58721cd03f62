"""Learns the weights of `hermes.policy.scan.likeness` from the corpora of texts.

    python scripts/learn_likeness.py [DOCUMENT…]

Documents are further texts that are no injections. Nothing is learnt from a passage that only
speaks of injections: whether it does is decided elsewhere.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from hermes.policy.scan import likeness
from hermes.policy.scan.mention import spoken_of
from hermes.policy.scan.normal import folded
from hermes.policy.scan.sense import rows

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests/policy/corpus_injection"
WEIGHTS = ROOT / "src/hermes/policy/scan/weights.txt"
ROUNDS, PACE, DECAY, SEEN = 30, 0.15, 0.002, 3
MOST_OF_A_DOCUMENT = 60

Bag = list[list[str]]


def bag(text: str, kind: str) -> Bag:
    """The features of the passages of a text."""
    found: Bag = []
    for start, row in rows(folded(text[:65536])):
        for first, last in likeness.passages(row.ideas):
            told = sorted(likeness.features(row.ideas[first:last], kind))
            if told and not spoken_of(folded(text), start + row.place(first, last)[0]):
                found.append(told)
    return found


def corpus(name: str) -> Iterator[Bag]:
    for path in sorted(CORPUS.glob(f"{name}*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            each = json.loads(line)
            yield bag(each["text"], each["kind"])


def learnt(hostile: list[Bag], benign: list[Bag]) -> dict[str, float]:
    """Logistic regression. Of a hostile text only the most suspicious passage counts."""
    counted = Counter(each for one in (*hostile, *benign) for told in one for each in told)
    weights: defaultdict[str, float] = defaultdict(float, bias=-3.0)
    chance = random.Random(1)
    data = [(1.0, one) for one in hostile if one] + [(0.0, one) for one in benign if one]
    gain = max(1.0, 0.3 * len(benign) / len(hostile))

    def total(told: list[str]) -> float:
        return weights["bias"] + sum(weights[each] for each in told if counted[each] >= SEEN)

    for turn in range(ROUNDS):
        chance.shuffle(data)
        pace = PACE / (1 + 0.15 * turn)
        for truth, one in data:
            for told in [max(one, key=total)] if truth else one:
                guess = 1 / (1 + math.exp(-max(-30.0, min(30.0, total(told)))))
                step = max(-1.5, min(1.5, (truth - guess) * (gain if truth else 1.0)))
                weights["bias"] += 0.1 * pace * step
                for each in told:
                    if counted[each] >= SEEN:
                        weights[each] += pace * (step - DECAY * weights[each])
    return weights


def main(documents: list[str]) -> None:
    benign = list(corpus("benign"))
    for path in documents:
        found = bag(Path(path).read_text(encoding="utf-8", errors="replace"), "context")
        random.Random(path).shuffle(found)
        benign += [[told] for told in found[:MOST_OF_A_DOCUMENT]]
    weights = learnt(list(corpus("hostile")), benign)
    lines = [f"{name} {value:.2f}" for name, value in sorted(weights.items()) if abs(value) >= 0.05]
    head = (
        "# Learnt by scripts/learn_likeness.py from the corpora: an idea or two, and their weight."
    )
    WEIGHTS.write_text("\n".join([head, *lines, ""]), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} weights\n")


if __name__ == "__main__":
    main(sys.argv[1:])
