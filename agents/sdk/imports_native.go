//go:build !wasip1

package sdk

import "unsafe"

// The imports of imports.go where there is no host: the same names, arguments
// and protocol, answered by the [Backend].

func responseRead(out unsafe.Pointer, room uint32) int32 { return native.read(out, room) }

func netHTTP(req, body string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "net_http", req, body)
}

func kbGet(domain, key string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "kb_get", domain, key)
}

func kbPut(domain, key, value string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "kb_put", domain, key, value)
}

func kbCAS(domain, key, value, revision string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "kb_cas", domain, key, value, revision)
}

func kbDelete(domain, key string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "kb_delete", domain, key)
}

func kbList(domain, prefix string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "kb_list", domain, prefix)
}

func kbSearch(domain, query string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "kb_search", domain, query)
}

func secretHandle(id string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "secret_handle", id)
}

func modelComplete(req string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "model_complete", req)
}

func modelEmbed(req string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "model_embed", req)
}

func execRun(req, stdin string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "exec_run", req, stdin)
}

func mcpCall(req string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "mcp_call", req)
}

func agentLaunch(req string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "agent_launch", req)
}

func turnNext(out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "turn_next")
}

func timeNow(out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "time_now")
}

func logMessage(level, message string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "log", level, message)
}

func result(json string, out unsafe.Pointer, room uint32) int64 {
	return native.call(out, room, "result", json)
}
