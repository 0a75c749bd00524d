package analysis_test

import (
	"fmt"
	"strings"
	"testing"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/record/analysis"
)

// However long the names are that were used and asked for in vain, and however
// many, the document is read.
func TestNamesLeaveRoom(t *testing.T) {
	for _, deny := range []bool{false, true} {
		l := analysis.NewLearner()
		for i := range 200 {
			l.Decide("r", uint64(i), &analysis.Decision{Cap: "fs.read", Op: "path_open", Target: fmt.Sprint("/", i,
				strings.Repeat("*", 4000)), Deny: deny, Reason: "path_not_permitted"})
		}
		s := l.Suggest(analysis.Options{})
		b, findings := policy.ParseBase("p", []byte(s.Text), options)
		if b == nil || !strings.Contains(s.Text, "**...\n") || !strings.Contains(s.Text, " more\n") {
			t.Errorf("%d bytes: %v", len(s.Text), findings)
		}
	}
}
