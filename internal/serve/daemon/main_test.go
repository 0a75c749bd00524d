package daemon

import (
	"os"
	"testing"
)

// TestMain is the tests, or a client that one of them starts: whoever serves
// compares clients with itself.
func TestMain(m *testing.M) {
	if path := os.Getenv("RESIDENT_CLIENT"); path != "" {
		os.Exit(clientMain(path))
	}
	os.Exit(m.Run())
}
