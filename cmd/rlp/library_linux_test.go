package main

import (
	"regexp"
	"slices"
	"testing"
)

// An agent that launches another one again and again has it compiled once; who
// launches it next compiles for itself.
func TestDelegatesShareWhatIsCompiled(t *testing.T) {
	h, boss := delegators(t, 3)
	for range 2 { // so small a module is in no cache
		var cached []string
		for _, m := range regexp.MustCompile(`"cached":(true|false).*"event":"run.compiled"`).FindAllStringSubmatch(h.mustAs("launch", "--events", boss), -1) {
			cached = append(cached, m[1])
		}
		if want := []string{"false", "false", "true", "true"}; !slices.Equal(cached, want) { // its own first
			t.Errorf("compiled before: %v, want %v", cached, want)
		}
	}
}
