// Package sdk is the guest half of the runloop_v1 interface for agents written
// in Go and built with GOOS=wasip1 GOARCH=wasm.
//
// Every function here that reaches the host is exactly one import, and the
// linker keeps an import only if something calls it: the imports of a module
// are the list of what it could ever do, so an agent shows what it needs by
// what it calls. Files, the environment, arguments and stdin need nothing from
// here; they are the os package as usual, at the host's absolute paths.
//
// # Denials
//
// The host decides each call under the agent's policy. A denial is an error and
// never the end of the agent: an [*Error] from a function of this package, an
// [io/fs.PathError] that is [io/fs.ErrPermission] from the os package. Both answer
// errors.Is(err, fs.ErrPermission), and [Why] puts either in a few words. An
// agent does what it still can, says what it could not, and exits 0.
//
//	if _, err := sdk.KBPut("contacts", id, value); errors.Is(err, sdk.ErrDenied) {
//		skipped = append(skipped, "contacts: "+sdk.Why(err))
//	}
//
// # Size
//
// A host decodes and validates a guest at every launch, so every megabyte
// counts. Package os alone is 2.4 MB of module; fmt adds 0.3 MB and
// encoding/json 1.1 MB. The functions for files, kb, log, result, parameters
// and time use neither (package jsonlite writes and reads what they need);
// those whose requests are JSON by nature (HTTP, models, exec, MCP, launches)
// use encoding/json and bring it in when they are called.
//
// # Tests
//
// In a native build the same functions speak the same protocol to a [Backend].
// Package sdktest has one that keeps a knowledge base in memory, denies what it
// is told to and builds modules to look at their imports.
package sdk
