"""The built-in skins."""

from __future__ import annotations

from hermes.surfaces.cli.skins.skin import DEFAULT, Branding, Skin, Spinner

_SILENT = Spinner(frames="", waiting_faces=(), thinking_faces=())

SKINS = {
    skin.name: skin
    for skin in (
        DEFAULT,
        Skin(
            name="plain",
            description="Words only: no animation and no meaningful colours; suits screen readers.",
            colors=dict.fromkeys(
                (
                    "banner_dim",
                    "ui_accent",
                    "ui_ok",
                    "ui_warn",
                    "ui_error",
                    "prompt",
                ),
                "",
            ),
            spinner=_SILENT,
            branding=Branding(prompt_symbol=">", busy_symbol="busy >", status_symbol="status:"),
            tool_prefix="tool:",
            words=True,
        ),
        Skin(
            name="mono",
            description="Only the terminal's own colours; no animation.",
            colors=dict.fromkeys(("ui_accent", "ui_ok", "ui_warn", "ui_error", "prompt"), ""),
            spinner=_SILENT,
        ),
        Skin(
            name="slate",
            description="Cool greys and blues, and no faces.",
            colors={
                "ui_accent": "#5f87af",
                "prompt": "#5f87af",
                "banner_title": "#afd7ff",
                "ui_ok": "#87afaf",
                "ui_warn": "#d7af87",
                "ui_error": "#d75f5f",
            },
            spinner=Spinner(frames="▁▃▄▅▆▇▆▅▄▃", waiting_faces=(), thinking_faces=()),
        ),
        Skin(
            name="daylight",
            description="Dark letters for a light background.",
            colors={
                "banner_dim": "#5f5f5f",
                "ui_accent": "#005faf",
                "prompt": "#005faf",
                "ui_ok": "#005f00",
                "ui_warn": "#875f00",
                "ui_error": "#af0000",
            },
        ),
        Skin(
            name="warm-lightmode",
            description="Earth colours for a light background.",
            colors={
                "banner_dim": "#875f5f",
                "ui_accent": "#af5f00",
                "prompt": "#af5f00",
                "ui_ok": "#5f5f00",
                "ui_warn": "#af5f00",
                "ui_error": "#870000",
            },
            spinner=Spinner(frames="◐◓◑◒"),
        ),
        Skin(
            name="ares",
            description="Red and bronze; military verbs.",
            colors={
                "ui_accent": "#d75f00",
                "prompt": "#d70000",
                "banner_title": "#d7af5f",
                "ui_warn": "#ffaf00",
            },
            spinner=Spinner(
                frames="⚔†⚔‡",
                waiting_faces=("(ง'̀-'́)ง", "(•̀_•́)"),
                thinking_faces=("(ಠ_ಠ)", "(¬_¬)"),
                thinking_verbs=("scouting", "marshalling", "planning the assault"),
            ),
            branding=Branding(prompt_symbol="⟩", busy_symbol="⚔ ⟩", status_symbol="⚔"),
        ),
        Skin(
            name="poseidon",
            description="Deep blues; nautical verbs.",
            colors={
                "ui_accent": "#00afd7",
                "prompt": "#0087d7",
                "banner_title": "#87d7ff",
                "ui_ok": "#00af87",
            },
            spinner=Spinner(
                frames="≈∼≋∼",
                waiting_faces=("(˘⌣˘)", "(・ω・)"),
                thinking_faces=("(。-ω-)", "(~_~)"),
                thinking_verbs=("sounding the depths", "drifting", "charting"),
            ),
            branding=Branding(prompt_symbol="≋", busy_symbol="≈ ≋", status_symbol="≈"),
        ),
        Skin(
            name="kawaii",
            description="Pink, with many faces.",
            colors={"ui_accent": "#ff87d7", "prompt": "#ff87d7", "banner_title": "#ffafd7"},
            spinner=Spinner(
                frames="✶✷✸✹✺✹✸✷",
                waiting_faces=("(◕‿◕)", "(ノ◕ヮ◕)ノ", "(๑˃ᴗ˂)", "ʕ•ᴥ•ʔ"),
                thinking_faces=("(｡•̀ᴗ-)", "(⁄˘⌣˘⁄)", "(◔_◔)", "(´･ᴗ･`)"),
                thinking_verbs=("pondering", "daydreaming", "musing", "wondering", "brewing"),
            ),
        ),
    )
}
