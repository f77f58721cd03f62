"""Finds the main content of a page: removes what is invisible or repeated on every page of a site,
then selects the part with the most prose."""

from __future__ import annotations

import re

from hermes.web.html_tree import Element

_INVISIBLE = frozenset(
    "head button input select option textarea datalist canvas audio video object embed map dialog "
    "template svg math".split()
)
_NEVER_BOILERPLATE = frozenset("body main article pre code table tbody tr td th".split())
_BOILERPLATE = frozenset("nav footer aside form menu".split())
_ROLES = frozenset(
    "navigation banner contentinfo complementary search dialog alertdialog menu menubar toolbar "
    "tablist alert".split()
)
_NAMES = re.compile(
    r"(?:^|[-_ ])(?:nav|navbar|navigation|menu|sidebar|side-bar|breadcrumbs?|footer|foot|masthead|"
    r"cookies?|consent|gdpr|banner|ads?|advert\w*|sponsor\w*|promo\w*|share|sharing|social|follow|"
    r"related|recommend\w*|popular|trending|newsletter|subscri\w+|signup|sign-up|login|popup|modal|"
    r"overlay|comments?|disqus|respond|pagination|pager|toolbar|skip|sr-only|visually-hidden|"
    r"screen-reader-text|print-only|tags?|tagcloud|widget|outbrain|taboola|paywall|noprint|"
    r"editsection|toc|metadata|byline-share|reading-time)(?:$|[-_ ])"
)
_CONTENT_NAMES = re.compile(
    r"(?:^|[-_ ])(?:article|body|content|entry|main|page|post|story|text|blog|prose|markdown)"
)
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$)"
    r"|font-size\s*:\s*0(?:px|em|rem|%)?\s*(?:;|$)|text-indent\s*:\s*-\d{3,}"
    r"|(?:left|top)\s*:\s*-\d{4,}px"
)
_SPACE = re.compile(r"\s+")
# What counts as prose for the score of its container.
_PROSE = frozenset("p pre blockquote li td dd".split())
_CONTAINERS = frozenset("body div section article main td center".split())
_TOP_CONTAINERS = ("main", "article")
# A part with this share of the page's text is content, whatever its name.
LARGE_SHARE = 0.5
LEAST_CHARS = 200
_LINK_LISTS = frozenset("ul ol div table section p".split())


def find_main(root: Element) -> Element:
    """Return the element with the main content, without boilerplate. The tree is changed."""
    body = next((each for each in root.walk() if each.tag == "body"), root)
    _remove_invisible(body)
    total = text_length(body)
    _remove_boilerplate(body, total)
    candidate = _declared_main(body) or _highest_score(body)
    if candidate is None or text_length(candidate) < min(LEAST_CHARS, 0.25 * text_length(body)):
        candidate = body
    _remove_link_lists(candidate)
    return candidate


def text_length(element: Element) -> int:
    return len(_SPACE.sub(" ", element.text()).strip())


def _remove_invisible(element: Element) -> None:
    element.children = [
        child for child in element.children if isinstance(child, str) or not _is_invisible(child)
    ]
    for child in element.elements:
        _remove_invisible(child)


def _is_invisible(element: Element) -> bool:
    attributes = element.attributes
    return (
        element.tag in _INVISIBLE
        or "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or bool(_HIDDEN_STYLE.search(attributes.get("style", "").lower()))
    )


def _remove_boilerplate(element: Element, total: int) -> None:
    kept: list[Element | str] = []
    for child in element.children:
        if isinstance(child, Element):
            if _is_boilerplate(child) and not _holds_content(child, total):
                continue
            _remove_boilerplate(child, total)
        kept.append(child)
    element.children = kept


def _is_boilerplate(element: Element) -> bool:
    if element.tag in _NEVER_BOILERPLATE:
        return False
    if element.tag in _BOILERPLATE or element.attributes.get("role", "").lower() in _ROLES:
        return True
    if element.tag == "header":
        # The header of an article has its title; that of a page has its menu.
        return not _is_inside(element, _TOP_CONTAINERS) and not _has(element, "h1")
    names = f"{element.attributes.get('class', '')} {element.attributes.get('id', '')}".lower()
    return bool(names.strip()) and bool(_NAMES.search(names)) and not _is_heading(element)


def _is_heading(element: Element) -> bool:
    return len(element.tag) == 2 and element.tag[0] == "h" and element.tag[1].isdigit()


def _holds_content(element: Element, total: int) -> bool:
    """Whether the element is too large, or too clearly content, to be boilerplate."""
    if any(each.tag in _TOP_CONTAINERS for each in element.walk()):
        return True
    length = text_length(element)
    return length > LARGE_SHARE * total and link_density(element, length) < 0.5


def _is_inside(element: Element, tags: tuple[str, ...]) -> bool:
    parent = element.parent
    while parent is not None:
        if parent.tag in tags:
            return True
        parent = parent.parent
    return False


def _has(element: Element, tag: str) -> bool:
    return any(each.tag == tag for each in element.walk())


def link_density(element: Element, length: int | None = None) -> float:
    """Return the share of the text that is inside links."""
    length = text_length(element) if length is None else length
    if not length:
        return 0.0
    linked = sum(text_length(each) for each in element.walk() if each.tag == "a")
    return min(1.0, linked / length)


def _declared_main(body: Element) -> Element | None:
    """Return the element that the page itself names as its content, if it is the only one."""
    for is_declared in (_is_article_body, _is_article, _is_main):
        found = [
            each for each in body.walk() if is_declared(each) and text_length(each) >= LEAST_CHARS
        ]
        if len(found) == 1:
            return found[0]
    return None


def _is_article_body(element: Element) -> bool:
    return element.attributes.get("itemprop", "").lower() == "articlebody"


def _is_article(element: Element) -> bool:
    return element.tag == "article"


def _is_main(element: Element) -> bool:
    return element.tag == "main" or element.attributes.get("role", "").lower() == "main"


def _highest_score(body: Element) -> Element | None:
    """Return the container with the most prose: paragraphs count for their parent, and half for
    the parent of that."""
    scores: dict[int, float] = {}
    elements: dict[int, Element] = {}
    for each in body.walk():
        if each.tag not in _PROSE:
            continue
        text = _SPACE.sub(" ", each.text()).strip()
        if len(text) < 25:
            continue
        score = (1 + text.count(",") + min(len(text) / 100, 3.0)) * (1 - link_density(each))
        parent, share = each.parent, 1.0
        while parent is not None and share > 0.2:
            if parent.tag in _CONTAINERS:
                elements[id(parent)] = parent
                scores[id(parent)] = scores.get(id(parent), 0.0) + score * share
                share /= 2
            parent = parent.parent
    if not scores:
        return None
    for key, element in elements.items():
        names = f"{element.attributes.get('class', '')} {element.attributes.get('id', '')}".lower()
        bonus = 1.25 if element.tag in _TOP_CONTAINERS or _CONTENT_NAMES.search(names) else 1.0
        scores[key] *= bonus * (1 - link_density(element))
    best = elements[max(scores, key=lambda key: scores[key])]
    return _widen(best, body)


def _widen(best: Element, body: Element) -> Element:
    """Return the parent if the content is split over several of its children."""
    while best.parent is not None and best is not body:
        parent = best.parent
        if parent.tag not in _CONTAINERS or link_density(parent) > 0.35:
            return best
        if text_length(parent) < 1.4 * text_length(best):
            return best
        prose = sum(text_length(each) for each in parent.walk() if each.tag in ("p", "pre"))
        own = sum(text_length(each) for each in best.walk() if each.tag in ("p", "pre"))
        if prose < 1.4 * own:
            return best
        best = parent
    return best


def _remove_link_lists(element: Element) -> None:
    """Remove blocks that consist of links, such as lists of other articles, unless the page is such
    a list."""
    if link_density(element) > 0.6:
        return
    _remove_below(element)


def _remove_below(element: Element) -> None:
    kept: list[Element | str] = []
    for child in element.children:
        if isinstance(child, Element):
            if _is_link_list(child):
                continue
            _remove_below(child)
        kept.append(child)
    element.children = kept


def _is_link_list(element: Element) -> bool:
    if element.tag not in _LINK_LISTS:
        return False
    links = sum(each.tag == "a" for each in element.walk())
    if links < 3:
        return False
    length = text_length(element)
    return link_density(element, length) > 0.8 and length < 40 * links
