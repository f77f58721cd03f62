from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.workspaces.search.charset import ANY, all_but, as_utf8, common, in_both_cases, union
from hermes.workspaces.search.dialects import for_grep, for_python, for_ripgrep
from hermes.workspaces.search.pattern import parse


@pytest.mark.parametrize(
    ("pattern", "line", "matches"),
    [
        ("gr.ße", "größe", True),
        ("^.{3}$", "äöü", True),
        (r"\bfoo\b", "a foo.", True),
        (r"\bfoo\b", "food", False),
        ("(?i)ÄB", "äb", True),
        ("(?i:a)B", "AB", True),
        ("(?i:a)B", "Ab", False),
        ("a(?i)b|c", "C", True),
        ("(?-i)A", "a", False),
        (r"[^\w\s]", "a b", False),
        ("[[:upper:]]", "aB", True),
        ("[]a]", "]", True),
        ("interface Foo {", "interface Foo {", True),
        ("a{,2}b", "aab", True),
        ("x{1,2", "x{1,2", True),
        (r"\x41\u0042\x{43}", "ABC", True),
        ("a|", "zzz", True),
        ("(?P<name>a)(?:b)", "ab", True),
        (r"\.\*\(", ".*(", True),
        ("a.*?b", "axxb", True),
        ("foo$", "foo\r", True),
        (r"\Aa\z", "a", True),
        ("[a-]", "-", True),
        (r"[\d-]", "-", True),
        ("[^é]", "é", False),
    ],
)
def test_patterns_mean_what_they_say(pattern: str, line: str, matches: bool) -> None:
    assert bool(for_python(parse(pattern)).search(line)) is matches


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a(", r"missing '\)'"),
        ("a)", "unmatched"),
        ("[a", "missing ']'"),
        ("*a", "nothing to repeat"),
        ("a**", "multiple repeat"),
        ("a++", "multiple repeat"),
        ("a{2}{3}", "multiple repeat"),
        ("(?=a)", "not supported"),
        ("(?<!a)b", "not supported"),
        (r"(a)\1", "not supported"),
        (r"\p{L}", "not supported"),
        ("a\nb", "line break"),
        (r"a\nb", "line break"),
        (r"[\n]", "line break"),
        ("a\\", "backslash at the end"),
        ("a{3,1}", "repetition count"),
        ("a{5000}", "repetition count"),
        ("((a{99}){99}){99}", "too many"),
        ("^*", "anchor"),
        ("[z-a]", "bad range"),
        ("[[:nope:]]", "no class"),
        (r"\x{110000}", "no such character"),
        (r"[^\w\W]", "matches nothing"),
        ("\udcff", "not valid Unicode"),
    ],
)
def test_what_is_not_in_the_dialect_is_told(pattern: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        parse(pattern)


def test_edges_that_cannot_matter_are_left_out() -> None:
    assert parse(".*foo.{0,500}") == parse("foo")
    assert parse("a{2,}b") == parse("a{2}b")
    assert parse("x*") == parse("")


def test_each_engine_gets_its_own_words() -> None:
    tree = parse(r"a.b$|[ä]\b")
    every = r"[\x{1}-\x{9}\x{b}-\x{d7ff}\x{e000}-\x{10ffff}]"
    assert for_ripgrep(tree) == rf"(?:a{every}b(?:\r?$)|\x{{e4}}(?-u:\b))"
    assert b"\xc3\xa4\\b" in for_grep(tree)


RANGES = st.lists(
    st.tuples(st.integers(1, 0x10FFFF), st.integers(1, 0x10FFFF)).map(lambda p: (min(p), max(p)))
).map(lambda pairs: common(ANY, union(pairs)))
CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0\n")


@given(ranges=RANGES, char=CHARACTERS)
def test_sets_and_their_complements_share_nothing(
    ranges: tuple[tuple[int, int], ...], char: str
) -> None:
    def has(some: tuple[tuple[int, int], ...]) -> bool:
        return any(low <= ord(char) <= high for low, high in some)

    assert has(ranges) is not has(all_but(ranges))
    assert has(in_both_cases(ranges)) or not has(ranges)


@given(ranges=RANGES, char=CHARACTERS)
def test_utf8_spellings_are_exactly_those_of_the_set(
    ranges: tuple[tuple[int, int], ...], char: str
) -> None:
    spelled = b"|".join(
        b"".join(b"[%b-%b]" % (re.escape(bytes([a])), re.escape(bytes([b]))) for a, b in sequence)
        for sequence in as_utf8(ranges)
    )
    inside = any(low <= ord(char) <= high for low, high in ranges)
    assert bool(re.fullmatch(spelled or rb"(?!)", char.encode(), re.DOTALL)) is inside
