//go:build !wasip1

// Package sdktest is what an agent's own tests need: a host that keeps a
// knowledge base in memory and denies what it is told to, and a look at what a
// built module imports. It is for native tests; nothing of it runs in a guest.
package sdktest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/jsonlite"
)

// A Call is one import that an agent called, with its arguments.
type Call struct {
	Op   string
	Args []string
}

// A Host answers kb_get, kb_put, kb_cas, kb_delete, kb_list, log and result. Any
// other call is unavailable unless [Host.Handle] says otherwise. It is for one
// goroutine at a time.
type Host struct {
	Calls  []Call // everything that was asked, denied or not
	Result []byte // what the agent returned; nil: nothing
	Log    []string

	kb     map[string]value // by domain, NUL, key
	denied []denial
	handle map[string]func(args []string) ([]byte, error)
}

type value struct {
	data     []byte
	revision uint64
}

type denial struct {
	op, arg string
	err     *sdk.Error
}

// New makes a host and installs it until the test ends.
func New(t testing.TB) *Host {
	h := &Host{kb: map[string]value{}, handle: map[string]func([]string) ([]byte, error){}}
	t.Cleanup(sdk.SetBackend(h))
	return h
}

// Deny makes every later call of op, with arg as its first argument unless arg
// is "", fail with e.
func (h *Host) Deny(op, arg string, e *sdk.Error) {
	h.denied = append(h.denied, denial{op, arg, e})
}

// Handle answers op by f.
func (h *Host) Handle(op string, f func(args []string) ([]byte, error)) { h.handle[op] = f }

// Value returns what is stored at key, and whether anything is.
func (h *Host) Value(domain, key string) ([]byte, bool) {
	v, ok := h.kb[domain+"\x00"+key]
	return v.data, ok
}

// Keys returns the keys of a domain that begin with prefix, sorted.
func (h *Host) Keys(domain, prefix string) []string {
	var keys []string
	for k := range h.kb {
		if key, ok := strings.CutPrefix(k, domain+"\x00"); ok && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Call implements [sdk.Backend].
func (h *Host) Call(op string, args ...string) ([]byte, error) {
	h.Calls = append(h.Calls, Call{op, args})
	for _, d := range h.denied {
		if d.op == op && (d.arg == "" || len(args) > 0 && args[0] == d.arg) {
			return nil, d.err
		}
	}
	if f := h.handle[op]; f != nil {
		return f(args)
	}
	switch op {
	case "log":
		h.Log = append(h.Log, args[0]+": "+args[1])
		return nil, nil
	case "result":
		h.Result = []byte(args[0])
		return nil, nil
	case "kb_put":
		return h.put(args[0], args[1], args[2]), nil
	case "kb_cas":
		if revision := h.kb[args[0]+"\x00"+args[1]].revision; strconv.FormatUint(revision, 10) != args[3] {
			return nil, &sdk.Error{Errno: sdk.ErrConflict}
		}
		return h.put(args[0], args[1], args[2]), nil
	case "kb_list":
		return h.list(args[0], args[1]), nil
	case "kb_get", "kb_delete":
		v, ok := h.Value(args[0], args[1])
		if !ok {
			return nil, &sdk.Error{Errno: sdk.ErrNotExist}
		}
		if op == "kb_delete" {
			delete(h.kb, args[0]+"\x00"+args[1])
			return nil, nil
		}
		return v, nil
	}
	return nil, &sdk.Error{Errno: sdk.ErrUnavailable, Reason: "unavailable"}
}

func (h *Host) put(domain, key, data string) []byte {
	id := domain + "\x00" + key
	v := value{data: []byte(data), revision: h.kb[id].revision + 1}
	h.kb[id] = v
	return strconv.AppendUint(nil, v.revision, 10)
}

func (h *Host) list(domain, prefix string) []byte {
	var w jsonlite.Writer
	w.Array()
	for _, key := range h.Keys(domain, prefix) {
		v := h.kb[domain+"\x00"+key]
		w.Object()
		w.Key("key").String(key)
		w.Key("revision").Int(int64(v.revision))
		w.Key("size").Int(int64(len(v.data)))
		w.End()
	}
	w.End()
	return bytes.Clone(w.Bytes())
}
