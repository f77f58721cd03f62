"""Conversion of Markdown into the markup of platforms."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.gateway.markup.converters import find_converter
from hermes.surfaces.gateway.markup.matrix_html import to_matrix_html
from hermes.surfaces.gateway.markup.plain import to_plain
from hermes.surfaces.gateway.markup.telegram_html import to_telegram_html, visible_text
from hermes.testing.platforms.telegram_markup import MarkupError, parse_html

# Pieces that have a meaning in Markdown, in HTML or in both, and text in between.
PIECES = st.sampled_from(
    [
        *"** * _ __ ~~ ` `` ``` ~~~ || > # ## - 1. 7) [ ]( ) \\ --- *** === | < > & \" '".split(),
        *"<b> </b> <script> <!-- --> &amp; &lt &#0; <https://a.b> tg-spoiler word é 日本".split(),
        *("\n", "\n\n", "\t", "    ", "```py\n", "> > ", "- ", "# ", "two words", "👩‍👩‍👧"),
        *("\u0000", "\u200b", "\ud800", "](javascript:alert(1))", '](http://x.y?a=1&b="2")'),
        *("| a | b |\n", "|---|---|\n", "|a|b|\n|-|-|\n|1|2|\n"),
    ]
)
MARKDOWN = st.lists(PIECES | st.text(max_size=6), max_size=25).map("".join)

MATRIX_TAGS = {
    *"p h1 h2 h3 h4 h5 h6 blockquote ul ol li pre code table thead tbody tr th td".split(),
    *"strong em del a span br hr".split(),
}
MATRIX_ATTRIBUTES = {("a", "href"), ("ol", "start"), ("code", "class"), ("span", "data-mx-spoiler")}


class MatrixValidator(HTMLParser):
    """Fails for unbalanced tags, and for tags, attributes and links that Matrix does not allow."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.opened: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in MATRIX_TAGS
        for name, value in attrs:
            assert (tag, name) in MATRIX_ATTRIBUTES
            if name == "href":
                assert (value or "").partition(":")[0].lower() in {
                    "http", "https", "ftp", "mailto", "magnet"
                }  # fmt: skip
        if tag not in ("br", "hr"):
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("br", "hr"):
            assert self.opened.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration")

    def check(self, html: str) -> None:
        self.feed(html)
        self.close()
        assert self.opened == []


@given(MARKDOWN)
def test_telegram_accepts_the_html_of_any_markdown(markdown: str) -> None:
    html = to_telegram_html(markdown)
    text, _ = parse_html(html)
    assert text == visible_text(html)


@given(MARKDOWN)
def test_matrix_html_is_balanced_and_within_the_allowed_subset(markdown: str) -> None:
    MatrixValidator().check(to_matrix_html(markdown))


@given(MARKDOWN)
def test_plain_text_can_be_encoded(markdown: str) -> None:
    to_plain(markdown).encode("utf-8")


@given(
    st.lists(st.text("abcäß日", min_size=1), min_size=1, max_size=8), st.sampled_from("*_~`>#- ")
)
def test_no_word_is_lost(words: list[str], mark: str) -> None:
    markdown = f" {mark} ".join(words)
    for convert in (to_plain, lambda text: visible_text(to_telegram_html(text))):
        shown = convert(markdown)
        assert all(word in shown for word in words)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**a** *b* ~~c~~ `d`", "<b>a</b> <i>b</i> <s>c</s> <code>d</code>"),
        ("1 < 2 & <i>x</i>", "1 &lt; 2 &amp; &lt;i&gt;x&lt;/i&gt;"),
        ("||hidden||", "<tg-spoiler>hidden</tg-spoiler>"),
        ("# Head **x**", "<b>Head x</b>"),
        ("[a](https://b.c/?d=1&e=2)", '<a href="https://b.c/?d=1&amp;e=2">a</a>'),
        ("[a](b/c.md)", "a (b/c.md)"),
        ("![pic](https://b.c/p.png)", '<a href="https://b.c/p.png">pic</a>'),
        ("- a\n- b\n  1. c", "• a\n• b\n  1. c"),
        ("> a\n> > b", "<blockquote>a\nb</blockquote>"),
        ("```py\nx = 1 < 2\n```", '<pre><code class="language-py">x = 1 &lt; 2</code></pre>'),
        ("| a | b |\n|-|-|\n| long | 日本 |", "<pre>a    | b\n-----+-----\nlong | 日本</pre>"),
        ("```\nleft open", "<pre>left open</pre>"),
    ],
)
def test_telegram_shows_markup_as_it_is_meant(markdown: str, html: str) -> None:
    assert to_telegram_html(markdown) == html


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("a\nb", "<p>a<br/>b</p>"),
        ("<img src=x onerror=y>", "<p>&lt;img src=x onerror=y&gt;</p>"),
        ("![p](https://b.c/p.png)", '<p><a href="https://b.c/p.png">p</a></p>'),
        ("||x||", "<p><span data-mx-spoiler>x</span></p>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    ],
)
def test_matrix_shows_markup_as_it_is_meant(markdown: str, html: str) -> None:
    assert to_matrix_html(markdown) == html


def test_plain_text_names_the_target_of_a_link() -> None:
    assert to_plain("**Read** [the docs](https://x.y) or <https://z>") == (
        "Read the docs (https://x.y) or https://z"
    )


@pytest.mark.parametrize(
    "text", ["<b>a", "a</b>", "<b>a</i>", "<p>a</p>", "<b", "a < b", "<code><b>a</b></code>"]
)
def test_the_validator_refuses_what_telegram_refuses(text: str) -> None:
    with pytest.raises(MarkupError):
        parse_html(text)


@pytest.mark.parametrize("name", ["plain", "telegram-html", "matrix-html"])
def test_every_converter_is_found_by_name(name: str) -> None:
    assert "word" in find_converter(name)("word")
