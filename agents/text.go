// Package agents is the text that authors of agents start from: the SDK of each
// language, and a first agent written with it. `rlp agent new` writes it into new
// folders. It is data: nothing of it runs in the host.
package agents

import "embed"

// GoVersion is the go line of a module that uses the SDK for Go.
const GoVersion = "1.26.0"

// Text is the sources, by their names in this folder. What is built beside them is
// not among them.
//
//go:embed sdk/*.go sdk/jsonlite/*.go sdk/sdktest/*.go sdk/c/runloop.h sdk/rust/runloop.rs
//go:embed sdk/first/manifest.toml sdk/first/policy.caps sdk/first/test.sh sdk/first/go/*.go
//go:embed sdk/first/c/main.c sdk/first/c/build.toml
//go:embed sdk/first/rust/Cargo.toml sdk/first/rust/build.sh sdk/first/rust/build.toml sdk/first/rust/src/main.rs
var Text embed.FS
