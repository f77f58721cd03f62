"""Finds secrets by the name before them, or by the heading of their column."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.patterns import regex
from hermes.policy.redact.heuristics import (
    NameWeight,
    is_chosen,
    is_secret,
    kind_of_name,
    looks_random,
    name_weight,
)
from hermes.policy.redact.spans import SearchText, SecretSpan

_HEADS = (b"password", b"passwd", b"secret", b"token", b"api_key", b"apikey", b"api key")
_SIGNS = ("|", ",", ";", "\t")
_MOST_ROWS = 200


def find_in_columns(page: SearchText) -> Iterator[SecretSpan]:
    done = 0
    for head in _HEADS:
        for at in page.places(head):
            start = page.text.rfind("\n", 0, at) + 1
            end = page.text.find("\n", at)
            if end < 0 or end < done or end - start > 400:
                continue
            line = page.text[start:end]
            for sign in _SIGNS:
                if line.count(sign) and (names := _names(line, sign)):
                    done = end
                    yield from _rows(page.text, end + 1, sign, line.count(sign), names)


def _names(line: str, sign: str) -> dict[int, str]:
    """Return the column numbers of secret names; a table head has short words only."""
    cells = [cell.strip(" \"'*`") for cell in line.split(sign)]
    if any(len(cell) > 30 or not re.fullmatch(r"[\w .#-]*", cell) for cell in cells):
        return {}
    named = {number: cell.replace(" ", "_") for number, cell in enumerate(cells) if cell}
    # A list has one item in each line.
    if len(named) < 2 and not line.lstrip().startswith("|"):
        return {}
    return {number: name for number, name in named.items() if name_weight(name) >= NameWeight.TOKEN}


def _rows(text: str, at: int, sign: str, count: int, names: dict[int, str]) -> Iterator[SecretSpan]:
    for _ in range(_MOST_ROWS):
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        cells = text[at:end].split(sign)
        if len(cells) != count + 1:
            return
        for number, name in names.items():
            start = at + sum(len(cell) + 1 for cell in cells[:number])
            bare = cells[number].strip(" \"'`")
            start += cells[number].find(bare) if bare else 0
            if bare and is_secret(bare, name, NameWeight.TOKEN, quoted=True, environment=False):
                yield SecretSpan(start=start, end=start + len(bare), kind="password")
        at = end + 1
        if at >= len(text):
            return


# Stems of secret names. Each costs one search through the text.
_STEMS = (b"key", b"token", b"secret", b"pass", b"pwd", b"credential", b"auth", b"psk")
_EXACT_STEMS = (
    b"PAT=",
    b"PAT:",
    b"PAT is",
    b"pat is",
    b'_PAT"',
    b"pat=",
    b"pat:",
    b"PW=",
    b"_SK=",
    b"_SK:",
    b"API_HASH=",
)
_SESSIONS = (b"sessionid=", b"sessid=")
# What may follow a name before its value.
_LEADS = regex(
    rb"[a-z0-9_-]{0,32}(?:[\"'`\])<>\\:=%&]| \d{1,2}:"
    rb"|\?=|[ \t]+(?:[^ \t\na-z]|string =|is|was|are|as|to|of|now|for|[^\s]*[\d'])|\s*-?\s*value)"
)
# Letters in no order of a word, where only the letters as they are written can tell.
_LED = regex(rb"[A-Za-z0-9_-]{0,32}[ \t]+\S*[a-z]\S*[A-Z]")
_BEFORE = regex(r"[A-Za-z0-9_.-]*\Z")
_WORD_BEFORE = regex(r"\b([A-Za-z]{2,16}) \Z")
_IMAGE_VARIABLE = regex(r"(?:^|\n)[ \t]*(?:ENV|ARG|#define)[ \t]+\Z")
_AFTER = regex(r"[A-Za-z0-9_-]*")
# Separators between a name and its value.
_SIGN = regex(
    r"""(?:\\{0,7}["'`\])]){0,3}(?: \d{1,2}(?=:)| \([^()\n]{1,30}\)(?=:))?"""
    r"""[ \t]{0,8}(?::{1,3}=|[?.+]=|(?:\|\||\?\?)=|<-(?=[ \t]*["'])|=>|->|→|==?|:(?!:)"""
    r"""|-(?=[ \t]["'])|string[ \t]=)"""
    r"""|["']\s*,\s*(?=["'])"""
)
_SPACE = regex(r"[ \t]+(?=\S)")
_JOINED = regex(r"[\"']?:(?![\s=])")
# Memorable passwords: Word-Word-1234.
BY_HEART = regex(r"(?:[A-Za-z][a-z]{2,}[-_.!]){1,4}[A-Z]?[a-z]*\d{2,8}")
_SPOKEN = regex(
    r"[ \t]+(?:(?:for|of|to) (?:the |my |our )?[\w@.-]+ )?"
    r"(?:is|was|are|to|now)(?: now| still)?:?[ \t]+"
)
_TAG = regex(r"(?:\s[^<>]{0,200})?>\s{0,40}(?=[^<\s])")
_NEXT = regex(
    r"""["']?\s*[,:]?\s*\{?\s*(?:-\s*)?["']?(?:value|Value|VALUE|val|default|content)["']?\s*[:=]\s*"""
    r"""|["']?\s*\{\s*(?:\w{1,20}\s*=\s*[^\n]{1,80}\n\s*){0,3}?default\s*=\s*"""
    r"""|</\w{1,20}>\s*<(?:string|value|Value|data)>(?=[^<\s])"""
)
# URL- and HTML-encoded assignments.
_CODED = regex(
    r"""(?x) (?:%(?:25)*2[27]|&quot;|&\#0?3[49];|\\u002[27]|\\{0,7}["'])?
    (?:(?:\s|%(?:25)*20|\+){0,3} (?::|=|%(?:25)*3[aAdD]) (?:\s|%(?:25)*20|\+){0,3}
    (?:%(?:25)*2[27]|&quot;|&\#0?3[49];|\\u002[27]) | %(?:25)*3[aAdD])
    (?P<value>(?:(?!%(?:25)*2[267])[^\s&"'\\<>]){4,2048})"""
)
_WRAPPED = regex(
    r"""[ \t]*(?:new[ ]|\[\])?(?P<call>[A-Za-z_][\w.]{0,40})\(\s*[rbuf]?"""
    r"""(?P<quote>["'])(?P<value>[^"'\n]{1,512})(?P=quote)"""
)
_FETCHING = regex(
    r"(?i)env|get|read|load|find|input|path|hash|sha|name|prompt|lookup|ref|field|column|arg|type|encode"
)
# The default argument of a look-up.
_OTHERWISE = regex(r"""["']\s*,\s*["'](?P<value>[^"'\n]{8,256})["']""")
_LIST = regex(r"""[ \t]*\[[ \t]*(?=["'])""")
_STATEMENT = regex(r"(?i)\s*(?:with \w+ )?(?:by\s+)?(?:password\s*)?\(?(?=')")

_PROPERTY = regex(r"""["'][^<>\n]{0,100}>(?=[^<\s])""")
_DECLARED = regex(r"(?i)[ \t]+as[ \t]+\w{1,20}[ \t]*=[ \t]*")
_TYPE = regex(r"[ \t]*[A-Za-z_&*\[][\w.\[\]|<>&*' ]{0,40}[ \t]*=(?!=)[ \t]*")
_QUOTED = regex(
    r"""(?x) [ \t]* [rbuf@$]{0,2} (?P<quote>\\{0,7}(?:\"\"\"|'''|["'`]))
    (?P<value>(?:(?!(?P=quote))[^\n]){0,2048}?) (?P=quote)"""
)
# Code in backticks: a program with one argument, or a reference to a secret.
_COMMAND = regex(r"[a-z][a-z-]+ (?:[a-z-]+|[a-z -]*[a-z]+://[\w./-]+)")
_BARE = regex(r"""[ \t]*(?P<value>[^\s"'`,;<>()\[\]{}&|\\][^\s"'`,;<>\[\]{}&|\\]*)""")
_ENVIRONMENT = regex(r"""(?P<value>[^\s"'`;<>|&][^\s"'`]{0,2047})""")
_BLOCK = regex(r"[ \t]*[|>][-+]?[ \t]*\n[ \t]+(?P<value>\S{1,2048})")
_SCHEME = regex(
    r"(?i)[ \t]*[\"']?(?:bearer|basic|token|apikey|api-key|key|digest|negotiate|bot|oauth)[ \t]+"
)
# Any word may be an Authorization scheme.
_ANY_SCHEME = regex(r"[ \t]*[\"']?[A-Za-z][\w-]{1,20}[ \t]+(?=[^\s<${])")
_EMPHASIS = regex(r"(?:\*\*|__)[ \t]+(?=[^*_\s])")
_MORE = regex(r" [a-z{(]")
_TABLE = regex(r"[ \t]*\|[ \t]*")
_OPEN = regex(r"[ \t]*[\"'`“]?(?P<value>[^\s\"'`”“<>]{1,2048})")


def find_by_field_name(page: SearchText) -> Iterator[SecretSpan]:
    done = -1
    for at in sorted(_hits(page)):
        # Two stems in one name are one field.
        if at < done:
            continue
        field = _field(page.text, at)
        done = field.end
        if field.found is not NameWeight.NONE and (span := field.secret()):
            done = span.end
            yield span


def _hits(page: SearchText) -> Iterator[int]:
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
        return _Field(text, name, NameWeight.NONE, start, end)
    if _is_expanded(text, start, end) or _in_template(text, start):
        return _Field(text, name, NameWeight.NONE, start, end)
    if text[at : at + 13].lower() == "identified by":
        return _Field(text, "password", NameWeight.PASSWORD, start, at + 10)
    if name in ("key", "Key", "token") and (
        word := _WORD_BEFORE.search(text, max(0, start - 24), start)
    ):
        # In a sentence the words of a name stand apart: "the API key is …".
        name = f"{word[1]}_{name}"
    return _Field(text, name, name_weight(name), start, end)


def _is_expanded(text: str, start: int, end: int) -> bool:
    """Whether the shell expands the value: `${NAME…`, `$(name)`, `$NAME:…`."""
    opening = text[max(0, start - 2) : start]
    if opening.endswith("$"):
        return _JOINED.match(text, end) is not None
    return opening == "${" or (opening == "$(" and text.startswith(")", end))


def _in_template(text: str, at: int) -> bool:
    """Whether the position is inside a `{{ }}` template."""
    opened = text.rfind("{{", max(0, at - 120), at)
    return opened >= 0 and "}}" not in text[opened:at] and "\n" not in text[opened:at]


def _end(expression: re.Pattern[str], text: str, at: int) -> int:
    found = expression.match(text, at)
    return found.end() if found else at


class _Field:
    """A candidate name at its position in a text."""

    def __init__(self, text: str, name: str, found: NameWeight, start: int, end: int) -> None:
        self.text = text
        self.name = name
        self.found = found
        self.start = start
        self.end = end

    def secret(self) -> SecretSpan | None:
        text, end = self.text, self.end
        if following := _NEXT.match(text, end):
            if following[0].endswith(">"):
                return self._check(_OPEN.match(text, following.end()), quoted=True)
            return self._assigned_value(following.end())
        if self.found >= NameWeight.TOKEN and (inner := _PROPERTY.match(text, end)):
            random = _not_any_word(self.found)
            return self._check(_OPEN.match(text, inner.end()), quoted=True, found=random)
        if declared := _DECLARED.match(text, end):
            return self._check(_QUOTED.match(text, declared.end()), quoted=True)
        if (coded := _CODED.match(text, end)) and self.found >= NameWeight.TOKEN:
            return self._check(coded, quoted=True)
        if sign := _SIGN.match(text, end):
            return self._assigned_value(sign.end()) if self._can_assign(sign) else None
        if self.found < NameWeight.TOKEN:
            if self.name.lower() == "pat" and (spoken := _SPOKEN.match(text, end)):
                return self._check(_OPEN.match(text, spoken.end()), quoted=True)
            option = text[self.start : self.start + 2] == "--"
            return self._option() if option and text[end : end + 1] == " " else None
        if table := _TABLE.match(text, end):
            random = _not_any_word(self.found)
            return self._check(_OPEN.match(text, table.end()), quoted=True, found=random)
        if text[end : end + 1] == ">" or text[end : end + 1].isspace():
            if self._in_tag() and (tag := _TAG.match(text, end)):
                return self._check(_OPEN.match(text, tag.end()), quoted=True)
            if spoken := _SPOKEN.match(text, end):
                return self._in_sentence(spoken.end())
            variable = _IMAGE_VARIABLE.search(text, max(0, self.start - 40), self.start)
            if variable or (self.start > 0 and text[self.start] == "-"):
                return self._option()
            if statement := _STATEMENT.match(text, end):
                return self._check(_QUOTED.match(text, statement.end()), quoted=True)
            if (
                "_" in self.name
                and self.found < NameWeight.PASSWORD
                and (space := _SPACE.match(text, end))
            ):
                # `aws configure set aws_secret_access_key …`
                return self._check(_OPEN.match(text, space.end()), found=NameWeight.HINT)
            if (space := _SPACE.match(text, end)) and self.name.lower() != "bearer":
                return self._next(space.end())
            if self.name.lower() == "password" and "login " in text[max(0, self.start - 120) : end]:
                return self._check(_OPEN.match(text, end), quoted=True)
        return None

    def _next(self, at: int) -> SecretSpan | None:
        """Return the value behind a name in a sentence: `use the token 0123…`. It must be long and
        random, or it is probably the next word; after `password` it may be shorter if it is no
        word."""
        match = _OPEN.match(self.text, at)
        if match is None:
            return None
        if len(match["value"]) >= 24:
            return self._check(match, found=NameWeight(self.found - 1))
        if self.found is NameWeight.PASSWORD and is_chosen(match["value"]):
            return self._check(match, quoted=True)
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

    def _option(self) -> SecretSpan | None:
        space = _SPACE.match(self.text, self.end)
        if space is None or self.text[space.end()] == "-":
            return None
        quoted = _QUOTED.match(self.text, space.end())
        return self._check(quoted or _OPEN.match(self.text, space.end()), quoted=True)

    def _in_sentence(self, at: int) -> SecretSpan | None:
        match = _OPEN.match(self.text, at)
        if match is None:
            return None
        value = match["value"].rstrip(".,;:!?)")
        random = _not_any_word(self.found)
        by_heart = self.found is NameWeight.PASSWORD and BY_HEART.fullmatch(value) is not None
        if not by_heart and not is_secret(value, self.name, random, quoted=True, environment=False):
            return None
        start = match.start("value")
        return SecretSpan(start=start, end=start + len(value), kind=kind_of_name(self.name))

    def _assigned_value(self, at: int) -> SecretSpan | None:
        text = self.text
        if text[at - 1 : at] == ":" and (typed := _TYPE.match(text, at)):
            # Past the type in `password: str = "x"`.
            at = typed.end()
        at = _end(_EMPHASIS, text, at)
        header = self.name.lower().endswith("authorization")
        if scheme := (_ANY_SCHEME if header else _SCHEME).match(text, at):
            at = scheme.end()
            self.found = max(self.found, NameWeight.TOKEN)
            return self._check(_OPEN.match(text, at), quoted=True)
        if wrapped := _WRAPPED.match(text, at):
            return self._unwrap(wrapped)
        at = _end(_LIST, text, at)
        environment = self.name.isupper() and at == self.end + 1 and text[at - 1] == "="
        if quoted := _QUOTED.match(text, at):
            return self._check(quoted, quoted=True)
        if environment:
            return self._check(_ENVIRONMENT.match(text, at), environment=True)
        return self._check(_BLOCK.match(text, at) or _BARE.match(text, at))

    def _unwrap(self, call: re.Match[str]) -> SecretSpan | None:
        """Find the value in `SecretStr("…")` or `[]byte("…")`, or the default of a look-up."""
        if not _FETCHING.search(call["call"]):
            random = looks_random(call["value"], strict=False)
            return self._check(call, quoted=True) if random else None
        spare = _OTHERWISE.match(self.text, call.end() - 1)
        return self._check(spare, quoted=True) if spare and is_chosen(spare["value"]) else None

    def _check(
        self,
        match: re.Match[str] | None,
        *,
        quoted: bool = False,
        environment: bool = False,
        found: NameWeight | None = None,
    ) -> SecretSpan | None:
        if match is None:
            return None
        start, end = match.span("value")
        if not quoted and not environment:
            follows = self.text[end : end + 2]
            # A call, or the first word of a sentence.
            if follows[:1] in ("[", "(", "<") or (
                match["value"].isalpha() and _MORE.match(follows)
            ):
                return None
            if self.text[self.end : self.end + 1] in ("'", '"') and match["value"].isidentifier():
                # A variable: a name in quotes has a value in quotes.
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
        return SecretSpan(start=start, end=end, kind=kind_of_name(self.name))


def _without_closers(value: str) -> str:
    """Strip closing brackets that were opened before the value."""
    while value.endswith(")") and value.count(")") > value.count("("):
        value = value[:-1]
    return value


def _not_any_word(found: NameWeight) -> NameWeight:
    """Limit the weight to TOKEN: in a sentence or a table, a password must not look like a word."""
    return min(found, NameWeight.TOKEN)
