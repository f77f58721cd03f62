from __future__ import annotations

from pathlib import Path

import pytest

from hermes.app.start import start
from hermes.config.extension_settings import McpServerSettings
from hermes.mcp.admin import McpAdmin
from hermes.mcp.server import NeedsLogin
from tests.mcp.conftest import authority
from tests.mcp.oauth_stage import Authority
from tests.mcp.test_oauth import Browser

__all__ = ["authority"]


async def test_an_address_that_turns_out_to_want_a_login_is_logged_in_to(
    authority: Authority, tmp_path: Path
) -> None:
    own = McpServerSettings(url=f"{authority.url}/mcp", connect_timeout=60)
    home = tmp_path / "home"
    async with start({}, home=str(home)) as app:
        with pytest.raises(NeedsLogin):
            await McpAdmin(app.context).add("locked", own)
        assert not (home / "config.yaml").exists()
        listing = await McpAdmin(app.context).add("locked", own, screen=Browser())
    assert len(listing.tools) == 1
    assert "auth: oauth" in (home / "config.yaml").read_text()
