package guest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
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
	m := memory{stacks: new(stacks)}
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

// The engine that is linked has its stack where it is looked for, by name and by
// type: one that does not runs no guest ([errEngine]), and this says so first. Its
// functions of the host have none.
func TestTheEngineHasItsStackWhereItIsLookedFor(t *testing.T) {
	const module = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00\x0a\x04\x01\x02\x00\x0b"
	engine := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigCompiler())
	defer engine.Close(t.Context())
	instance, err := engine.Instantiate(t.Context(), []byte(module))
	if err != nil {
		t.Fatal(err)
	}
	fn := instance.ExportedFunction("f")
	m := memory{limit: 1 << 20, stacks: new(stacks), refused: func() {}, missing: func() {}}
	if err := m.lend(fn); err != nil || m.stack.engine == nil || &(*m.stack.engine.slice)[0] != &m.stack.region[0] {
		t.Fatalf("the stack is not lent: %v", err)
	}
	defer m.stack.free(m.stacks)
	if _, err := fn.Call(t.Context()); err != nil {
		t.Errorf("a call on it: %v", err)
	}
}
