package guest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// strangeFunction is of an engine that is not known.
type strangeFunction struct{ api.Function }

// An engine whose stack cannot be bounded, and whatever breaks in this program, is
// no trap of a guest's; what the engine says of a guest is the control.
func TestFaultsAreNoTraps(t *testing.T) {
	broke := func() (err error) {
		defer func() { err = recover().(error) }()
		_ = []int{}[len(t.Name())]
		return nil
	}()
	var m memory
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"engine":  {m.lend(&strangeFunction{}), true},
		"memory":  {fmt.Errorf("growing: %w", errNoMemory), true},
		"runtime": {fmt.Errorf("%w (recovered by wazero)", broke), true},
		"trap":    {errors.New("wasm error: unreachable"), false},
	} {
		if got := isFault(c.err); got != c.want {
			t.Errorf("%s: %v: %v", name, c.err, got)
		}
	}
}
