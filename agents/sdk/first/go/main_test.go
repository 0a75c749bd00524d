package main

import (
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

// A host that is not there answers: what is stored stays, what is denied is said.
func TestGreet(t *testing.T) {
	host := sdktest.New(t)
	for _, want := range []string{"hello, Ada (1)", "hello, Ada (2)"} {
		if got := greet("Ada"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if string(host.Result) != "2" {
		t.Errorf("the result is %s", host.Result)
	}
	host.Deny("kb_put", "events", &sdk.Error{Errno: sdk.ErrDenied, Reason: "cap_missing"})
	if got, want := greet("Ada"), "hello, Ada; I cannot count: denied (cap_missing)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
