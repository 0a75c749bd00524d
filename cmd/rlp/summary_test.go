package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"runloop.dev/rlp/launcher"
)

// A run that printed nothing shows what it returned, and one that printed does not.
//
//rlp:holds D6
func TestASummaryShowsAResultThatNobodySaw(t *testing.T) {
	for printed, want := range map[int64]bool{0: true, 5: false} {
		var stderr bytes.Buffer
		a := &app{environment: environment{stderr: &stderr}}
		a.verbose = true
		r := &launcher.Report{RunID: "0198d2c4-7f1e-7000-8000-6d0c3f0a1b2c", Outcome: "ok", Result: json.RawMessage("{\"a\":\n1}")}
		r.Usage.StdoutBytes = printed
		summarize(t.Context(), a, r, "x", false)
		said := stderr.String()
		if strings.Contains(said, `rlp: result: {"a": 1}`+"\n") != want ||
			!strings.HasPrefix(said, "rlp: ok in 0s, 0 allowed, 0 denied (run 3f0a1b2c)\n") {
			t.Errorf("%d bytes printed: %q", printed, said)
		}
	}
}
