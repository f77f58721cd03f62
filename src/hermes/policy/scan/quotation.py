"""Decides whether a text talks about an injection instead of addressing a model."""

from __future__ import annotations

import re


def _by_first_letter(alternatives: str) -> str:
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


# Words earlier in the sentence that attribute the phrase to somebody.
_SPEAKERS = (
    r"attack(?:er|ers|s)?\b|adversar\w+|malicious|injection\w*|injected|jailbreak\w*|phishing"
    r"|untrusted"
    r"|hostile|payloads?|exploit\w*|threats?\b|red[- ]team\w*|vulnerab\w+|poison\w*|mallory"
    # "tell the user" is an instruction, not a report.
    r"|\b(?:tries|trying|attempt\w*|tells|telling|told|asks|asking|instruct(?:s|ed|ing)"
    r"|convinc(?:es|ed|ing)|trick\w*|lures|persuad(?:es|ed|ing))"
    r" (?:the |an? |our |your |it\b|its|them|you\b|users?|to |models?|agents?|llms?"
    r"|assistants?|claude|gpt|hermes|bots?)"
    r"|detect\w*|scann(?:er|ing)\w*|scans?\b|flag(?:s|ged|ging)\b|block(?:s|ed|ing|list)\b"
    r"|reject\w*|refus(?:es|ed|ing)\b|filters\b|sanitiz\w+"
    r"|match(?:es|ing)\b|recogni[sz]\w+|prevent\w*|mitigat\w+|defen[cds]\w*"
    r"|protects? (?:against|from)"
    r"|guards? against|classif\w+"
    r"|such as|e\.g\.|for example|for instance|known as|phrases?\b|strings? like|patterns?\b"
    r"|regex\w*|wording|sentences? like"
    r"|tests? (?:that|whether|for|case)|false positives?|fixtures?|corpus|dataset"
    r"|never (?:follow|obey|trust|comply|act)|(?:do|must|should|will|can|does)(?: not"
    r"|n't) (?:follow|obey|trust|comply|believe)"
    r"|if (?:a|an|any|some) (?:\w+ ){1,2}(?:says?|claims?|asks?|tells?|contains?|tries|wants)"
    r"|\b(?:is|was|are|were|be|been) (?:asked|told|tricked|instructed) to\b|translation of|coined"
    r"|\btyped\b|\bincident\b|\bwe tried\b|\bwhen asked to\b|\basked (?:gpt|llama|gemini|five|ten)"
    r"|\bstud(?:y|ies)\b|researchers?|\bdemo\b|test prompts?|\bexercise\b|\bnovel\b|chapter"
    r"|social engineering|scammers?|intruders?|fraudsters?|\bfools?\b|infamous|well-known trick"
    # The same in other languages.
    r"|攻击|攻擊|攻撃|注入|インジェクション|공격|인젝션|angriff|angreifer|attaqu|ataque|atacante"
    r"|inyeccion|injecao|iniezione|attacc(?:o|hi|ante)|aanval|injectie|\batak|wstrzykn|атак|внедрени"
    r"|злоумышленник|зловмисник|ін'єкці|هجوم|حقن|हमला|हमले|इंजेक्शन|saldiri|enjeksiyon"
)
_SPEAKER = re.compile(_by_first_letter(_SPEAKERS))
# Words near quotation marks that make them a quotation.
_QUOTING = re.compile(
    r"says?\b|saying|said|called|claims?|contain\w*|includ\w+|quot\w+|so-called|keywords?"
    r"|examples?|docs?\b|documents?\b"
    r"|fixed?\b|adds?\b|added|removed?\b|changelog|rules?\b|cve-|owasp|users? who|people who"
    r"|texts?\b|words?\b|assert|mean(?:s|ing)?\b"
    r"|prompts?\b|cannot|can't|not\b|write|writes|header|titled?|named|flag\b|option|marker"
    r"|tokens?|template|removes|style|list"
)
# After these words an instruction is forbidden or reported, not given.
_REPORTING = re.compile(
    r"(?:^|[\s\W])(?:do not|don't|never|must not|should not|shouldn't|cannot|can't|may not"
    r"|refuse to|refuses to|declines? to|won't|not to|without|you can|users can)\W{1,3}\Z"
    # "To …" explains how to reach a goal.
    r"|^\W*(?:in order )?to\W{1,3}\Z"
)
# Lists, tables and block quotes: the text around them says what they are.
_SET_APART = re.compile(r"[ \t]*(?:>|\||[-+] |\d+[.)] )")
_ATTACK = re.compile(
    r"\b(?:attack\w*|prompt injections?|injected|payloads?|jailbreak\w*|red[- ]team\w*|adversarial"
    r"|exploit\w*|malicious|test cases?|flagged|blocked|detected)\b"
)
_OPENERS = "\"'`“‘«‹「『（(["
_CLOSERS = "\"'`”’»›」』）)]"
_SENTENCE = re.compile(r"[.!?;。！？]\s|\n\s*\n|\n\s*(?:[-*#>|]|\d+\.)\s")
# The value of a field is not a quotation.
_VALUE = re.compile(r"[\"'\w]\s{0,2}[:=]\s{0,2}[\"'`][^\"'`]*\Z")


def is_reported(text: str, start: int) -> bool:
    """Whether the sentence forbids or reports what begins at `start`."""
    sentence = _SENTENCE.split(text[max(0, start - 280) : start])[-1]
    return _REPORTING.search(sentence) is not None or _SPEAKER.search(sentence) is not None


def is_quotation(text: str, start: int, end: int) -> bool:
    """Whether the words from `start` to `end` are reported, quoted as an example, or forbidden."""
    if text[end - 1 : end] in _CLOSERS:
        end -= 1
    before = text[max(0, start - 280) : start]
    breaks = [match.end() for match in _SENTENCE.finditer(before)]
    sentence = before[breaks[-1] :] if breaks else before
    if _REPORTING.search(sentence):
        return True
    reported = _SPEAKER.search(sentence) is not None
    if _is_quoted(text, start, end):
        wider = before[breaks[-2] :] if len(breaks) > 1 else before
        near = _SPEAKER.search(wider) or _QUOTING.search(sentence)
        if reported or near is not None or _spoken_after(text, end):
            return True
    return reported or _is_example(text, start, end)


def _is_example(text: str, start: int, end: int) -> bool:
    """Whether the line is a list item, table row or block quote in a text about attacks."""
    line = text.rfind("\n", 0, start) + 1
    if not _SET_APART.match(text, line):
        return False
    return _ATTACK.search(text, max(0, line - 240), line) is not None or (
        text[line:].lstrip().startswith(">") and _ATTACK.search(text, end, end + 160) is not None
    )


def _spoken_after(text: str, end: int) -> bool:
    after = _SENTENCE.split(text[end : end + 160], maxsplit=1)[0]
    return (
        re.search(
            r"攻|공격|インジェクション|\b(?:attack\w*|inject\w*"
            r"|is (?:flagged|blocked|rejected|refused|detected)"
            r"|are (?:flagged|blocked|rejected|refused|detected)"
            r"|should be (?:flagged|blocked|rejected|ignored|refused)|jailbreak\w*|payload\w*"
            r"|false positives?|phrases?|patterns?|examples?)\b",
            after,
        )
        is not None
    )


def _is_quoted(text: str, start: int, end: int) -> bool:
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    before = text[line_start:start]
    if _VALUE.search(before):
        return False
    after = text[end : line_end if line_end >= 0 else len(text)]
    for opener, closer in zip(_OPENERS[:9], _CLOSERS[:9], strict=True):
        if opener == "'":
            inside = re.search(r"(?:^|[\s(\[])'[^']*\Z", before) is not None and "'" in after
        elif opener == closer:
            inside = before.count(opener) % 2 == 1 and closer in after
        else:
            inside = before.rfind(opener) > before.rfind(closer) and closer in after
        if inside:
            return True
    return "|" in before and "|" in after
