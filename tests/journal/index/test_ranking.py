"""The wanted message is among the first five, between hundreds that share words with it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile, Role
from tests.journal.index.diary import DAY, NOON, Diary

# A message, who wrote it, and the queries that mean it.
LABELLED: list[tuple[str, Role, list[str]]] = [
    (
        "We decided to move the billing database to PostgreSQL 16 on the first weekend of May.",
        "assistant",
        ["when do we move billing to postgres", "PostgreSQL 16", "billing database move May"],
    ),
    (
        "The staging password is in the vault under team/staging/root, never paste it in chat.",
        "user",
        ["where is the staging password", "team/staging/root", "vault staging"],
    ),
    (
        "My daughter Ines is allergic to peanuts, please remember that for every recipe.",
        "user",
        ["peanut allergy", "what is Ines allergic to", "daughter allergic"],
    ),
    (
        "Traceback: KeyError: 'tenant_id' in src/billing/invoice_writer.py line 212",
        "tool",
        ["tenant_id KeyError", "invoice_writer.py", "src/billing/invoice", "voice_writ"],
    ),
    (
        "The flight to Lisbon leaves on 12 June at 07:45 from terminal 2, seat 14C.",
        "assistant",
        ["flight Lisbon", "when does my flight to lisbon leave", "seat 14C"],
    ),
    (
        "Please use British spelling in all customer letters and never write 'utilize'.",
        "user",
        ["british spelling", "how should customer letters be spelled", "utilize"],
    ),
    (
        "I set max_connections to 200 and shared_buffers to 4GB on db-prod-3.",
        "assistant",
        ["shared_buffers", "max_connections 200", "db-prod-3 settings"],
    ),
    (
        "The cron job nightly-backup failed because the disk of nas01 was full.",
        "tool",
        ["why did nightly-backup fail", "nas01 disk full", "backups failing"],
    ),
    (
        "The landlord's name is Mrs. Haverkamp, phone 0551 8837.",
        "user",
        ["landlord name", "Haverkamp", "landlord phone number"],
    ),
    (
        "Refactored the parser into tokenizer.rs and grammar.rs, all 84 tests pass.",
        "assistant",
        ["tokenizer.rs", "parser refactoring", "refactor parser tests"],
    ),
    (
        "The quarterly report must show churn by region, not only the total.",
        "user",
        ["quarterly report churn", "churn by region", '"churn by region"'],
    ),
    (
        "We chose Hetzner over AWS for the newsletter servers because of the price.",
        "assistant",
        ["why Hetzner", "newsletter servers hosting", "chose hetzner"],
    ),
    (
        "curl https://api.example.org/v2/orders/8f3a9c71 returned 429 Too Many Requests",
        "tool",
        ["8f3a9c71", "429 too many requests", "orders api 429", "8f3a9"],
    ),
    (
        "Die Rechnung von der Stadtwerke Göttingen muss bis zum 15. bezahlt werden.",
        "user",
        ["Rechnung Stadtwerke", "stadtwerke gottingen", "Rechnungen der Stadtwerke"],
    ),
    (
        "Wir haben die Größe der Anhänge auf zehn Megabyte begrenzt.",
        "assistant",
        ["Größe Anhänge", "grosse anhange", "Anhang Megabyte"],
    ),
    (
        "La réunion avec le notaire est reportée au vendredi à neuf heures.",
        "user",
        ["réunion notaire", "reunion notaire vendredi", "notaire"],
    ),
    (
        "El contrato de alquiler termina en agosto y hay que avisar dos meses antes.",
        "user",
        ["contrato alquiler", "cuándo termina el contrato", "alquiler agosto"],
    ),
    (
        "Договорились перенести релиз мобильного приложения на сентябрь.",
        "assistant",
        ["релиз мобильного приложения", "перенести релиз", "приложение сентябрь"],
    ),
    (
        "我们决定把数据库迁移到新的服务器，时间是下周三晚上。",
        "assistant",
        ["数据库迁移", "新的服务器", "什么时候迁移数据库", "下周三"],
    ),
    (
        "妈妈的生日是十月三号，记得订蛋糕。",
        "user",
        ["妈妈生日", "蛋糕", "订蛋糕"],
    ),
    (
        "会議は来週の火曜日に変更になりました。場所は三階の会議室です。",
        "assistant",
        ["会議 火曜日", "三階の会議室", "来週の会議"],
    ),
    (
        "パスワードの有効期限は九十日です。",
        "user",
        ["パスワード 期限", "有効期限"],
    ),
    (
        "서버 점검은 토요일 새벽 두 시에 시작합니다.",
        "assistant",
        ["서버 점검", "점검 토요일", "서버를 점검"],
    ),
    (
        "Ο κωδικός του συναγερμού άλλαξε την Τρίτη.",
        "user",
        ["κωδικός συναγερμού", "κωδικος συναγερμου"],
    ),
]

SUBJECTS = (
    *("the database", "the server", "billing", "the report", "my flight", "the parser", "a letter"),
    *("the vault", "the newsletter", "the backup", "a customer", "the meeting", "the contract"),
    *("die Rechnung", "la réunion", "el contrato", "релиз", "数据库", "会議", "서버", "the tests"),
)
DOINGS = (
    *("is slow again", "needs a review", "was moved yesterday", "failed twice", "is done"),
    *("should be documented", "has a new name", "must wait until May", "looks fine to me"),
    *("ist noch offen", "est prête", "termina pronto", "почти готов", "已经完成", "は終わりました"),
    *("is in src/app/main.py", "returned an error", "takes 200 seconds", "is under discussion"),
)
ENDINGS = (
    *("", "Please check it.", "I will look into it.", "What do you think?", "Thanks!"),
    *("The password was not changed.", "See the report.", "We move on.", "Danke.", "谢谢。"),
)


def distractors(count: int) -> list[str]:
    chance = random.Random(3)
    parts = (SUBJECTS, DOINGS, ENDINGS)
    return [" ".join(chance.choice(part) for part in parts).strip() for _ in range(count)]


@pytest.fixture
def library(tmp_path: Path) -> tuple[SearchIndex, dict[str, int]]:
    """An index over 24 wanted messages, spread among 900 others."""
    diary = Diary(tmp_path / "hermes.db")
    others = distractors(900)
    ids: dict[str, int] = {}
    roles: tuple[Role, ...] = ("user", "assistant", "tool")
    for number, text in enumerate(others):
        diary.say(
            text, session=f"s{number % 30}", role=roles[number % 3], at=NOON + number * DAY / 9
        )
        if number % 37 == 5 and len(ids) < len(LABELLED):
            wanted, role, _ = LABELLED[len(ids)]
            ids[wanted] = diary.say(wanted, session=f"w{number}", role=role, at=NOON + number)
    diary.close()
    assert len(ids) == len(LABELLED)
    return SearchIndex(tmp_path / "index.db", JournalFile(diary.path)), ids


async def test_the_wanted_message_is_among_the_first_five(
    library: tuple[SearchIndex, dict[str, int]],
) -> None:
    index, ids = library
    missed = []
    count = 0
    for text, _, queries in LABELLED:
        for query in queries:
            count += 1
            hits = await index.search(query, limit=5)
            if ids[text] not in [hit.event_id for hit in hits]:
                missed.append((query, [hit.snippet for hit in hits]))
    assert count >= 60
    assert missed == []


async def test_the_wanted_message_is_mostly_the_first(
    library: tuple[SearchIndex, dict[str, int]],
) -> None:
    index, ids = library
    firsts = [
        (await index.search(query, limit=1))[0].event_id == ids[text]
        for text, _, queries in LABELLED
        for query in queries
    ]
    assert firsts.count(True) / len(firsts) >= 0.95


async def order(tmp_path: Path, texts: list[str], query: str, **when: float) -> list[int]:
    """The places of the texts in the answer, as they were given."""
    diary = Diary(tmp_path / "hermes.db")
    ids = [diary.say(text, at=when.get(f"at{n}", NOON)) for n, text in enumerate(texts)]
    diary.close()
    index = SearchIndex(tmp_path / "index.db", JournalFile(diary.path))
    return [ids.index(hit.event_id) for hit in await index.search(query)]


async def test_more_of_the_words_come_before_fewer(tmp_path: Path) -> None:
    texts = ["red paint", "red boat", "a boat with red paint", "boat"]
    assert (await order(tmp_path, texts, "red boat paint"))[0] == 2


async def test_rare_words_count_more_than_common_ones(tmp_path: Path) -> None:
    texts = [*["common thing"] * 30, "rare thing", "common stuff"]
    assert (await order(tmp_path, texts, "common rare"))[0] == 30


async def test_words_together_come_before_words_apart(tmp_path: Path) -> None:
    texts = [
        "The index of the book has a search for every single journal entry in it.",
        "The search index of the book has every single journal entry in it.",
    ]
    assert await order(tmp_path, texts, "search index") == [1, 0]


async def test_a_whole_word_comes_before_a_part_of_one(tmp_path: Path) -> None:
    texts = ["the airport is far", "the port is far", "the ports are far", "the support is good"]
    assert (await order(tmp_path, texts, "port"))[0] == 1


async def test_of_equal_messages_the_newest_is_first(tmp_path: Path) -> None:
    texts = ["same words", "same words", "same words"]
    found = await order(tmp_path, texts, "same words", at0=NOON - DAY, at1=NOON, at2=NOON - 9 * DAY)
    assert found == [1, 0, 2]


async def test_a_short_message_comes_before_a_long_one(tmp_path: Path) -> None:
    texts = ["lorem ipsum dolor sit amet " * 60 + " giraffe", "a giraffe"]
    assert await order(tmp_path, texts, "giraffe") == [1, 0]
