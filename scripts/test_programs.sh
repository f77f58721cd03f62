# Programs that tests run besides what Python brings: `prepare_programs FOLDER`. Sourced by
# ../test. Where root has apt-get, as in a container, they are installed; elsewhere, or without a
# network, what is missing is named, and the tests that need it are skipped.

# command:package
PROGRAMS="bwrap:bubblewrap sshd:openssh-server ssh:openssh-client rg:ripgrep zsh:zsh fish:fish
    tmux:tmux sudo:sudo ps:procps setpriv:util-linux openssl:openssl npm:npm hledger:hledger
    pdftotext:poppler-utils identify:imagemagick ffmpeg:ffmpeg
    dovecot:dovecot-imapd"

prepare_programs() {
    stamp="$1/.venv/.made-for-programs"
    if [ -e "$stamp" ] && [ ! "$1/scripts/test_programs.sh" -nt "$stamp" ] &&
        [ ! "$1/scripts/install_protocol_clients.sh" -nt "$stamp" ]; then
        return 0
    fi
    lacking=$(missing_packages)
    if [ -n "$lacking" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "Installing $lacking…" >&2
        apt-get update -qq >&2 || true
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $lacking \
            >/dev/null || true
        lacking=$(missing_packages)
    fi
    if command -v npm >/dev/null 2>&1 &&
        ! sh "$1/scripts/install_protocol_clients.sh" >/dev/null; then
        lacking="$lacking (npm) protocol clients"
    fi
    if [ -n "$lacking" ]; then
        echo "Tests that need one of these are skipped; install them to run all: $lacking" >&2
        return 0
    fi
    touch "$stamp"
}

missing_packages() {
    found=""
    for each in $PROGRAMS; do
        # Servers are where only root looks for them.
        PATH="$PATH:/usr/sbin:/sbin" command -v "${each%%:*}" >/dev/null 2>&1 ||
            found="$found ${each#*:}"
    done
    echo "${found# }"
}
