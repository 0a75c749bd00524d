#!/bin/sh
# Builds agent.wasm for WASI preview 1, whose target older compilers (Debian's
# rustc with libstd-rust-dev-wasm32) call wasm32-wasi.
set -eu
RUSTC=${RUSTC:-rustc}
export RUSTC
for target in wasm32-wasip1 wasm32-wasi; do
	libs=$("$RUSTC" --print target-libdir --target "$target" 2>/dev/null) || continue
	[ -d "$libs" ] || continue
	"${CARGO:-cargo}" build --quiet --release --target "$target" --target-dir target
	cp "target/$target/release/agent.wasm" agent.wasm
	exit
done
echo "$RUSTC builds nothing for WASI: run \`rustup target add wasm32-wasip1\`, or with Debian's" >&2
echo "rustc, cargo and libstd-rust-dev-wasm32: RUSTC=/usr/bin/rustc CARGO=/usr/bin/cargo" >&2
exit 1
