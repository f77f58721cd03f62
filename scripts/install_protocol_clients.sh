#!/bin/sh
# Installs the programs of others that judge our protocols into the virtual environment, where
# tests look for them: `scripts/install_protocol_clients.sh [FOLDER]`. Needs npm.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
folder=${1:-$root/.venv/protocol-clients}

command -v npm >/dev/null 2>&1 || {
    echo "npm is not there; install Node.js and start again." >&2
    exit 1
}
mkdir -p "$folder"
cd "$folder"
[ -e package.json ] || echo '{"name": "protocol-clients", "private": true}' >package.json
# The conformance suite wants a newer Node than many systems bring, so one comes along.
npm install --no-audit --no-fund --loglevel=error --save-exact \
    node@22.23.3 \
    acpx@0.19.1 \
    @modelcontextprotocol/conformance@0.1.16 \
    @modelcontextprotocol/inspector@2.12.0 \
    @modelcontextprotocol/server-everything@2026.8.31 \
    @modelcontextprotocol/server-filesystem@2026.8.31
ls "$folder/node_modules/.bin" | grep -E '^(acpx|conformance|mcp-inspector|mcp-server-.*|node)$'
