package launcher

import (
	"context"
	"errors"

	"runloop.dev/rlp/internal/guest"
)

// A Compilation is a module that is compiled before anybody launches it.
type Compilation struct {
	Agent    string // for messages
	Module   []byte
	SHA256   string // as of a [Spec]
	CacheDir string // of the tenant that will launch it
	Compiler func() (path string, err error)
	Slow     func() func() // as of a [Spec]; may be nil
}

// Compile makes native code of a module and keeps it for launches, all of which
// find it there. It refuses what a launch would refuse. uncached says why the
// cache could not be used: each launch will compile anew then.
func Compile(ctx context.Context, c Compilation) (uncached, err error) {
	funcs, err := signatures()
	if err != nil {
		return nil, err
	}
	if c.Slow != nil {
		defer c.Slow()()
	}
	m, err := guest.Prepare(ctx, guest.Config{Module: c.Module, SHA256: c.SHA256, Name: c.Agent, CacheDir: c.CacheDir, Compiler: c.Compiler, Funcs: funcs})
	if err != nil {
		return nil, err
	}
	return m.CacheErr(), m.Close()
}

// CompileStatus is the exit status that goes with an error of [Compile].
func CompileStatus(err error) int {
	switch {
	case errors.Is(err, context.Canceled):
		return StatusCancelled
	case errors.Is(err, guest.ErrCompiler):
		return StatusUnavailable
	}
	return StatusInput
}
