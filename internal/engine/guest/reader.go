package guest

import (
	"slices"

	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/wasm"
)

// reader takes a binary apart, within the bounds on modules.
type reader struct{ wasm.Reader }

func newReader(b []byte) *reader { return &reader{wasm.New(b, nil)} }

func (r *reader) rest() []byte { return r.B[r.P:] }

func (r *reader) name() string { return string(r.Name()) }

func (r *reader) valueTypes() []abi.Type {
	raw := r.Take(r.U32())
	out := make([]abi.Type, len(raw))
	for i, c := range raw {
		out[i] = abi.Type(c)
	}
	return out
}

// Import is what a module asks for by name.
type Import struct {
	Module, Name    string
	Kind            string // "function", "table", "memory" or "global"
	Params, Results []abi.Type
}

// Imports reads what a module imports, in its order, without compiling it: the
// list of what it could ever do. Its errors wrap [ErrModule].
func Imports(module []byte) ([]Import, error) {
	s, err := scan(module)
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.imports), nil
}
