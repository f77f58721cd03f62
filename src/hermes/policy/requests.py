"""Tells whether the person's own words ask for an effect, so that text in files is not its only
possible cause."""

from __future__ import annotations

import posixpath
import re

from hermes.core.ports import ConversationText
from hermes.policy.patterns import regex

# How much of a memory must be the person's own words.
OWN_SHARE = 0.6
# Words without a content of their own, or that a model adds to every memory.
_COMMON = frozenset(
    "user users prefer prefers preferred preference want wants wanted like likes always never uses "
    "using project their they them that this these those with should must from have has had when "
    "into name named called the and for not but are was were will would can does did don doesn "
    "isn aren its his her him she who which than then also only any all our your you "
    "der die das den dem des ein eine einen einer nutzer benutzer nutzerin und oder nicht kein "
    "keine soll sollen will möchte mag heißt ist sind war hat mit von für auf bei "
    "los las una del usuario usuaria quiere que con por para como son está sus "
    "les une des utilisateur utilisatrice veut est sont avec pour dans sur qui pas".split()
)
_WORD = regex(r"[^\W_][\w./@:+-]*[^\W_]|[^\W_]")
_EXACT = regex(r"[\d./@:]")
_ENDINGS = ("", "s", "es", "d", "ed", "ing")
_INFLECTED = 6
_PUSH = regex(r"git push(?: (?:-u|--set-upstream|-v|-q|--tags|--follow-tags))*(?: [\w./@-]+){0,2}")
# What the person rules out, in the words just before it.
_REFUSES = (
    r"\b(?:not|never|no|without|before|unless|don['’]?t|won['’]?t|nicht|nie|kein\w*|ohne)\b"
    r"(?:\W+\w+){0,4}\W+"
)
# How a request begins, before its verb.
_BEGINNING = (
    r"(?:^|[.!?;:,(\n]|\b(?:and|then|please|also|to|now|ok|okay|just|let['’]?s|go ahead|"
    r"(?:can|could|would|will) (?:you|we)|you (?:can|may|should)|"
    r"und|dann|bitte|jetzt|kannst du|könntest du)\b)\W*"
)
_WANTED = regex(
    rf"{_BEGINNING}(?:git[ -]push|push(?![\w-]| (?:notif|messag|event|button))|"
    r"(?:publish|upload|send|submit)\b(?=[^.!?\n]{0,60}\b(?:origin|remote|upstream|repository|repo|"
    r"github|gitlab|codeberg|bitbucket)\b)|schieb\w*\b(?=[^.!?\n]{0,60}\b(?:push|remote|origin)\b))",
    re.IGNORECASE,
)
_TIMES = regex(
    r"\b(?:remind|schedule|cron|every|each|daily|hourly|weekly|monthly|tomorrow|tonight|job|jobs|"
    r"later|jede\w*|täglich|morgen|erinnere)\b",
    re.IGNORECASE,
)
_CLOCK = regex(r"(?<!\S)[\d*/,:.-]+[smhdw]?(?!\S)|\b(?:every|once|at|in|daily|am|pm)\b")
_CHANGES = {"workflows": ("workflow", "workflows", "CI", "GitHub Actions")}


def asks_to_write(path: str, seen: ConversationText | None) -> bool:
    """Whether the person named a file that instructs agents, or its kind."""
    folder, name = posixpath.split(path)
    kinds = _CHANGES.get(posixpath.basename(folder), ())
    return seen is not None and any(_asked_about(each, seen) for each in (name, *kinds))


def asks_to_change_skill(name: str, seen: ConversationText | None) -> bool:
    return seen is not None and any(_asked_about(each, seen) for each in (name, "skill", "skills"))


def asks_to_remember(text: str, seen: ConversationText | None) -> bool:
    """Whether a memory says little more than the person said. Names, numbers and addresses in it
    must be the person's."""
    return seen is not None and _is_own(text, seen)


def asks_to_schedule(action: str, text: str, seen: ConversationText | None) -> bool:
    """Whether the person spoke of a time or a job, and the task says little more than they did."""
    if seen is None or not (seen.user_matches(_TIMES) or seen.user_wrote(action)):
        return False
    # The person may say the time in other words.
    return _is_own(_CLOCK.sub(" ", text), seen) or seen.user_wrote(text)


def _is_own(text: str, seen: ConversationText) -> bool:
    words = {word for word in map(str.lower, _WORD.findall(text)) if len(word) > 2} - _COMMON
    own = {word for word in words if _wrote(word, seen)}
    if any(_EXACT.search(word) for word in words - own):
        return False
    return bool(own) and len(own) >= OWN_SHARE * len(words)


def _wrote(word: str, seen: ConversationText) -> bool:
    """Whether the person wrote the word or another form of it."""
    stem = next((word.removesuffix(e) for e in ("ing", "ed", "es", "s") if word.endswith(e)), word)
    if any(seen.user_wrote(base + end) for base in {word, stem} for end in _ENDINGS):
        return True
    # Languages with other endings: the same word but for its last letter or two.
    if len(word) < _INFLECTED or not word.isalpha():
        return False
    other_form = re.compile(rf"\b{re.escape(word[:-2])}[^\W\d_]{{0,3}}\b", re.IGNORECASE)
    return seen.user_matches(other_form)


def asks_for_command(command: str, seen: ConversationText | None) -> bool:
    """Whether the person wrote the command, or asked for a push that overwrites nothing."""
    if seen is None or not command:
        return False
    if _asked_about(command, seen):
        return True
    return _PUSH.fullmatch(command) is not None and asks_to_push(seen)


def asks_to_push(seen: ConversationText) -> bool:
    return seen.user_matches(_WANTED) and not _refused("push", seen)


def _asked_about(name: str, seen: ConversationText) -> bool:
    return seen.user_wrote(name) and not _refused(name, seen)


def _refused(name: str, seen: ConversationText) -> bool:
    return seen.user_matches(re.compile(_REFUSES + re.escape(name), re.IGNORECASE))
