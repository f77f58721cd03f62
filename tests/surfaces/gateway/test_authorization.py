"""Who may write to the bot, and what they may do there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.config.gateway_settings import platform_options
from hermes.config.home import Home
from hermes.config.load import load
from hermes.surfaces.gateway.access import Access
from hermes.surfaces.gateway.authorization import Authorization
from hermes.surfaces.gateway.pairing import PairingStore
from hermes.surfaces.gateway.platform import (
    Abilities,
    Address,
    ChatType,
    Inbound,
    Manifest,
    Sender,
)
from hermes.testing.clock import VirtualClock

Make = Callable[..., Authorization]


def manifest(name: str, **abilities: bool) -> Manifest:
    able = replace(Abilities(max_chars=100), **abilities)
    return Manifest(name=name, title=name, adapter="", abilities=able, fields=())


MANIFESTS = (
    manifest("telegram"),
    manifest("slack"),
    manifest("email", offers_pairing=False),
    manifest("webhook", is_trusted_transport=True),
)


@pytest.fixture
def pairing(tmp_path: Path) -> PairingStore:
    return PairingStore(Home(tmp_path), VirtualClock())


@pytest.fixture
def make(tmp_path: Path, pairing: PairingStore) -> Make:
    def build(text: str = "", **env: str) -> Authorization:
        (tmp_path / "config.yaml").write_text(text)
        config = load(Home(tmp_path), env=env)
        pairs = [(each, platform_options(config, each.name)) for each in MANIFESTS]
        return Authorization(config, pairs, pairing)

    return build


def event(
    user: str = "7",
    platform: str = "telegram",
    chat_type: ChatType = "dm",
    chat: str = "c",
    **sender: object,
) -> Inbound:
    return Inbound(
        key="1",
        address=Address(platform=platform, chat_id=chat),
        chat_type=chat_type,
        sender=replace(Sender(id=user, name="Ann"), **sender),
        at=0.0,
        text="hello",
    )


def test_nobody_may_write_by_default(make: Make) -> None:
    rules = make()
    assert rules.decide(event()).kind == "pair"
    assert rules.decide(event(chat_type="group")).kind == "ignore"
    assert rules.decide(event(chat_type="thread")).kind == "ignore"
    assert rules.decide(event(platform="email")).kind == "ignore"
    assert rules.decide(event(platform="nosuch")).kind == "ignore"
    assert rules.decide(event(is_bot=True)).kind == "ignore"


def test_the_only_allowed_user_is_the_owner(make: Make) -> None:
    access = make(TELEGRAM_ALLOWED_USERS="7").decide(event())
    assert access == Access(
        kind="allowed", principal="owner", is_admin=True, reason="owner", platform="telegram"
    )


def test_of_several_allowed_users_the_named_one_is_the_owner(make: Make) -> None:
    text = "platforms: {telegram: {extra: {owner: 8, allow_from: [9]}}}"
    rules = make(text, TELEGRAM_ALLOWED_USERS="7,6")
    assert rules.decide(event("8")).principal == "owner"
    for user in ("7", "6", "9"):
        access = rules.decide(event(user))
        assert (access.principal, access.is_admin) == ("member", True)
    assert rules.decide(event("5")).kind == "ignore"


def test_a_list_makes_strangers_unwelcome_unless_the_settings_say_pair(make: Make) -> None:
    assert make(TELEGRAM_ALLOWED_USERS="1").decide(event()).kind == "ignore"
    pair = make(TELEGRAM_ALLOWED_USERS="1", TELEGRAM_UNAUTHORIZED_DM_BEHAVIOR="pair")
    assert pair.decide(event()).kind == "pair"
    never = make("gateway: {unauthorized_dm_behavior: ignore}")
    assert never.decide(event()).kind == "ignore"
    mail = make("platforms: {email: {extra: {unauthorized_dm_behavior: pair}}}")
    assert mail.decide(event(platform="email")).kind == "pair"


def test_other_ids_and_roles_of_a_person_count(make: Make) -> None:
    rules = make(TELEGRAM_ALLOWED_USERS="+491,+492", TELEGRAM_ALLOWED_ROLES="staff")
    assert rules.decide(event("uuid", other_ids=("+492",))).kind == "allowed"
    assert rules.decide(event("x", roles=("guest", "staff"))).reason == "role"
    assert rules.decide(event("x", roles=("guest",))).kind == "ignore"


def test_ids_of_some_platforms_have_no_case(make: Make) -> None:
    rules = make(SLACK_ALLOWED_USERS="U1,u2", TELEGRAM_ALLOWED_USERS="Ann,Bob")
    assert rules.decide(event("U2", "slack")).kind == "allowed"
    assert rules.decide(event("ann")).kind == "ignore"


def test_a_shared_list_counts_on_every_platform(make: Make) -> None:
    rules = make(GATEWAY_ALLOWED_USERS="7")
    assert rules.decide(event()).principal == "member"
    assert rules.decide(event(platform="slack")).principal == "member"


@pytest.mark.parametrize(
    "env",
    [
        {"TELEGRAM_ALLOW_ALL_USERS": "true"},
        {"GATEWAY_ALLOW_ALL_USERS": "1"},
        {"TELEGRAM_ALLOWED_USERS": "*"},
    ],
)
def test_whoever_is_only_let_in_with_everybody_is_a_guest(make: Make, env: dict[str, str]) -> None:
    access = make(**env).decide(event())
    assert (access.kind, access.principal, access.is_admin) == ("allowed", "guest", False)
    owned = make(**env, TELEGRAM_OWNER="7").decide(event())
    assert owned.principal == "owner"


def test_a_group_may_be_open_to_its_people(make: Make) -> None:
    rules = make(TELEGRAM_GROUP_ALLOWED_CHATS="g", TELEGRAM_GROUP_ALLOWED_USERS="8")
    assert rules.decide(event(chat_type="group", chat="g")).principal == "guest"
    assert rules.decide(event("8", chat_type="group")).kind == "allowed"
    assert rules.decide(event(chat_type="group")).kind == "ignore"
    assert rules.decide(event("8")).kind == "pair"


def test_a_signed_transport_is_let_in_as_a_guest(make: Make) -> None:
    access = make().decide(event(platform="webhook"))
    assert (access.kind, access.principal) == ("allowed", "guest")


async def test_pairing_lets_a_person_in_until_it_is_revoked(
    make: Make, pairing: PairingStore
) -> None:
    rules = make()
    text = await rules.pairing_text(event())
    code = text.split("`")[1].split()[-1]
    assert text.split("`")[1] == f"hermes pairing approve telegram {code}"
    assert await rules.pairing_text(event()) == ""
    pairing.approve("telegram", code)
    assert rules.decide(event()).reason == "paired"
    assert rules.decide(event(chat_type="group")).reason == "paired"
    pairing.revoke("telegram", "7")
    assert rules.decide(event()).kind == "pair"


def test_a_damaged_list_of_paired_people_lets_nobody_in(make: Make, pairing: PairingStore) -> None:
    pairing.folder.mkdir()
    (pairing.folder / "telegram-approved.json").write_text("{")
    assert make().decide(event()).kind == "pair"


def test_without_a_list_of_admins_known_people_may_run_everything(make: Make) -> None:
    rules = make(TELEGRAM_ALLOWED_USERS="7,8")
    access = rules.decide(event())
    assert rules.may_run(access, "restart", "dm")
    assert rules.may_run(access, "new", "group")


def test_guests_never_command_the_gateway(make: Make) -> None:
    rules = make(TELEGRAM_ALLOW_ALL_USERS="true")
    access = rules.decide(event())
    assert rules.may_run(access, "new", "dm")
    assert not rules.may_run(access, "restart", "dm")


def test_the_admin_split_limits_everybody_else(make: Make) -> None:
    text = (
        "platforms: {telegram: {extra: {allow_admin_from: [1], user_allowed_commands: [/new],"
        " group_user_allowed_commands: [status]}}}"
    )
    rules = make(text, TELEGRAM_ALLOWED_USERS="1,2")
    admin, user = rules.decide(event("1")), rules.decide(event("2"))
    assert (admin.is_admin, user.is_admin) == (True, False)
    assert rules.may_run(admin, "restart", "dm")
    assert [rules.may_run(user, each, "dm") for each in ("new", "help", "whoami", "model")] == [
        True,
        True,
        True,
        False,
    ]
    assert rules.may_run(user, "status", "group")
    assert not rules.may_run(user, "new", "group")
    assert not rules.may_run(Access(kind="pair", platform="telegram"), "help", "dm")
