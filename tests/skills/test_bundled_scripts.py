"""The scripts of shipped skills, run as the skills run them."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import NamedTuple

import pytest

from hermes.skills.seeding import BUNDLED_SKILLS

SCRIPTS = {path.name: path for path in BUNDLED_SKILLS.rglob("scripts/*.py")}


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run(script: str, *arguments: str | Path, text: str = "") -> Done:
    """With the interpreter alone: no package of ours, none of anybody else."""
    done = subprocess.run(
        [sys.executable, "-I", str(SCRIPTS[script]), *map(str, arguments)],
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_a_script_says_how_it_is_used(script: str) -> None:
    assert f"python3 {script} " in SCRIPTS[script].read_text(encoding="utf-8")
    assert b"\r" not in SCRIPTS[script].read_bytes()


# clean-a-csv


def cleaned(tmp_path: Path, data: bytes, *options: str) -> tuple[dict[str, object], str]:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(data)
    done = run("clean_csv.py", source, target, *options)
    assert done.code == 0, done.err
    return json.loads(done.out), target.read_text(encoding="utf-8")


def test_a_table_of_another_time_becomes_plain(tmp_path: Path) -> None:
    data = "Tag;Wer ;Betrag €;Tag\r\n03.04.25; Müller\xa0;1.234,50;a\r\n;;;\r\n".encode("cp1252")
    report, text = cleaned(tmp_path, data, "--decimal", "betrag", "--date", "tag", "%d.%m.%y")
    assert text == "tag,wer,betrag,tag_2\n2025-04-03,Müller,1234.50,a\n"
    assert (report["encoding"], report["separator"], report["rows"]) == ("cp1252", ";", 1)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_the_encoding_is_found(tmp_path: Path, encoding: str) -> None:
    _, text = cleaned(tmp_path, "a\tb\nä\tö, ü\n".encode(encoding))
    assert text == 'a,b\nä,"ö, ü"\n'


def test_rows_that_do_not_fit_are_kept_apart_with_the_reason(tmp_path: Path) -> None:
    report, text = cleaned(tmp_path, b"a,b\n1,2\n3\nx,4\n1,2\n", "--decimal", "a", "--unique")
    assert text == "a,b\n1,2\n"
    assert (report["rejected"], report["repeated"]) == (2, 1)
    rejected = (tmp_path / "out.rejected.csv").read_text().splitlines()
    assert rejected[1].startswith("3,1 cells instead of 2")
    assert rejected[2].startswith("4,could not convert")


def test_the_source_is_never_written_over_and_columns_must_exist(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b\n1,2\n")
    assert "must be another file" in run("clean_csv.py", path, path).err
    assert "no column 'c'" in run("clean_csv.py", path, tmp_path / "b", "--decimal", "c").err


# explore-a-dataset


def test_a_table_is_loaded_profiled_and_asked(tmp_path: Path) -> None:
    source = write(tmp_path / "my data.csv", "code,n,x\n007,1,1.5\n008,,2.5\n008,3,\n")
    base = tmp_path / "d.db"
    assert run("tables.py", "load", source, base).out == "my_data: 3 rows, 3 columns\n"
    rows = run("tables.py", "profile", base).out.splitlines()
    assert rows[2].split() == ["code", "text", "3", "2", "007", "008", "008(2)", "007(1)"]
    assert rows[3].split()[:4] == ["n", "integer,null", "2", "2"]
    assert rows[4].split()[4:7] == ["1.5", "2.5", "2.0"]
    asked = run("tables.py", "ask", base, "SELECT code FROM my_data", "--limit", "1")
    assert asked.out == "code\n007\n(more than 1 rows; this is the beginning)\n"


def test_a_question_cannot_change_the_data(tmp_path: Path) -> None:
    base = tmp_path / "d.db"
    run("tables.py", "load", write(tmp_path / "t.csv", "a\n1\n"), base)
    refused = run("tables.py", "ask", base, "DELETE FROM t")
    assert (refused.code, "readonly" in refused.err) == (1, True)
    assert run("tables.py", "ask", base, "SELECT count(*) AS n FROM t").out == "n\n1\n"


def test_uneven_rows_are_not_loaded(tmp_path: Path) -> None:
    source = write(tmp_path / "t.csv", "a,b\n1\n")
    assert "Row 2" in run("tables.py", "load", source, tmp_path / "d.db").err


# chart-in-svg


def drawn(tmp_path: Path, table: str, *options: str) -> Xml.Element:
    target = tmp_path / "out.svg"
    done = run(
        "svg_chart.py", *options[:1], write(tmp_path / "in.csv", table), target, *options[1:]
    )
    assert done.code == 0, done.err
    return Xml.parse(target).getroot()


def test_bars_begin_at_zero_and_reach_below_it(tmp_path: Path) -> None:
    root = drawn(tmp_path, "k,v\na,4\nb,-2\n", "bar", "--x", "k", "--y", "v", "--title", "<&>")
    up, down = root.findall("{*}rect")[1:]
    zero = float(up.get("y", "")) + float(up.get("height", ""))
    assert float(down.get("y", "")) == pytest.approx(zero, abs=0.2)
    assert float(up.get("height", "")) == pytest.approx(2 * float(down.get("height", "")), abs=0.2)
    assert root.findtext("{*}title") == "<&>"


def test_a_missing_value_is_a_gap(tmp_path: Path) -> None:
    root = drawn(tmp_path, "k,v\na,1\nb,\nc,3\nd,4\n", "line", "--x", "k", "--y", "v")
    path = root.findall("{*}path")[-1].get("d", "")
    assert (path.count("M"), path.count("L"), len(root.findall("{*}circle"))) == (2, 1, 3)


def test_labels_lean_only_where_they_have_no_room(tmp_path: Path) -> None:
    for label, count, turned in (("Jan", 3, False), ("A very long name of a place", 9, True)):
        table = "k,v\n" + f"{label},1\n" * count
        groups = drawn(tmp_path, table, "bar", "--x", "k", "--y", "v").findall("{*}g")
        assert ["rotate" in group.get("transform", "") for group in groups] == [turned] * count
        assert all(len(group.findtext("{*}text") or "") <= 16 for group in groups)


@pytest.mark.parametrize("table", ["k,v\na,0\n", "k,v\na,5\nb,5\n", "k,v\na,1e-7\nb,-3e9\n"])
def test_odd_ranges_are_drawn(tmp_path: Path, table: str) -> None:
    for kind in ("bar", "line"):
        drawn(tmp_path, table, kind, "--x", "k", "--y", "v")


def test_words_where_numbers_should_be_are_told(tmp_path: Path) -> None:
    source = write(tmp_path / "in.csv", "k,v\na,many\n")
    assert (
        "is not a number" in run("svg_chart.py", "bar", source, "o.svg", "--x", "k", "--y", "v").err
    )
    assert (
        "No column 'w'" in run("svg_chart.py", "bar", source, "o.svg", "--x", "k", "--y", "w").err
    )


# scan-for-secrets


def test_keys_are_found_and_not_shown(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    write(tmp_path / "a.env", f"TOKEN={token}\nurl=postgres://me:hunter22@db/x\n")
    done = run("find_secrets.py", tmp_path)
    assert done.code == 1
    assert "GitHub token: ghp_…(40 characters)" in done.out
    assert "password in address: hunt…" in done.out
    assert token not in done.out


@pytest.mark.parametrize(
    "line",
    [
        'password = "changeme-please-1"',
        "api_key = os.environ['KEY']",
        "token: ${TOKEN_FROM_VAULT_1}",
        "secret = get_secret(1234567)",
        "password = <your password 123>",
    ],
)
def test_what_stands_for_a_secret_is_none(line: str) -> None:
    assert run("find_secrets.py", "-", text=line).out == "0 found\n"


def test_binary_files_and_foreign_folders_are_left_out(tmp_path: Path) -> None:
    key = "AKIA" + "ABCD1234EFGH5678"
    (tmp_path / "a.bin").write_bytes(b"\0" + key.encode())
    (tmp_path / "node_modules").mkdir()
    write(tmp_path / "node_modules/a.js", key)
    assert run("find_secrets.py", tmp_path) == Done(0, "0 found\n", "")


# check-a-mail


def mail(tmp_path: Path, head: str, body: str) -> str:
    path = write(tmp_path / "m.eml", f"{head}\nContent-Type: text/html\n\n{body}\n")
    done = run("read_mail.py", path)
    assert done.code == 0, done.err
    return done.out


PASSED = "Authentication-Results: mx; spf=pass dkim=pass dmarc=pass"


def test_an_honest_mail_has_no_signs(tmp_path: Path) -> None:
    head = f"From: Shop <news@mail.shop.example>\nReturn-Path: <b@shop.example>\n{PASSED}"
    out = mail(tmp_path, head, '<a href="https://www.shop.example/x">shop.example</a>')
    assert out.endswith("0 signs\n")


@pytest.mark.parametrize(
    ("link", "sign"),
    [
        (
            '<a href="https://shop.example.evil.test/">shop.example</a>',
            "leads to shop.example.evil",
        ),
        ('<a href="https://xn--shp-sna.example/">here</a>', "other alphabets"),
        ('<a href="https://shop.example@evil.test/">here</a>', "before the real host"),
        ('<form action="http://198.51.100.7/x"></form>', "bare number"),
    ],
)
def test_links_that_lie_are_signs(tmp_path: Path, link: str, sign: str) -> None:
    out = mail(tmp_path, f"From: a@shop.example\n{PASSED}", link)
    assert sign in out
    assert out.endswith("1 signs\n")


# translate-with-glossary


def test_terms_may_be_inflected_and_numbers_change_their_marks(tmp_path: Path) -> None:
    source = write(tmp_path / "s", "Two invoices of 1,234.50 for you and your friends.\n")
    target = write(tmp_path / "t", "Zwei Rechnungen über 1.234,50 für Sie und Ihre Freunde.\n")
    terms = write(tmp_path / "g.csv", "source,target\ninvoice,Rechnung|Faktura\n")
    assert run("check_terms.py", source, target, terms).out == "0 problems in 1 paragraphs\n"


def test_what_was_left_out_or_left_alone_is_told(tmp_path: Path) -> None:
    source = write(tmp_path / "s", "This stays as it is.\n\nThis is gone.\n")
    target = write(tmp_path / "t", "This stays as it is.\n")
    done = run("check_terms.py", source, target, write(tmp_path / "g.csv", "source,target\n"))
    assert done.code == 1
    assert "paragraph 1: is not translated" in done.out
    assert "2 paragraphs became 1" in done.out


# log-triage


def test_lines_that_differ_in_ids_are_one_group(tmp_path: Path) -> None:
    lines = (
        "2025-03-31T10:00:01Z req 0f8fad5b-d9cb-469f-a165-70867728950e from 10.0.0.1:80 'a' failed",
        "2025-03-31T10:00:02Z req 7c9e6679-7425-40de-944b-e07fc1f90ae7 from 10.0.0.22 'bc' failed",
        "2025-03-31T10:00:03Z pool 3 is empty",
    )
    log = write(tmp_path / "a.log", "\n".join(lines) + "\n")
    out = run("group_lines.py", log).out.splitlines()
    assert out[0].split()[:3] == ["2", "lines", "1-2"]
    assert out[-1] == "2 groups, 3 lines"
    assert run("group_lines.py", log, "--before", log).out == "0 groups, 0 lines\n"
