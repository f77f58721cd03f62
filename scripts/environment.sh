# Makes the virtual environment of a checkout: `prepare FOLDER core|dev`.
# Sourced by ../hermes and ../test. Does nothing when all is there and up to date.

prepare() {
    venv="$1/.venv"
    stamp="$venv/.made-for-$2"
    if [ -e "$stamp" ] && [ ! "$1/pyproject.toml" -nt "$stamp" ]; then
        return 0
    fi
    echo "Preparing .venv ($2), once…" >&2
    [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 || make_venv "$venv"
    # The name of this distribution before it was renamed; both would own the same commands.
    "$venv/bin/python" -m pip uninstall --quiet --yes hermes-agent >/dev/null 2>&1 || true
    case "$2" in
        core) "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e "$1" >&2 ;;
        dev)
            "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e "$1[dev]" >&2
            "$venv/bin/python" "$1/scripts/fetch_weights.py" "$venv/weights" >&2
            ;;
    esac
    # A start without bytecode takes twice as long, and some environments forbid writing it later.
    env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -m compileall -q "$1/src" >&2
    touch "$stamp"
}

make_venv() {
    python=$(find_python) || {
        echo "Hermes needs Python 3.11 or newer; install python3 and start again." >&2
        exit 1
    }
    rm -rf "$1"
    if "$python" -m venv "$1" >/dev/null 2>&1; then
        return 0
    fi
    # Debian keeps the part of venv that brings pip in a package of its own.
    rm -rf "$1"
    if command -v apt-get >/dev/null 2>&1; then
        echo "Installing python3-venv…" >&2
        as_root apt-get update -qq >/dev/null 2>&1 || true
        as_root apt-get install -y -qq python3-venv >/dev/null 2>&1 || true
    fi
    "$python" -m venv "$1" || {
        rm -rf "$1"
        echo "This Python cannot make a virtual environment; install python3-venv and start again." >&2
        exit 1
    }
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

find_python() {
    for each in python3 python3.13 python3.12 python3.11 python; do
        if command -v "$each" >/dev/null 2>&1 &&
            "$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$each"
            return 0
        fi
    done
    return 1
}
