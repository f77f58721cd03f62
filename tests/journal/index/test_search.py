"""Finding messages."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import pytest

from hermes.codec.json import convert
from hermes.journal.index.filters import Filters
from hermes.journal.index.search import MessageHit, SearchIndex
from hermes.journal.index.source import JournalFile, Role
from tests.journal.index.diary import DAY, NOON, Diary, turn_started


async def found(index: SearchIndex, query: str) -> list[int]:
    return [hit.event_id for hit in await index.search(query)]


async def test_a_hit_tells_where_the_message_is(diary: Diary, index: SearchIndex) -> None:
    diary.add(turn_started(), session="first")
    diary.say("The invoice of March is in the blue folder.", session="first", at=NOON)
    (hit,) = await index.search("invoice")
    assert hit == MessageHit(
        session_id="first",
        n=2,
        event_id=2,
        at=NOON,
        role="user",
        snippet="The >>>invoice<<< of March is in the blue folder.",
        score=hit.score,
    )
    assert hit.score > 0


async def test_a_word_that_nobody_wrote_hides_nothing(diary: Diary, index: SearchIndex) -> None:
    for number in range(400):
        diary.say(f"The file of day {number} is in the folder.")
    diary.say("An invoice came with the file.")
    assert len(await found(index, "zebra file")) == 10
    assert (await found(index, "zebra invoice file"))[0] == 401
    assert await found(index, "zebra") == []


@pytest.mark.parametrize(
    "query",
    [
        "append AND delete",
        "(append AND (delete",
        '"only append"',
        'append "delete everything"',
        "What was the append-only thing, again?!",
        "append's",
        "Where’s the journal?",
    ],
)
async def test_no_sign_or_operator_hides_what_is_there(
    diary: Diary, index: SearchIndex, query: str
) -> None:
    wanted = diary.say("the journal is append-only")
    assert await found(index, query) == [wanted]


async def test_words_that_must_be_there_leave_out_the_others_where_anybody_has_them(
    diary: Diary, index: SearchIndex
) -> None:
    diary.say("red paint")
    both = diary.say("red paint on a boat")
    diary.say("a paper boat")
    assert await found(index, "red AND boat") == [both]
    assert await found(index, '"paint on a boat"') == [both]


async def test_there_is_nothing_without_a_journal(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path / "index.db", JournalFile(tmp_path / "hermes.db"))
    assert await index.search("anything") == ()
    await index.catch_up()
    assert await index.check() == []
    assert not (tmp_path / "index.db").exists()


async def test_an_empty_journal_and_an_empty_query(diary: Diary, index: SearchIndex) -> None:
    assert await index.search("anything") == ()
    diary.say("something")
    assert await index.search("") == ()
    assert await index.search("something", limit=0) == ()


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("journal", "The Journal is append-only."),
        ("JOURNAL", "the journal is append-only"),
        ("ourna", "the journal is append-only"),
        ("jour*", "the journal is append-only"),
        ("journals", "the journal is append-only"),
        ("migrating", "the migration took an hour"),
        ("cafe", "We meet at the Café."),
        ("CAFÉ", "we meet at the cafe"),
        ("grosse", "die Größe der Datei"),
        ("größe", "DIE GROSSE DATEI"),
        ("read_fil", "then call read_file twice"),
        ("ead_file", "then call read_file twice"),
        ("read_file", "then call read_file twice"),
        ("a.b.c", "import a.b.c as d"),
        ("foo-bar", "the foo-bar service"),
        ("foo-bar", "the foo bar service"),
        ("src/hermes/app.py", "edit src/hermes/app.py now"),
        ("hermes/app", "edit src/hermes/app.py now"),
        ("app.py:12", "error in app.py:12"),
        ("4f2a", "commit 9c4f2ab81 is bad"),
        ("c++", "we write C++ here"),
        ('"append only"', "the journal is append-only"),
        ('"is append on*"', "the journal is append-only"),
        ("数据库", "我们昨天迁移了数据库。"),
        ("迁移", "我们昨天迁移了数据库。"),
        ("库", "我们昨天迁移了数据库。"),
        ("移", "我们昨天迁移了数据库。"),
        ("数据库迁移计划", "数据库迁移的计划已经写好"),
        ("日本", "私は日本語を話します"),
        ("語", "私は日本語を話します"),
        ("データベース", "データベースを移行した"),
        ("서버", "서버가 다운되었습니다"),
        ("서버를", "서버가 다운되었습니다"),
        ("ошибка", "Исправили ошибки на сервере"),
        ("файл", "Удалить файлы из папки"),
        ("ภาษา", "เขาพูดภาษาไทย"),
        ("हिन्दी", "मुझे हिन्दी आती है"),
        ("🚀", "we are live 🚀"),
        ("python", "使用python编程"),
        ("readFile", "const x = readFile(path)"),
        ("dfil", "const x = readFile(path)"),
    ],
)
async def test_a_message_is_found(diary: Diary, index: SearchIndex, query: str, text: str) -> None:
    diary.say_all(
        ["Nothing of interest here.", "另一条完全不同的信息", "Совсем другое дело", "別の話"]
    )
    wanted = diary.say(text)
    assert await found(index, query) == [wanted]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("append NOT journal", "the journal is append-only"),
        ('"zebra crossing"', "the journal is append-only"),
        ("zebra AND quagga", "the journal is append-only"),
        ("quux", "the journal is append-only"),
        ("数猫", "我们昨天迁移了数据库。"),
        ("date", "all data is gone"),
        ("!!!", "the journal !!!"),
    ],
)
async def test_a_message_is_not_found(
    diary: Diary, index: SearchIndex, query: str, text: str
) -> None:
    diary.say(text)
    assert await found(index, query) == []


async def test_calls_are_found_and_thoughts_are_not(diary: Diary, index: SearchIndex) -> None:
    body = (
        '{"type":"reply_added","message":{"type":"assistant","parts":['
        '{"type":"reasoning","text":"ponder"},{"type":"tool_call","id":"c","name":"web_search",'
        '"arguments":{"query":"weather Lisbon"}}]},"usage":{},"model":"m","provider":"p"}'
    )
    wanted = diary.add_body(body, kind="reply_added")
    assert await found(index, "lisbon") == [wanted]
    assert await found(index, "web_search") == [wanted]
    assert await found(index, "ponder") == []


async def test_new_messages_are_found_at_once(diary: Diary, index: SearchIndex) -> None:
    for number in range(30):
        wanted = diary.say(f"Note number {number} is about topic{number}.")
        assert await found(index, f"topic{number}") == [wanted]
    assert len(await index.search("note", limit=50)) == 30


async def test_what_the_journal_lost_is_not_shown(diary: Diary, index: SearchIndex) -> None:
    diary.say("a secret plan", session="gone")
    kept = diary.say("a public plan", session="kept")
    assert len(await found(index, "plan")) == 2
    diary.delete_session("gone")
    assert await found(index, "plan") == [kept]


async def test_filters(diary: Diary, index: SearchIndex) -> None:
    roles: tuple[Role, ...] = ("user", "assistant", "tool")
    ids = {
        (session, role): diary.say(
            "the same words", session=session, role=role, at=NOON + day * DAY + hour * 3600
        )
        for day, session in enumerate(("a", "b", "c"))
        for hour, role in enumerate(roles)
    }

    async def search(**filters: object) -> set[tuple[str, Role]]:
        hits = await index.search("same words", convert(Filters, filters), limit=20)
        return {key for key, id in ids.items() if id in {hit.event_id for hit in hits}}

    everything = set(ids)
    assert await search() == everything
    assert await search(sessions=["a"]) == {key for key in everything if key[0] == "a"}
    assert await search(sessions=["a", "c", "x"]) == {key for key in everything if key[0] != "b"}
    assert await search(sessions=[]) == set()
    assert await search(exclude=["a", "b"]) == {key for key in everything if key[0] == "c"}
    assert await search(roles=["tool"]) == {key for key in everything if key[1] == "tool"}
    assert await search(roles=["user", "assistant"], sessions=["b"]) == {
        ("b", "user"),
        ("b", "assistant"),
    }
    assert await search(since=NOON + DAY) == {key for key in everything if key[0] != "a"}
    assert await search(until=NOON + DAY) == {key for key in everything if key[0] == "a"}
    assert await search(since=NOON + 1, until=NOON + 3601) == {("a", "assistant")}
    assert await search(since=NOON + 3600, until=NOON + 3600) == set()


async def test_many_sessions_can_be_chosen_and_left_out(diary: Diary, index: SearchIndex) -> None:
    for number in range(120):
        diary.say("the same words", session=f"s{number}")
    some = frozenset(f"s{number}" for number in range(0, 120, 3))
    inside, outside = Filters(sessions=some), Filters(exclude=some)
    chosen = {hit.session_id for hit in await index.search("words", inside, limit=200)}
    others = {hit.session_id for hit in await index.search("words", outside, limit=200)}
    assert chosen == some
    assert others == {f"s{number}" for number in range(120)} - chosen


async def test_a_shorter_list_begins_like_a_longer_one(diary: Diary, index: SearchIndex) -> None:
    diary.say_all([f"message {number} about tea" for number in range(60)])
    diary.say_all([f"message {number} about teapots" for number in range(10)])
    everything = await index.search("tea", limit=100)
    assert await index.search("tea", limit=7) == everything[:7]
    assert len(everything) == 70
    assert [hit.score for hit in everything] == sorted((h.score for h in everything), reverse=True)
    assert await index.search("tea", limit=-3) == ()


async def test_times_out_of_order_and_out_of_range(diary: Diary, index: SearchIndex) -> None:
    for number, at in enumerate((NOON, 0.0, -5.0, 1e12, NOON - DAY, float("inf"))):
        diary.say(f"odd time {number}", at=at)
    assert len(await index.search("odd")) == 6
    recent = Filters(since=NOON - 2 * DAY, until=NOON + 1)
    assert {hit.at for hit in await index.search("odd", recent)} == {NOON, NOON - DAY}
    late = Filters(since=1e10)
    assert {hit.at for hit in await index.search("odd", late)} == {1e12, float("inf")}


async def test_two_people_search_at_the_same_time(diary: Diary, index_path: Path) -> None:
    diary.say_all([f"note {number} of the day" for number in range(300)])
    indexes = [SearchIndex(index_path, JournalFile(diary.path)) for _ in range(4)]
    results = await asyncio.gather(*(index.search("note", limit=400) for index in indexes * 3))
    assert {len(hits) for hits in results} == {300}


async def test_long_messages_are_found_by_their_last_words(
    diary: Diary, index: SearchIndex
) -> None:
    wanted = diary.say("filler " * 20_000 + " needle in the haystack", role="tool")
    (hit,) = await index.search("needle haystack")
    assert hit.event_id == wanted
    assert hit.snippet.endswith(">>>needle<<< in the >>>haystack<<<")
    assert await found(index, '"needle in the haystack"') == [wanted]


@pytest.mark.parametrize("count", [250, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_any_string_can_be_searched_for(diary: Diary, index: SearchIndex, count: int) -> None:
    diary.say_all(["plain words", "数据库 データ 한국어", "naïve café", "a_b.c/d-e", "🚀 🎉"] * 20)
    await index.catch_up()
    chance = random.Random(7)
    signs = "\"*'()+-:^{}[]~\\/_. \n\0" + "aAzZ09éß数据猫がア한🚀\u200d\u0301\ud800" + "ANDORNOT"
    for _ in range(count):
        wild = "".join(chr(chance.randrange(sys.maxunicode)) for _ in range(2))
        query = "".join(chance.choices(signs + wild, k=chance.randrange(25)))
        assert isinstance(await index.search(query, limit=3), tuple)
