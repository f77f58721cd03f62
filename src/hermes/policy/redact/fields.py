"""Finds secrets by the name that stands before them: variables, fields, headers, options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.redact.names import Weight, weight
from hermes.policy.redact.page import Page
from hermes.policy.redact.spans import Span
from hermes.policy.redact.strength import is_chosen, is_secret, kind_of_name, looks_random

# Words that a name which tells has in it. Each costs a search through the whole text.
_STEMS = (b"key", b"token", b"secret", b"pass", b"pwd", b"credential", b"auth", b"psk")
_EXACT_STEMS = (
    b"_PAT=",
    b"_PAT:",
    b'_PAT"',
    b"_pat=",
    b"_pat:",
    b"PW=",
    b"_SK=",
    b"_SK:",
    b"API_HASH=",
)
_SESSIONS = (b"sessionid=", b"sessid=")
# What can follow the rest of a name when a value stands near.
_LEADS = re.compile(
    rb"[a-z0-9_-]{0,32}(?:[\"'`\])<>\\:=%&]| \d{1,2}:"
    rb"|[ \t]+(?:[^ \t\na-z]|is|was|are|as|to|of|now|for|[^\s]*[\d'])|\s*-?\s*value)"
)
# Letters in no order of a word, where only the letters as they are written can tell.
_LED = re.compile(rb"[A-Za-z0-9_-]{0,32}[ \t]+\S*[a-z]\S*[A-Z]")
_BEFORE = re.compile(r"[A-Za-z0-9_.-]*\Z")
_WORD_BEFORE = re.compile(r"\b([A-Za-z]{2,16}) \Z")
_IMAGE_VARIABLE = re.compile(r"(?:^|\n)[ \t]*(?:ENV|ARG|#define)[ \t]+\Z")
_AFTER = re.compile(r"[A-Za-z0-9_-]*")
# What stands between a name and its value.
_SIGN = re.compile(
    r"""(?:\\{0,7}["'`\])]){0,3}(?: \d{1,2}(?=:)| \([^()\n]{1,30}\)(?=:))?"""
    r"""[ \t]{0,8}(?::=|=>|->|→|==?|:(?!:))"""
    r"""|["']\s*,\s*(?=["'])"""
)
_SPACE = re.compile(r"[ \t]+(?=\S)")
_JOINED = re.compile(r"[\"']?:(?![\s=])")
# What people make up to remember it: Word-Word-1234.
_BY_HEART = re.compile(r"(?:[A-Za-z][a-z]{2,}[-_.!]){1,4}[A-Z]?[a-z]*\d{2,8}")
_SPOKEN = re.compile(
    r"[ \t]+(?:(?:for|of|to) (?:the |my |our )?[\w@.-]+ )?"
    r"(?:is|was|are|to|now)(?: now| still)?:?[ \t]+"
)
_TAG = re.compile(r"(?:\s[^<>]{0,200})?>(?=[^<\s])")
_NEXT = re.compile(
    r"""["']?\s*[,:]?\s*\{?\s*(?:-\s*)?["']?(?:value|Value|VALUE|val|default|content)["']?\s*[:=]\s*"""
    r"""|["']?\s*\{\s*(?:\w{1,20}\s*=\s*[^\n]{1,80}\n\s*){0,3}?default\s*=\s*"""
    r"""|</\w{1,20}>\s*<(?:string|value|Value|data)>(?=[^<\s])"""
)
# In a URL or a page, where signs are written in another way.
_CODED = re.compile(
    r"""(?x) (?:%(?:25)*2[27]|&quot;|&\#0?3[49];|\\u002[27]|\\{0,7}["'])?
    (?:\s|%(?:25)*20|\+){0,3} (?::|=|%(?:25)*3[aAdD]) (?:\s|%(?:25)*20|\+){0,3}
    (?:%(?:25)*2[27]|&quot;|&\#0?3[49];|\\u002[27])
    (?P<value>(?:(?!%(?:25)*2[267])[^\s&"'\\<>]){4,2048})"""
)
_WRAPPED = re.compile(
    r"""[ \t]*(?:new[ ]|\[\])?(?P<call>[A-Za-z_][\w.]{0,40})\(\s*[rbuf]?"""
    r"""(?P<quote>["'])(?P<value>[^"'\n]{1,512})(?P=quote)"""
)
_FETCHING = re.compile(
    r"(?i)env|get|read|load|find|input|path|hash|sha|name|prompt|lookup|ref|field|column|arg|type"
)
# What is taken when nothing is found where it was looked for.
_OTHERWISE = re.compile(r"""["']\s*,\s*["'](?P<value>[^"'\n]{8,256})["']""")
_LIST = re.compile(r"""[ \t]*\[[ \t]*(?=["'])""")
_STATEMENT = re.compile(r"(?i)\s*(?:with \w+ )?(?:by\s+)?(?:password\s*)?\(?(?=')")

_PROPERTY = re.compile(r"""["'][^<>\n]{0,100}>(?=[^<\s])""")
_DECLARED = re.compile(r"(?i)[ \t]+as[ \t]+\w{1,20}[ \t]*=[ \t]*")
_TYPE = re.compile(r"[ \t]*[A-Za-z_&*\[][\w.\[\]|<>&*' ]{0,40}[ \t]*=(?!=)[ \t]*")
_QUOTED = re.compile(
    r"""(?x) [ \t]* [rbuf@$]{0,2} (?P<quote>\\{0,7}(?:\"\"\"|'''|["'`]))
    (?P<value>(?:(?!(?P=quote))[^\n]){0,2048}?) (?P=quote)"""
)
# What prose puts between such marks: a program with one word, or with the address of a secret.
_COMMAND = re.compile(r"[a-z][a-z-]+ (?:[a-z-]+|[a-z -]*[a-z]+://[\w./-]+)")
_BARE = re.compile(r"""[ \t]*(?P<value>[^\s"'`,;<>()\[\]{}&|\\][^\s"'`,;<>\[\]{}&|\\]*)""")
_ENVIRONMENT = re.compile(r"""(?P<value>[^\s"'`;<>|&][^\s"'`]{0,2047})""")
_BLOCK = re.compile(r"[ \t]*[|>][-+]?[ \t]*\n[ \t]+(?P<value>\S{1,2048})")
_SCHEME = re.compile(
    r"(?i)[ \t]*[\"']?(?:bearer|basic|token|apikey|api-key|key|digest|negotiate|bot|oauth)[ \t]+"
)
# Any word may be the scheme of an Authorization header.
_ANY_SCHEME = re.compile(r"[ \t]*[\"']?[A-Za-z][\w-]{1,20}[ \t]+(?=[^\s<${])")
_EMPHASIS = re.compile(r"(?:\*\*|__)[ \t]+(?=[^*_\s])")
_MORE = re.compile(r" [a-z]")
_TABLE = re.compile(r"[ \t]*\|[ \t]*")
_OPEN = re.compile(r"[ \t]*[\"'`“]?(?P<value>[^\s\"'`”“<>]{1,2048})")


def in_fields(page: Page) -> Iterator[Span]:
    done = -1
    for at in sorted(_hits(page)):
        # Two stems in one name are one field.
        if at < done:
            continue
        field = _field(page.text, at)
        done = field.end
        if field.found is not Weight.NONE and (span := field.secret()):
            done = span.end
            yield span


def _hits(page: Page) -> Iterator[int]:
    for stem in _STEMS:
        for at in page.places(stem):
            if _LEADS.match(page.low, at) or _LED.match(page.data, at):
                yield at
    for name in _SESSIONS:
        yield from page.places(name)
    yield from page.places(b"identified by")
    for stem in _EXACT_STEMS:
        yield from page.places(stem, exact=True)


def _field(text: str, at: int) -> _Field:
    end = _end(_AFTER, text, at)
    before = _BEFORE.search(text, max(0, at - 64), at)
    start = before.start() if before else at
    # Of a dotted name the last part counts: `spring.datasource.password`.
    name = text[start:end].rstrip(".-").rpartition(".")[2]
    if text[start - 1 : start] == ":" and "arn:" in text[max(0, start - 80) : start]:
        # The name of a resource, and not of a field.
        return _Field(text, name, Weight.NONE, start, end)
    if _is_expanded(text, start, end) or _in_template(text, start):
        return _Field(text, name, Weight.NONE, start, end)
    if text[at : at + 13].lower() == "identified by":
        return _Field(text, "password", Weight.PASSWORD, start, at + 10)
    if name in ("key", "Key", "token") and (
        word := _WORD_BEFORE.search(text, max(0, start - 24), start)
    ):
        # In a sentence the words of a name stand apart: "the API key is …".
        name = f"{word[1]}_{name}"
    return _Field(text, name, weight(name), start, end)


def _is_expanded(text: str, start: int, end: int) -> bool:
    """A shell puts something else there: `${NAME…`, `$(name)`, `$NAME:…`."""
    opening = text[max(0, start - 2) : start]
    if opening.endswith("$"):
        return _JOINED.match(text, end) is not None
    return opening == "${" or (opening == "$(" and text.startswith(")", end))


def _in_template(text: str, at: int) -> bool:
    """Between `{{` and `}}`: the name of a value that is put in later."""
    opened = text.rfind("{{", max(0, at - 120), at)
    return opened >= 0 and "}}" not in text[opened:at] and "\n" not in text[opened:at]


def _end(expression: re.Pattern[str], text: str, at: int) -> int:
    found = expression.match(text, at)
    return found.end() if found else at


class _Field:
    """A name that may tell, at its place in a text."""

    def __init__(self, text: str, name: str, found: Weight, start: int, end: int) -> None:
        self.text = text
        self.name = name
        self.found = found
        self.start = start
        self.end = end

    def secret(self) -> Span | None:
        text, end = self.text, self.end
        if following := _NEXT.match(text, end):
            return self._assigned(following.end())
        if self.found >= Weight.TOKEN and (inner := _PROPERTY.match(text, end)):
            random = _not_any_word(self.found)
            return self._checked(_OPEN.match(text, inner.end()), quoted=True, found=random)
        if declared := _DECLARED.match(text, end):
            return self._checked(_QUOTED.match(text, declared.end()), quoted=True)
        if (coded := _CODED.match(text, end)) and self.found >= Weight.TOKEN:
            return self._checked(coded, quoted=True)
        if sign := _SIGN.match(text, end):
            return self._assigned(sign.end()) if self._can_assign(sign) else None
        if self.found < Weight.TOKEN:
            option = text[self.start : self.start + 2] == "--"
            return self._option() if option and text[end : end + 1] == " " else None
        if table := _TABLE.match(text, end):
            random = _not_any_word(self.found)
            return self._checked(_OPEN.match(text, table.end()), quoted=True, found=random)
        if text[end : end + 1] == ">" or text[end : end + 1].isspace():
            if self._in_tag() and (tag := _TAG.match(text, end)):
                return self._checked(_OPEN.match(text, tag.end()), quoted=True)
            if spoken := _SPOKEN.match(text, end):
                return self._spoken(spoken.end())
            variable = _IMAGE_VARIABLE.search(text, max(0, self.start - 40), self.start)
            if variable or (self.start > 0 and text[self.start] == "-"):
                return self._option()
            if statement := _STATEMENT.match(text, end):
                return self._checked(_QUOTED.match(text, statement.end()), quoted=True)
            if (
                "_" in self.name
                and self.found < Weight.PASSWORD
                and (space := _SPACE.match(text, end))
            ):
                # `aws configure set aws_secret_access_key …`
                return self._checked(_OPEN.match(text, space.end()), found=Weight.HINT)
            if (space := _SPACE.match(text, end)) and self.name.lower() != "bearer":
                return self._next(space.end())
            if self.name.lower() == "password" and "login " in text[max(0, self.start - 120) : end]:
                return self._checked(_OPEN.match(text, end), quoted=True)
        return None

    def _next(self, at: int) -> Span | None:
        """`use the token 0123…`: long and by chance, or it is the next word of a sentence.
        After `password` it may be shorter if no word looks like it."""
        match = _OPEN.match(self.text, at)
        if match is None:
            return None
        if len(match["value"]) >= 24:
            return self._checked(match, found=Weight(self.found - 1))
        if self.found is Weight.PASSWORD and is_chosen(match["value"]):
            return self._checked(match, quoted=True)
        return None

    def _can_assign(self, sign: re.Match[str]) -> bool:
        if sign[0].endswith("=="):
            return _QUOTED.match(self.text, sign.end()) is not None
        # A comma is one only in a call such as define('NAME', 'value'), not in a list.
        return "," not in sign[0] or (
            self.text[max(0, self.start - 2) : self.start].strip() in ('("', "('", '"', "'")
            and "(" in self.text[max(0, self.start - 4) : self.start]
        )

    def _in_tag(self) -> bool:
        return self.text[max(0, self.start - 40) : self.start].rpartition("<")[2].strip(
            "/"
        ) == "" and ("<" in self.text[max(0, self.start - 40) : self.start])

    def _option(self) -> Span | None:
        space = _SPACE.match(self.text, self.end)
        if space is None or self.text[space.end()] == "-":
            return None
        quoted = _QUOTED.match(self.text, space.end())
        return self._checked(quoted or _OPEN.match(self.text, space.end()), quoted=True)

    def _spoken(self, at: int) -> Span | None:
        match = _OPEN.match(self.text, at)
        if match is None:
            return None
        value = match["value"].rstrip(".,;:!?)")
        random = _not_any_word(self.found)
        by_heart = self.found is Weight.PASSWORD and _BY_HEART.fullmatch(value) is not None
        if not by_heart and not is_secret(value, self.name, random, quoted=True, environment=False):
            return None
        start = match.start("value")
        return Span(start=start, end=start + len(value), kind=kind_of_name(self.name))

    def _assigned(self, at: int) -> Span | None:
        text = self.text
        if text[at - 1 : at] == ":" and (typed := _TYPE.match(text, at)):
            # Past the type in `password: str = "x"`.
            at = typed.end()
        at = _end(_EMPHASIS, text, at)
        header = self.name.lower().endswith("authorization")
        if scheme := (_ANY_SCHEME if header else _SCHEME).match(text, at):
            at = scheme.end()
            self.found = max(self.found, Weight.TOKEN)
            return self._checked(_OPEN.match(text, at), quoted=True)
        if wrapped := _WRAPPED.match(text, at):
            return self._wrapped(wrapped)
        at = _end(_LIST, text, at)
        environment = self.name.isupper() and at == self.end + 1 and text[at - 1] == "="
        if quoted := _QUOTED.match(text, at):
            return self._checked(quoted, quoted=True)
        if environment:
            return self._checked(_ENVIRONMENT.match(text, at), environment=True)
        return self._checked(_BLOCK.match(text, at) or _BARE.match(text, at))

    def _wrapped(self, call: re.Match[str]) -> Span | None:
        """`SecretStr("…")`, `[]byte("…")`, and what a look-up falls back to."""
        if not _FETCHING.search(call["call"]):
            random = looks_random(call["value"], strict=False)
            return self._checked(call, quoted=True) if random else None
        spare = _OTHERWISE.match(self.text, call.end() - 1)
        return self._checked(spare, quoted=True) if spare and is_chosen(spare["value"]) else None

    def _checked(
        self,
        match: re.Match[str] | None,
        *,
        quoted: bool = False,
        environment: bool = False,
        found: Weight | None = None,
    ) -> Span | None:
        if match is None:
            return None
        start, end = match.span("value")
        if not quoted and not environment:
            follows = self.text[end : end + 2]
            # A call, or the first word of a sentence.
            if follows[:1] in ("[", "(") or (match["value"].isalpha() and _MORE.match(follows)):
                return None
            end -= len(match["value"]) - len(_without_closers(match["value"]))
        if environment:
            end -= len(match["value"]) - len(match["value"].rstrip(",;"))
        value = self.text[start:end]
        if self.text[start - 1 : start] == "`" and _COMMAND.fullmatch(value):
            return None
        weighed = found or self.found
        if not is_secret(value, self.name, weighed, quoted=quoted, environment=environment):
            return None
        return Span(start=start, end=end, kind=kind_of_name(self.name))


def _without_closers(value: str) -> str:
    """Without brackets that were opened before the value."""
    while value.endswith(")") and value.count(")") > value.count("("):
        value = value[:-1]
    return value


def _not_any_word(found: Weight) -> Weight:
    """In a sentence or a table even a password must look like one."""
    return min(found, Weight.TOKEN)
