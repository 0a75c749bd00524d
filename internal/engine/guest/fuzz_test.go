package guest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/engine/guest/hostiletest"
	"runloop.dev/rlp/internal/engine/meter"
)

// Whatever the bytes are, looking at them neither panics nor asks for more than
// a multiple of them, and what passes is decoded by the engine.
func FuzzModule(f *testing.F) {
	for _, a := range append(hostiletest.Claims(), hostiletest.Runs()...) {
		if wasm := a.Bytes(); len(wasm) < 4<<10 {
			f.Add(wasm)
		}
	}
	for _, a := range hostiletest.Small(256) {
		f.Add(a.Bytes())
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if len(wasm) > 1<<10 {
			return // looked at and compiled in a process of its own
		}
		var err error
		n := allocated(func() { err = guest.Check(guest.Config{Module: wasm, Name: "fuzzed"}) })
		if n > 400*uint64(len(wasm))+1<<20 {
			t.Errorf("%d bytes were asked for, of %d", n, len(wasm))
		}
		var missing *guest.ImportError
		switch {
		case errors.As(err, &missing):
		case err != nil && !errors.Is(err, guest.ErrModule):
			t.Errorf("%v", err)
		case err != nil:
			return
		}
		decode(t, wasm)
	})
}

// decode has the engine decode and validate what would be compiled of a module,
// and its outline, which is valid if the module is.
func decode(t *testing.T, wasm []byte) {
	metered, err := meter.Rewrite(wasm, meter.Option{})
	if err != nil {
		return
	}
	short, err := guest.Outline(metered)
	if err != nil {
		t.Fatalf("no outline: %v", err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	valid := func(wasm []byte) bool {
		rt := wazero.NewRuntimeWithConfig(context.Background(),
			wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
		defer rt.Close(context.Background())
		_, err := rt.CompileModule(over, wasm)
		return err == nil
	}
	if valid(metered) && !valid(short) {
		t.Error("the outline of a valid module is not valid")
	}
}
