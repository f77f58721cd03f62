"""What is left of a page when only its words are wanted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.core.ports import FetchResponse
from hermes.web.reading import extract_text, extract_words

PAGE = """<!doctype html><html><head><title>Herons</title><style>p {color: red}</style></head>
<body><nav><a href="/">Home</a></nav><h1>Grey
heron</h1><p>It  stands &amp; waits.</p><script>steal("<p>no</p>")</script>
<ul><li>long legs<li>grey</ul><pre>a
  b</pre><table><tr><td>1<td>2</table><footer>Imprint</footer></body></html>"""


def fetched(body: bytes, kind: str = "text/html", status: int = 200) -> FetchResponse:
    return FetchResponse(
        url="http://a.example/", status=status, headers={"content-type": kind}, body=body
    )


def test_words_stay_and_machinery_goes() -> None:
    assert extract_words(PAGE) == (
        "Herons\n\n# Grey heron\n\nIt stands & waits.\n\n- long legs\n- grey\n\na\n  b\n\n| 1 | 2"
    )


def test_plain_text_stays_as_it_is() -> None:
    assert extract_text(fetched(b"a <b>\n", "text/plain; charset=utf-8")) == "a <b>"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("grün".encode("latin-1"), "text/html; charset=ISO-8859-1"),
        (b'<meta charset="latin-1"><p>gr\xfcn', "text/html"),
        ("grün".encode(), "text/html; charset=nonsense"),
    ],
)
def test_letters_are_read_as_they_were_written(body: bytes, kind: str) -> None:
    assert extract_text(fetched(body, kind)) == "grün"


@pytest.mark.parametrize(
    ("page", "words"),
    [(fetched(b"no", status=404), "404"), (fetched(b"\x89PNG", "image/png"), "image/png")],
)
def test_what_is_no_text_is_refused(page: FetchResponse, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        extract_text(page)


@given(st.text(alphabet="<>/ab&;!-\"'= \nscriptpre", max_size=200))
def test_no_page_is_too_broken(html: str) -> None:
    assert "\n\n\n" not in extract_words(html)
