package agents_test

import (
	"os"
	"strings"
	"testing"

	"runloop.dev/rlp/agents"
)

// A new module may ask for no newer Go than the SDK was written for, and no older.
func TestGoVersionIsThatOfTheModule(t *testing.T) {
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\ngo "+agents.GoVersion+"\n") {
		t.Errorf("go.mod of the project has no line %q", "go "+agents.GoVersion)
	}
}
