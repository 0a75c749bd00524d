package sdk_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

// everyCall makes each call of the interface once, by its import.
func everyCall() map[string]error {
	return map[string]error{
		"net_http":       errOf(sdk.HTTP(sdk.HTTPRequest{})),
		"kb_get":         errOf(sdk.KBGet("d", "k")),
		"kb_put":         errOf(sdk.KBPut("d", "k", nil)),
		"kb_cas":         errOf(sdk.KBCAS("d", "k", nil, 0)),
		"kb_delete":      sdk.KBDelete("d", "k"),
		"kb_list":        errOf(sdk.KBList("d", "")),
		"kb_search":      errOf(sdk.KBSearch("d", "", 1)),
		"secret_handle":  errOf(sdk.SecretHandle("runloop/a/b")),
		"model_complete": errOf(sdk.ModelComplete(sdk.CompletionRequest{})),
		"model_embed":    errOf(sdk.ModelEmbed("m", nil)),
		"exec_run":       errOf(sdk.ExecRun(sdk.ExecRequest{})),
		"mcp_call":       errOf(sdk.MCPCall("s", "t", nil)),
		"agent_launch":   errOf(sdk.AgentLaunch(sdk.LaunchRequest{})),
		"turn_next":      errOf(sdk.TurnNext()),
		"time_now":       errOf(sdk.TimeNow()),
		"log":            sdk.Log(sdk.LevelInfo, ""),
		"result":         sdk.ResultOf(nil),
	}
}

// Every call tells a denial apart from everything else, and says which it was.
func TestEveryCallMayBeDenied(t *testing.T) {
	if n := len(everyCall()); n != len(contract) {
		t.Fatalf("%d calls, want %d", n, len(contract))
	}
	for errno, also := range map[sdk.Errno]error{
		sdk.ErrDenied:      fs.ErrPermission,
		sdk.ErrUnavailable: errors.ErrUnsupported,
	} {
		h := sdktest.New(t)
		for op := range contract {
			h.Deny(op, "", &sdk.Error{Errno: errno, Capability: "c", Reason: "r"})
		}
		for op, err := range everyCall() {
			e, ok := errors.AsType[*sdk.Error](err)
			if !ok || e.Op != op || e.Errno != errno || e.Capability != "c" || e.Reason != "r" || !errors.Is(err, also) {
				t.Errorf("%s: %v", op, err)
			}
		}
		var asked []string
		for _, c := range h.Calls {
			asked = append(asked, c.Op)
		}
		slices.Sort(asked)
		if len(slices.Compact(asked)) != len(contract) {
			t.Errorf("asked %v", asked)
		}
	}
}

// The host for tests: denials are by call and first argument, the first rule
// that fits stands, and what it does not know is unavailable.
func TestHostForTests(t *testing.T) {
	h := sdktest.New(t)
	h.Deny("kb_put", "b", &sdk.Error{Errno: sdk.ErrBudget})
	for domain, want := range map[string]error{"a": nil, "b": sdk.ErrBudget} {
		if _, err := sdk.KBPut(domain, "k", []byte("v")); !errors.Is(err, want) {
			t.Errorf("put in %s: %v, want %v", domain, err, want)
		}
	}
	if v, ok := h.Value("a", "k"); !ok || string(v) != "v" {
		t.Errorf("a/k: %q, %v", v, ok)
	}
	if v, ok := h.Value("b", "k"); ok {
		t.Errorf("b/k: %q", v)
	}
	if _, err := sdk.KBPut("a", "j", nil); err != nil || !slices.Equal(h.Keys("a", ""), []string{"j", "k"}) ||
		!slices.Equal(h.Keys("a", "k"), []string{"k"}) {
		t.Errorf("keys %v, %v", h.Keys("a", ""), err)
	}
	if _, err := sdk.TimeNow(); !errors.Is(err, sdk.ErrUnavailable) {
		t.Errorf("time: %v", err)
	}
	h.Handle("time_now", func([]string) ([]byte, error) { return nil, errors.New("clock stopped") })
	if _, err := sdk.TimeNow(); !errors.Is(err, sdk.ErrIO) || sdk.Why(err) != "i/o error: clock stopped" {
		t.Errorf("time: %v", err)
	}
}
