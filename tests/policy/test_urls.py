"""URLs: hostile ones are refused, good ones pass, and the checked address is the one used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.codec.json import decode
from hermes.codec.values import JsonObject
from hermes.core.effects import Allow, Deny
from hermes.policy.urls.addresses import address_kind
from hermes.policy.urls.parsing import RefusedUrl, parse_url
from hermes.policy.urls.url_policy import (
    Blocklist,
    StaticResolver,
    SystemResolver,
    UrlDecision,
    UrlPolicy,
)

CORPUS = Path(__file__).parent / "corpus_urls"


def lines(*names: str) -> list[JsonObject]:
    return [
        decode(dict, line)
        for name in names
        for line in (CORPUS / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
        if line
    ]


async def judged(line: JsonObject) -> UrlDecision:
    urls = UrlPolicy(
        StaticResolver(line.get("dns", {})), allow_private=bool(line.get("allow_private", False))
    )
    passage = await urls.check(line["value"])
    for location in line.get("redirects", []):
        if passage.allowed:
            passage = await urls.redirect(passage, location)
    return passage


def public(*addresses: str) -> UrlPolicy:
    return UrlPolicy(StaticResolver({"example.com": list(addresses or ("93.184.216.34",))}))


async def test_no_hostile_url_passes() -> None:
    passed = [line for line in lines("hostile", "hostile_held") if (await judged(line)).allowed]
    assert passed == []


async def test_no_good_url_is_refused() -> None:
    refused = [line for line in lines("good", "good_held") if not (await judged(line)).allowed]
    assert refused == []


CATEGORIES = (
    *("ambiguous_url", "scheme", "port", "private_address", "metadata", "reserved_address"),
    *("dns", "blocklist", "redirects"),
)


async def test_every_refusal_has_a_known_category_and_one_sentence() -> None:
    for line in lines("hostile", "hostile_held"):
        decision = (await judged(line)).decision
        assert isinstance(decision, Deny)
        assert decision.category in CATEGORIES
        assert decision.reason.endswith(".")


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    urls = UrlPolicy(StaticResolver({"a.example": [["93.184.216.34"], ["127.0.0.1"]]}))
    passage = await urls.check("http://a.example/")
    assert (passage.allowed, passage.connect) == (True, "93.184.216.34")


async def test_an_answer_that_changes_before_a_redirect_is_judged_anew() -> None:
    urls = UrlPolicy(StaticResolver({"a.example": [["93.184.216.34"], ["127.0.0.1"]]}))
    first = await urls.check("http://a.example/")
    second = await urls.redirect(first, "/next")
    assert second.decision == Deny(
        reason="a.example (127.0.0.1) is this machine itself; "
        "set security.allow_private_urls to true to allow it.",
        category="private_address",
    )


async def test_a_name_without_an_address_is_told() -> None:
    passage = await public().check("https://nowhere.example/")
    assert passage.decision == Deny(
        reason="nowhere.example could not be resolved (unknown name).", category="dns"
    )


async def test_a_slow_resolver_is_not_waited_for() -> None:
    class Slow:
        async def resolve(self, name: str) -> Sequence[str]:
            raise TimeoutError

    passage = await UrlPolicy(Slow()).check("https://example.com/")
    assert isinstance(passage.decision, Deny)
    assert "took too long" in passage.decision.reason


async def test_private_places_open_by_setting_but_metadata_never() -> None:
    urls = UrlPolicy(SystemResolver(), allow_private=True)
    assert (await urls.check("http://127.0.0.1:8080/")).connect == "127.0.0.1"
    metadata = await urls.check("http://169.254.169.254/")
    assert isinstance(metadata.decision, Deny)
    assert metadata.decision.hardline


async def test_the_system_resolves_this_machine() -> None:
    urls = UrlPolicy(SystemResolver(), allow_private=True)
    passage = await urls.check("http://localhost:9000/")
    assert passage.connect in ("127.0.0.1", "::1")


async def test_a_redirect_too_many_is_refused() -> None:
    passage = await public().check("http://example.com/0")
    for number in range(1, 6):
        passage = await public().redirect(passage, f"/{number}")
        assert passage.allowed
    assert not (await public().redirect(passage, "/6")).allowed


async def test_the_request_says_what_was_parsed() -> None:
    passage = await public().check("HTTP://me:pw@EXAMPLE.com:80/a?q=é#x")
    assert passage.target is not None
    assert passage.target.url == "http://example.com/a?q=%C3%A9"
    assert passage.target.user == "me:pw"


def test_the_text_alone_refuses_what_needs_no_resolver() -> None:
    urls = public()
    assert isinstance(urls.quick_check("http://2130706433/"), Deny)
    assert isinstance(urls.quick_check("http://example.com/"), Allow)


async def test_a_blocked_website_names_its_rule() -> None:
    blocks = Blocklist(["https://www.Bad.example/path  # why", "*.ads.example", ""])
    urls = UrlPolicy(StaticResolver({"x.bad.example": ["93.184.216.34"]}), blocks=blocks)
    assert (await urls.check("https://x.bad.example/")).decision == Deny(
        reason="x.bad.example is blocked by your rule 'bad.example'.", category="blocklist"
    )
    assert blocks.matching("a.b.ads.example") == "*.ads.example"
    assert blocks.matching("ads.example") == ""
    assert blocks.matching("notbad.example") == ""


def test_shared_blocklists_are_read_again_after_a_while(tmp_path: Path) -> None:
    now = [0.0]
    file = tmp_path / "shared.txt"
    blocks = Blocklist(["a.example"], [file, tmp_path / "missing"], lambda: now[0])
    assert blocks.matching("a.example") == "a.example"
    file.write_text("b.example\n")
    assert blocks.matching("b.example") == ""
    now[0] = 31.0
    assert blocks.matching("b.example") == "b.example"


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("8.8.8.8", "global"),
        ("::ffff:169.254.169.254", "metadata"),
        ("64:ff9b::808:808", "global"),
        ("::ffff:8.8.8.8", "never"),
        ("100.64.0.1", "private"),
        ("2606:4700::1111", "global"),
    ],
)
def test_an_address_has_one_kind(text: str, reach: str) -> None:
    kind = address_kind(text)
    assert kind is not None
    assert kind.reach == reach


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"https://{text}/x"):
        try:
            target = parse_url(url)
        except RefusedUrl:
            continue
        # What was understood is understood in the same way again.
        assert parse_url(target.url).host == target.host


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_no_spelling_of_a_number_is_a_host(number: int) -> None:
    for spelling in (str(number), hex(number), f"0{number:o}"):
        with pytest.raises(RefusedUrl):
            parse_url(f"http://{spelling}/")


@pytest.mark.slow
def test_a_decision_is_quick() -> None:
    rows = lines("hostile", "good")

    async def all_of_them() -> list[float]:
        took = []
        for line in rows:
            start = time.perf_counter()
            await judged(line)
            took.append(time.perf_counter() - start)
        return took

    took = sorted(asyncio.run(all_of_them()))
    assert took[int(len(took) * 0.95)] < 0.005
