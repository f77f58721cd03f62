"""Finds standing rules of the user: sentences that sound like a rule, verbatim."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hermes.codec.values import Value
from hermes.context.marks import ATTACHED
from hermes.core.messages import Message, UserMessage

# Commands, bans and their withdrawal: kept before all others.
_STRONG = re.compile(
    r"""(?ix)\b(?:
    never|always|must|mustn't|shall\ not|do\ not|don't|may\ not|no\ longer|only\ use|use\ only
    |from\ now\ on|rule|rules|constraint|constraints|requirement|policy|convention|forbidden
    |prohibited|not\ allowed|under\ no\ circumstances|without\ asking|ask\ (?:me\ )?first
    |reject(?:ed)?|decided\ against|ruled\ out|scratch\ that|forget\ (?:what|the|about)
    |i\ changed\ my\ mind
    |nie|niemals|immer|verboten|ab\ jetzt|jamais|toujours|nunca|siempre|mai|sempre|nooit|altijd
    |никогда|всегда|нельзя
    )\b|(?:不要|不得|必须|总是|永远|禁止|絶対|必ず|항상|절대)"""
)
# Preferences, decisions and warnings. A false positive costs a few tokens; a false negative loses a
# wish.
_WEAK = re.compile(
    r"""(?ix)\b(?:
    avoid|prefer|instead\ of|rather\ than|stick\ (?:to|with)|keep\ (?:to|using)|in\ future
    |remember|note\ that|keep\ in\ mind|make\ sure|be\ sure|ensure|required|allowed\ to
    |decided\ (?:to|on)|did\ not\ work|didn't\ work|does\ not\ work|we\ tried|i\ tried|deprecated
    |cannot|can't|won't|shall|nicht|kein|keine|keinen|stattdessen|merk\ dir|bitte\ nur|ne\ pas
    )\b"""
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.S)
_LONGEST = 500
# Longer texts are pasted; the user's comment is before or after.
_SPOKEN = 6_000
_EDGE = 2_000


class StandingRule(Value):
    """A sentence of a message; `strong` ones are certainly rules."""

    message: UserMessage
    text: str
    strong: bool


def rules_in(message: UserMessage) -> list[StandingRule]:
    """Returns the sentences of a message that may be rules."""
    spoken = _FENCED.sub("\n", message.text.partition(ATTACHED)[0])
    if len(spoken) > _SPOKEN:
        spoken = spoken[:_EDGE] + "\n" + spoken[-_EDGE:]
    sentences = (each.strip() for each in _SENTENCE.split(spoken))
    return [
        StandingRule(message=message, text=each, strong=strong)
        for each in sentences
        if 3 < len(each) <= _LONGEST
        and ((strong := _STRONG.search(each) is not None) or _WEAK.search(each))
    ]


def standing_rules(messages: Iterable[Message]) -> list[StandingRule]:
    """Returns every rule once, at its newest position, oldest first."""
    found: dict[str, StandingRule] = {}
    for message in messages:
        if isinstance(message, UserMessage) and message.origin == "user":
            for rule in rules_in(message):
                key = " ".join(rule.text.lower().split()).rstrip(".!")
                found.pop(key, None)
                found[key] = rule
    return list(found.values())
