#!/bin/sh
# Builds the agent, launches it in a home of its own, and compares what it says.
set -eu
cd "$(dirname "$0")"
rlp=${RLP:-rlp}
RUNLOOP_HOME=$(mktemp -d)
export RUNLOOP_HOME
trap 'rm -rf "$RUNLOOP_HOME"' EXIT
"$rlp" agent build --quiet

expect() {
	want=$1
	shift
	got=$("$rlp" launch . "$@")
	if [ "$got" != "$want" ]; then
		printf 'rlp launch . %s\n got: %s\nwant: %s\n' "$*" "$got" "$want" >&2
		exit 1
	fi
}

expect 'hello, world (1)'
expect 'hello, Ada (1)' -- Ada
expect 'hello, Ada (2)' -- Ada
expect 'hello, Ada; I cannot count: denied (cap_missing)' --deny kb:write:events -- Ada
echo ok
