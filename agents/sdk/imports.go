//go:build wasip1

package sdk

import "unsafe"

// One declaration an import. A string crosses as a pair (ptr i32, len i32); out
// and room are the pair that every function ends in.

//go:wasmimport runloop_v1 response_read
//go:noescape
func responseRead(out unsafe.Pointer, room uint32) int32

//go:wasmimport runloop_v1 net_http
//go:noescape
func netHTTP(req, body string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 kb_get
//go:noescape
func kbGet(domain, key string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 kb_put
//go:noescape
func kbPut(domain, key, value string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 kb_cas
//go:noescape
func kbCAS(domain, key, value, revision string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 kb_delete
//go:noescape
func kbDelete(domain, key string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 kb_list
//go:noescape
func kbList(domain, prefix string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 kb_search
//go:noescape
func kbSearch(domain, query string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 secret_handle
//go:noescape
func secretHandle(id string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 model_complete
//go:noescape
func modelComplete(req string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 model_embed
//go:noescape
func modelEmbed(req string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 exec_run
//go:noescape
func execRun(req, stdin string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 mcp_call
//go:noescape
func mcpCall(req string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 agent_launch
//go:noescape
func agentLaunch(req string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 turn_next
//go:noescape
func turnNext(out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 time_now
//go:noescape
func timeNow(out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 log
//go:noescape
func logMessage(level, message string, out unsafe.Pointer, room uint32) int64

//go:wasmimport runloop_v1 result
//go:noescape
func result(json string, out unsafe.Pointer, room uint32) int64
