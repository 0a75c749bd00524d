package guard_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/guard"
)

// Whatever becomes of a function, who started it is told, once, and nobody else
// is harmed; what panics say of payloads is not told.
func TestWhoeverStartedItIsTold(t *testing.T) {
	ours := errors.New("ours")
	for name, c := range map[string]struct {
		f    func() error
		want string // of what broke; "": nothing did
	}{
		"control: returns":  {func() error { return nil }, ""},
		"control: an error": {func() error { return ours }, ""},
		"a fault": {
			func() error { var s []int; return errors.Join(ours, errors.New(string(rune(s[len(s)])))) },
			"index out of range",
		},
		"a text":   {func() error { panic("what an agent was given") }, "a panic of type string"},
		"an error": {func() error { panic(ours) }, "a panic of type *errors.errorString"},
		"nil":      {func() error { panic(nil) }, "nil"},
		"ended":    {func() error { runtime.Goexit(); return nil }, "its goroutine was ended"},
	} {
		told := make(chan error, 2)
		guard.Go(c.f, func(err error) { told <- err })
		err := <-told
		var b *guard.Broken
		if errors.As(err, &b) != (c.want != "") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b != nil && (b.Where == "") != (name == "ended") {
			t.Errorf("%s: broke in %q", name, b.Where)
		}
		if b != nil && (b.Where != "" && !strings.HasPrefix(b.Where,
			"runloop.dev/rlp/internal/base/guard_test.TestWhoever") ||
			!strings.Contains(b.What, c.want) || strings.Contains(err.Error(), "agent was given") || len(b.Stack) == 0) {
			t.Errorf("%s: %q, want %q", name, err, c.want)
		}
	}
}
