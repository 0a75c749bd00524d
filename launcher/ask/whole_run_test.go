package ask

import (
	"strings"
	"testing"
)

// The beginning or the end of an id is enough, and one that means several names them.
func TestOneIDOfMany(t *testing.T) {
	ids := []string{"0198d2c4-aa", "0198d2c4-bb", "0198d2c5-ab", "0198d2c5-ab"}
	for given, want := range map[string]string{
		"0198d2c4-aa": "0198d2c4-aa", "0198d2c5": "0198d2c5-ab", "bb": "0198d2c4-bb", "…aa": "0198d2c4-aa",
	} {
		if got, err := OneID("run", given, "rlp runs", ids); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", given, got, err, want)
		}
	}
	for given, want := range map[string]string{
		"0198d2c4": "more than one run: 0198d2c4-aa, 0198d2c4-bb", "b": "more than one run: 0198d2c4-bb, 0198d2c5-ab",
		"ff": "there is no run ff; rlp runs shows all", "…": "there is no run",
	} {
		if got, err := OneID("run", given, "rlp runs", ids); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v; want %s", given, got, err, want)
		}
	}
}
