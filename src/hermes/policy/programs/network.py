"""Programs that talk to other machines: fetching is ordinary work, sending needs approval."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.patterns import regex, word_list
from hermes.policy.programs.steps import FETCHED, is_plain
from hermes.policy.shell.state import NOTHING, SOME, UNKNOWN, Stream

LOOPBACK = regex(
    r"^(?:\w+://)?(?:[^/@]*@)?(localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost)"
    r"(?=[:/?#]|$)"
)
# Ports of databases and registries with an HTTP interface.
STORES = regex(r":(9200|9201|5984|8086|8123|8500|2379|15672|6333|7700|8983|2375|5000)(/|$)")
# Schemes whose addresses hold what is sent, or with which curl does more than fetch.
SPEAKS = regex(r"(?i)(?:gopher|dict|telnet|smtp|imap|pop3|ldap|rtsp|rtmp|mqtt|tftp|smb|ws)\w?://")
METADATA = regex(r"169\.254\.\d|metadata\.google|100\.100\.100\.200|fd00:ec2")


def check_curl(call: Call) -> Stream | None:
    options = call.options(call.record.values)
    urls = [*options.operands, *options.values("--url")]
    local = bool(urls) and all(LOOPBACK.match(each) for each in urls)
    bodies = options.values(*word_list("curl_send_options"))
    method = (options.value("-X", "--request") or "GET").upper()
    sends = bool(bodies) and not options.has("-G", "--get")
    files = [each for body in bodies for each in re.findall(r"@([^;,\s]+)", body)]
    call.reads(*files)
    changes = sends or method not in ("GET", "HEAD", "OPTIONS")
    _transfer(call, urls, changes and not (local and all(map(call.here, files))), local)
    losing = method == "DELETE" or re.search(r"delete|drop|truncate|flush|_close", " ".join(urls))
    if local and losing and any(STORES.search(url) for url in urls):
        call.ask("database", "It deletes data of a database.")
    headers = ("-H", "--header", "-u", "--user", "-b", "--cookie", "--oauth2-bearer", "-A", "-e")
    secret = [*options.values(*headers), *bodies]
    if any(UNKNOWN in each or SOME in each for each in secret) and not local:
        call.ask("network_out", f"It sends a value known only at run time to {_show_urls(urls)}.")
    if options.value("-u", "--user") and not local:
        call.ask("credentials", "It logs in with a password on the command line.")
    folder = options.value("--output-dir") or "."
    targets = options.values("-o", "--output")
    if options.has("-O", "--remote-name", "--remote-name-all"):
        targets += [url.partition("?")[0].rstrip("/").rpartition("/")[2] for url in urls]
    for target in targets:
        name = target if target.startswith(("/", "~")) else f"{folder}/{target}"
        call.writes(name, content=FETCHED)
    return NOTHING if targets and "-" not in targets else FETCHED


def _show_urls(urls: list[str]) -> str:
    return ", ".join(urls).replace(UNKNOWN, "…") or "another machine"


def _transfer(call: Call, urls: list[str], sends: bool, local: bool) -> None:
    """Check the addresses, and whether data goes there. `local` means that they are addresses of
    this machine."""
    if sends:
        call.ask("network_out", f"It sends data to {_show_urls(urls)}.")
    for url in urls:
        if METADATA.search(url):
            call.deny(
                "credentials", f"The address {url} exposes the cloud credentials of this machine."
            )
        if SPEAKS.match(url):
            call.ask("network_out", f"It sends text of its own to {url}.")
        if (UNKNOWN in url or SOME in url) and not local and not is_plain(call, url):
            call.ask("network_out", "It puts a value known only at run time into a URL.")
        if url.startswith("file:"):
            call.reads(url.removeprefix("file://"))
    call.work("network", f"It fetches from {_show_urls(urls)}.")


def check_wget(call: Call) -> Stream | None:
    options = call.options(call.record.values)
    urls = options.operands
    local = bool(urls) and all(LOOPBACK.match(each) for each in urls)
    bodies = options.values("--post-data", "--body-data")
    files = options.values("--post-file", "--body-file")
    call.reads(*files)
    method = (options.value("--method") or "GET").upper()
    changes = bool(bodies) or method not in ("GET", "HEAD")
    _transfer(call, urls, bool(files) or (changes and not local), local)
    if any(UNKNOWN in each for each in options.values("--header", "--user", "--password")):
        call.ask("network_out", "It sends a value known only at run time.")
    target = options.value("-O", "--output-document")
    if target == "-":
        return FETCHED
    folder = options.value("-P", "--directory-prefix") or "."
    names = [target] if target else [url.partition("?")[0].rpartition("/")[2] for url in urls]
    for name in names:
        path = name if name.startswith(("/", "~")) or target else f"{folder}/{name}"
        call.writes(path, content=FETCHED)
    return NOTHING


def check_httpie(call: Call) -> Stream | None:
    words = call.options(call.record.values).operands
    method = words[0].upper() if words and words[0].isupper() else ""
    urls = words[1:2] if method else words[:1]
    items = words[2:] if method else words[1:]
    local = bool(urls) and bool(LOOPBACK.match(urls[0]) or urls[0].startswith(":"))
    data = [each for each in items if re.search(r"[^=:]=|:=|@", each) and "==" not in each]
    changes = method not in ("", "GET", "HEAD") or bool(data)
    _transfer(call, urls, changes and not local, local)
    return FETCHED


FORGE = regex(r"^git@(github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|ssh\.dev\.azure\.com)$")


def check_ssh(call: Call) -> Stream:
    options = call.options(call.record.values, permute=False)
    if options.has("-V", "-G", "-Q") and not options.values("-o", "-F"):
        return NOTHING
    if options.has("-R", "-D", "-L", "-w", "-W"):
        call.ask("network_listen", "It opens a tunnel to other machines.")
    host, command = (options.operands[:1] or [""])[0], options.operands[1:]
    if call.name == "ssh" and FORGE.match(host) and not command and not options.values("-o", "-F"):
        call.work("network", "It tests a key with a code hosting service.")
        return FETCHED
    call.ask("network_out", f"It runs on another machine ({host or 'unknown'}).")
    if command[:1] == ["--"]:
        command = command[1:]
    text = " ".join(command) or call.stdin.text.replace(UNKNOWN, "")
    if text.strip():
        elsewhere = call.state.copy()
        elsewhere.cwd = UNKNOWN
        call.follower.text(text, elsewhere, call.stdin if command else NOTHING)
    return FETCHED
