package hostcalls

import (
	"errors"
	"strings"
	"testing"
)

// A call that failed was a call: an agent has no more of a tool by letting it
// fail.
//
//rlp:holds A59
func TestFailedCallsCountForABudget(t *testing.T) {
	for name, c := range map[string]struct {
		ended       Ended
		result      error
		tokens, usd int64
	}{
		"exit code, by its words": {ended: Ended{ExitCode: 1}, tokens: 10, usd: -1},
		"exit code, by its own count": {
			ended: Ended{ExitCode: 1, Stdout: []byte(`{"usage":{"tokens":9}}`)}, tokens: 18,
			usd: -1,
		},
		"exit code, by its own cost": {
			ended: Ended{ExitCode: 1, Stdout: []byte(`{"usage":{"usd":0.0005}}`)}, tokens: -1,
			usd: 1000,
		},
		"too slow":       {ended: Ended{TimedOut: true}, tokens: 10, usd: -1},
		"another result": {ended: Ended{Stdout: []byte(`{}`)}, result: errors.New("no"), tokens: 11, usd: -1},
	} {
		tool := grepTool()
		tool.Tokens, tool.MicroUSD = c.tokens, c.usd
		if c.result != nil {
			tool.Result = func([]byte) ([]byte, error) { return nil, c.result }
		}
		r, f := toolRig(t, tool, grepGrants...)
		f.answers = c.ended
		var last string
		for range 9 {
			var n int64
			if n, last = r.use("count", `{"a":"123456789012"}`); n >= 0 { // five tokens
				t.Fatalf("%s: %s", name, last)
			}
		}
		if len(f.ran) != 2 || !strings.Contains(last, "the tool's own budget") {
			t.Errorf("%s: %d calls, and then %s", name, len(f.ran), last)
		}
	}
}
