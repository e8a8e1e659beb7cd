# What the client suites share. Source it; it makes $work, a folder that goes away at the end, and ends
# every process that was started through it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/kumiko-suite.XXXXXX")
chmod 755 "$work"
started=()

finish() {
    local code=$?
    for pid in "${started[@]:-}"; do
        [ -n "$pid" ] && kill "$pid" 2>/dev/null || true
    done
    for pid in "${started[@]:-}"; do
        [ -n "$pid" ] && wait "$pid" 2>/dev/null || true
    done
    [ $code -eq 0 ] || [ $code -eq 77 ] || for log in "$work"/*.log; do
        [ -f "$log" ] && { echo "--- ${log##*/}"; tail -n 20 "$log"; }
    done
    rm -rf "$work"
    exit $code
}
trap finish EXIT

# skip WHY: this suite cannot run here.
skip() {
    echo "skipped: $*"
    exit 77
}

# packages NAME...: installs Debian packages.
packages() {
    [ "$(id -u)" = 0 ] || skip "only root can install the packages $*"
    { apt-get install -y "$@" || { apt-get update && apt-get install -y "$@"; }; } >"$work/apt.log" 2>&1 \
        || skip "the packages $* cannot be installed"
    hash -r
}

# need COMMAND PACKAGE...: installs Debian packages unless the command is there.
need() {
    command -v "$1" >/dev/null 2>&1 || packages "${@:2}"
}

# python PACKAGE...: a virtual environment with these packages; its interpreter is $python.
python() {
    python3 -m venv "$work/venv" >"$work/venv.log" 2>&1 || { packages python3-venv && python3 -m venv "$work/venv"; }
    python=$work/venv/bin/python
    "$python" -m pip install --quiet --disable-pip-version-check "$@" >"$work/pip.log" 2>&1 \
        || skip "the python packages $* cannot be installed"
}

# build: the program, as the tests build it; its path is $kumiko.
build() {
    (cd "$root" && cargo build --quiet --locked --package kumiko)
    kumiko=${CARGO_TARGET_DIR:-$root/target}/debug/kumiko
}

# serve NAME FLAGS...: starts a node with its data in $work/NAME and waits until it is ready. The
# bound addresses are in $work/NAME.out, and address NAME LISTENER prints one.
serve() {
    local name=$1
    shift
    "$kumiko" serve --dir "$work/$name" "$@" >"$work/$name.out" 2>"$work/$name.log" &
    pid=$!
    started+=("$pid")
    for _ in $(seq 600); do
        grep -q '^ready$' "$work/$name.out" && return 0
        kill -0 "$pid" 2>/dev/null || { echo "the node $name ended"; cat "$work/$name.log"; return 1; }
        sleep 0.1
    done
    echo "the node $name is not ready after a minute"
    return 1
}

address() {
    sed -n "s/^$2 on //p" "$work/$1.out" | tail -n 1
}

# start_postgres: a PostgreSQL server of our own; its address is $postgres.
start_postgres() {
    local bin
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || packages postgresql
    bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
    [ -n "$bin" ] || skip "PostgreSQL cannot be installed"
    as=(env)
    if [ "$(id -u)" = 0 ]; then
        as=(setpriv --reuid postgres --regid postgres --init-groups)
        install -d -o postgres "$work/pg"
    else
        mkdir -p "$work/pg"
    fi
    "${as[@]}" "$bin/initdb" -D "$work/pg/data" -A trust -U postgres >"$work/initdb.log" 2>&1
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    run_postgres
    postgres=postgres://postgres@127.0.0.1:$port/postgres
}

# run_postgres: starts the server again after it was ended; its process is $postgres_pid.
run_postgres() {
    local bin
    bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
    "${as[@]}" "$bin/postgres" -D "$work/pg/data" -p "$port" -k "$work/pg" \
        -c listen_addresses=127.0.0.1 -c max_connections=200 >"$work/postgres.log" 2>&1 &
    postgres_pid=$!
    started+=("$postgres_pid")
    for _ in $(seq 300); do
        "$bin/pg_isready" -q -h 127.0.0.1 -p "$port" && return 0
        sleep 0.1
    done
    echo "PostgreSQL does not start"
    return 1
}
