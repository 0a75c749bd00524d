package sdk

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"
)

// promise is an invocation that claims a length and has pending bytes to read.
func promise(n int64, pending string) invocation {
	return func(unsafe.Pointer, uint32) int64 {
		native.pending = []byte(pending)
		return n
	}
}

// What a host promises and does not keep is an error that names the call; what
// was in the caller's buffer stays.
func TestHostThatDoesNotKeepItsWord(t *testing.T) {
	for name, invoke := range map[string]invocation{
		"ended early": promise(5000, strings.Repeat("x", 4999)),
		"nothing":     promise(5000, ""),
		"too long":    promise(math.MaxInt32+1, ""),
	} {
		got, err := call("kb_get", []byte("kept"), invoke)
		if e, ok := errors.AsType[*Error](err); !ok || e.Op != "kb_get" || e.Errno != ErrIO || e.Hint == "" ||
			string(got) != "kept" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// The control: the promise kept.
	if got, err := call("kb_get", []byte("kept"), promise(5000, strings.Repeat("x", 5000))); err != nil ||
		len(got) != 5004 {
		t.Errorf("control: %d bytes, %v", len(got), err)
	}
}

func TestErrorAccounts(t *testing.T) {
	for account, want := range map[string]Error{
		`{"error":"acces","capability":"kb:read:a","reason":"cap_missing","hint":"h"}`: {
			Capability: "kb:read:a",
			Reason:     "cap_missing", Hint: "h",
		},
		`{"reason":"cap_missing","new":[1,{}]}`: {Reason: "cap_missing"},
		`{"reason":null}`:                       {}, "": {}, "no JSON": {}, "[]": {}, "[{},{}]": {}, `{"reason":"cut of`: {},
		`{"hint":"` + strings.Repeat("x", 2*accountMax) + `"}`: {}, // longer than anybody reads
	} {
		want.Op, want.Errno = "kb_get", ErrDenied
		_, err := call("kb_get", nil, promise(-2, account))
		if e, ok := errors.AsType[*Error](err); !ok || *e != want {
			t.Errorf("%.60s: %+v, want %+v", account, err, want)
		}
	}
	for n, want := range map[int64]Errno{-1: 1, -73: 73, math.MinInt32: ErrIO, math.MinInt64: ErrIO} {
		if _, err := call("log", nil, promise(n, "")); !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", n, err, want)
		}
	}
}
