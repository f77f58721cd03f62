"""Signatures against the examples that AWS publishes, and in a real request."""

from __future__ import annotations

import calendar
import re
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.world import World
from hermes.models.models import Models
from hermes.providers.aws_signature import AwsCredentials, parse_credentials, region_of, sign
from hermes.providers.endpoint import read_key
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.models.ledger import Ledger
from tests.providers.asking import ask

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
EXAMPLE = AwsCredentials(access_key="AKIDEXAMPLE", secret_key=SECRET)
AT = float(calendar.timegm((2015, 8, 30, 12, 36, 0)))
FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("method", "url", "headers", "body", "service", "signature"),
    [
        (
            *("GET", "https://example.amazonaws.com/", {}, b"", "service"),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            *("POST", "https://example.amazonaws.com/", {}, b"", "service"),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "GET",
            "https://example.amazonaws.com/?Param2=value2&Param1=value1",
            *({}, b"", "service"),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            *("POST", "https://example.amazonaws.com/"),
            *({"Content-Type": FORM}, b"Param1=value1", "service"),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            *("GET", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08"),
            *({"Content-Type": f"{FORM}; charset=utf-8"}, b"", "iam"),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        ),
    ],
)
def test_the_published_examples(
    method: str, url: str, headers: dict[str, str], body: bytes, service: str, signature: str
) -> None:
    made = sign(EXAMPLE, method, url, headers, body, at=AT, region="us-east-1", service=service)
    assert made["x-amz-date"] == "20150830T123600Z"
    assert made["authorization"].endswith(f"Signature={signature}")


def test_the_region_is_part_of_the_host() -> None:
    assert region_of("bedrock-runtime.eu-central-1.amazonaws.com") == "eu-central-1"
    assert region_of("127.0.0.1") == "us-east-1"


async def test_a_request_is_signed_as_it_is_sent(tmp_path: Path) -> None:
    async with ScriptedServer([says("ok")]) as server:
        env = {
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": "the-session-token",
            "BEDROCK_BASE_URL": f"{server.url}/openai/v1",
        }
        models = Models(load(Home(tmp_path), env=env), World(), env=env)
        heard = await ask(models.connect("openai.gpt-oss-120b-1:0", "bedrock", Ledger())[0])
        await models.close()
    assert heard.shown == "ok"
    (request,) = server.requests
    credentials = parse_credentials(read_key(env.__getitem__, "AWS_SECRET_ACCESS_KEY"))
    assert credentials is not None and credentials.token == "the-session-token"
    when = re.fullmatch(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", request.headers["x-amz-date"])
    assert when is not None
    expected = sign(
        credentials,
        "POST",
        f"{server.url}/openai/v1/chat/completions",
        {"content-type": request.headers["content-type"]},
        request.raw,
        at=float(calendar.timegm(tuple(map(int, when.groups())))),
    )
    assert {name: request.headers[name] for name in expected} == expected
    assert SECRET not in repr(request.headers)
