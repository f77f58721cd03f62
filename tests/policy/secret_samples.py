"""Makes secrets of many kinds from patterns: nothing in the repository looks like a real one.

A line of the corpus is a kind, a tab, and a text in which the secret stands between « and ». In
it `{n:36}` are 36 letters and digits by chance, and so on for the other alphabets below.
"""

from __future__ import annotations

import random
import re
import string
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus_secrets"
LETTERS, DIGITS = string.ascii_letters, string.digits
ALPHABETS = {
    "n": LETTERS + DIGITS,
    "N": LETTERS,
    "h": "0123456789abcdef",
    "d": DIGITS,
    "l": string.ascii_lowercase + DIGITS,
    "u": string.ascii_uppercase + DIGITS,
    "U": string.ascii_uppercase + "234567",
    "a": LETTERS + DIGITS + "_-",
    "b": LETTERS + DIGITS + "+/",
    "p": LETTERS + DIGITS + "!#%*+-._~",
}
PART = re.compile(r"\{(?:g|([a-zA-Z]):(\d+))\}")


def lines(name: str) -> list[str]:
    text = (CORPUS / f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line]


def unescaped(text: str) -> str:
    text = text.replace("\\x1b", "\x1b").replace("\\u200b", "\u200b")
    return text.replace("\\\\n", "\0").replace("\\n", "\n").replace("\0", "\\n")


def sample(pattern: str, seed: int) -> tuple[str, list[str]]:
    """A text of this pattern and the secrets in it; the same ones for the same seed."""
    chance = random.Random(f"{pattern}{seed}")
    filled = PART.sub(lambda part: _made(part, chance), unescaped(pattern))
    secrets = re.findall("«(.*?)»", filled, re.S)
    return filled.replace("«", "").replace("»", ""), secrets


def _made(part: re.Match[str], chance: random.Random) -> str:
    if part[1] is None:
        digits = "".join(chance.choices(ALPHABETS["h"], k=32))
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
    letters = chance.choices(ALPHABETS[part[1]], k=int(part[2]))
    if part[1] == "p":
        letters[1:3] = [chance.choice(DIGITS), chance.choice(LETTERS)]
    for end in (0, -1):
        if not letters[end].isalnum():
            letters[end] = "Z"
    return "".join(letters)
