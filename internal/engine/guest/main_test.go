package guest_test

import (
	"os"
	"testing"

	"runloop.dev/rlp/internal/engine/guest"
)

// The tests' own program is the compiler, too.
func TestMain(m *testing.M) {
	if status, done := guest.BeCompiler(os.Args, os.Stdin, os.Stdout); done {
		os.Exit(status)
	}
	os.Exit(m.Run())
}
