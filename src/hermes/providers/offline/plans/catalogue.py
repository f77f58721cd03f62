"""Maps kinds of requests to plans. A plan is loaded on first use."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import cast

from hermes.providers.offline.plan import Plan

_TOPICS = {
    "folders": (
        "list_files list_folders open_path show_item tree biggest_file newest_file file_info "
        "disk_use folder_sizes exists recent_files empty_files"
    ),
    "files": (
        "read read_first read_last read_lines read_more show_json show_table list_functions "
        "word_count count_lines project_overview"
    ),
    "search": "find_text find_todos count_matches find_files count_files",
    "changes": ("create_file append replace move copy delete make_folder go_to diff checksum"),
    "machine": (
        "where_am_i who_am_i date_time uptime hostname system disk_free memory cpu programs "
        "version which_program variable"
    ),
    "processes": (
        "run run_script run_tests run_background list_background poll_background "
        "wait_background send_input stop_background"
    ),
    "repository": (
        "git_status git_log git_diff git_branch last_commit file_history git_remote git_commit"
    ),
    "notes": "todo_show todo_add todo_done todo_remove todo_clear remember recall",
    "conversation": (
        "greeting thanks goodbye how_are_you who_are_you get_model never_mind agreement "
        "nothing_before show_help how_to echo calculate ask_me count_items asked_before "
        "repeat_answer why_failed"
    ),
}

PLANS = {
    name: f"hermes.providers.offline.plans.{topic}:{name}"
    for topic, names in _TOPICS.items()
    for name in names.split()
}


@lru_cache(maxsize=256)
def plan_for(kind: str) -> Plan:
    module, _, name = PLANS[kind].partition(":")
    return cast(Plan, getattr(import_module(module), name))
