"""Which pages a robots.txt opens, as RFC 9309 describes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.web.robots import parse_robots

FILE = """\
# a comment
User-agent: *
Disallow: /private/
Allow: /private/open
Disallow: /*.pdf$
Disallow: /search?*q=

User-agent: Other
User-agent: Hermes-Agent   # that is us
Disallow: /not-for-hermes
Disallow:
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True), ("/private/", False), ("/private/x", False), ("/private/open/x", True),
        ("/a/b.pdf", False), ("/a/b.pdf?x", True), ("/search?lang=en&q=a", False),
        ("/search", True),
    ],
)  # fmt: skip
def test_the_longest_rule_decides(path: str, allowed: bool) -> None:
    rules = parse_robots(FILE.replace("Hermes-Agent", "Somebody"))
    assert rules.allows(f"https://a.example{path}") is allowed


def test_a_group_for_hermes_replaces_the_general_one() -> None:
    rules = parse_robots(FILE)
    assert not rules.allows("https://a.example/not-for-hermes/1")
    assert rules.allows("https://a.example/private/")


def test_everything_can_be_closed_and_opened() -> None:
    assert not parse_robots("User-agent: *\nDisallow: /").allows("https://a.example")
    assert parse_robots("User-agent: *\nDisallow: /\nAllow: /").allows("https://a.example/x")
    assert parse_robots("<html>not found</html>").allows("https://a.example/x")


@given(st.text(alphabet="*$/ab", max_size=40), st.text(alphabet="/ab", max_size=40))
def test_no_pattern_is_too_strange(pattern: str, path: str) -> None:
    rules = parse_robots(f"User-agent: *\nDisallow: {pattern}")
    assert rules.allows(f"https://a.example/{path}") in (True, False)
