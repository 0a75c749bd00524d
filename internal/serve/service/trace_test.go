package service_test

import (
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/service"
)

// A trace is taken from what is one, as its standard says.
func TestParseTraceParent(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for text, ok := range map[string]bool{
		"00-" + trace + "-" + span + "-01":                             true,
		"01-" + trace + "-" + span + "-01-more":                        true,
		"00-" + trace + "-" + span + "-01-more":                        false,
		"ff-" + trace + "-" + span + "-01":                             false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":            false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":           false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":          false,
		"00-" + trace + "-" + span:                                     false,
		"01-" + trace + "-" + span + "-01-" + strings.Repeat("x", 512): false,
		"00-" + trace + "-" + span + "-1":                              false,
		"00-" + trace[:31] + "x-" + span + "-01":                       false,
		"":                                                             false,
	} {
		gotTrace, gotSpan := service.ParseTraceParent(text)
		if (gotTrace == trace && gotSpan == span) != ok || !ok && gotTrace+gotSpan != "" {
			t.Errorf("%q: %q %q", text, gotTrace, gotSpan)
		}
	}
}
