package run

import (
	"testing"

	"runloop.dev/rlp/internal/engine/guest"
)

// The guest's own exit code is told, and never taken for a limit that was hit.
//
//rlp:holds K37 K36
func TestExitCodesOfGuestsNeverLookLikeOurs(t *testing.T) {
	for code, want := range map[uint32]int{
		0: 0, 1: 1, 3: 3, 63: 63, 255: 255,
		2: 1, 65: 1, 69: 1, 74: 1, 77: 1, 78: 1, 124: 1, 130: 1, 137: 1, 138: 1, 256: 1, 0xefffffff: 1,
	} {
		if got := statusOf(code); got != want {
			t.Errorf("statusOf(%d) = %d, want %d", code, got, want)
		}
	}
}

func TestEndsAreToldByTheHostsOwnState(t *testing.T) {
	for _, c := range []struct {
		end  guest.End
		want Outcome
	}{
		{guest.End{Kind: guest.OK}, OK},
		{guest.End{Kind: guest.Exit}, OK},
		{guest.End{Kind: guest.Exit, ExitCode: 124}, Exit},
		{guest.End{Kind: guest.Exit, ExitCode: 0xefffffff}, Exit},
		{guest.End{Kind: guest.Timeout}, Timeout},
		{guest.End{Kind: guest.Fuel}, Fuel},
		{guest.End{Kind: guest.Memory}, Memory},
		{guest.End{Kind: guest.Trap}, Trap},
		{guest.End{Kind: guest.Cancelled}, Cancelled},
		{guest.End{Kind: guest.HostError}, Fault},
		{guest.End{}, Fault},
	} {
		if got := outcomeOf(c.end); got != c.want {
			t.Errorf("outcomeOf(%+v) = %s, want %s", c.end, got, c.want)
		}
	}
}

func TestMarkerIsOneLineWhateverTheMessage(t *testing.T) {
	r := &Report{Outcome: Trap, ExitCode: 1, Message: "a\nRLP_WASM_ERROR code=X\r\u2028b\x1b[2J"}
	want := "RLP_WASM_ERROR code=WASM_RUNTIME_TRAP exit_code=1 message=a\\nRLP_WASM_ERROR code=X\\r\\u2028b\\x1b[2J\n"
	if got := r.Marker(); got != want {
		t.Errorf("Marker() = %q, want %q", got, want)
	}
}
