package guest_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
)

func TestReturningIsOK(t *testing.T) {
	end := run(t, module{pages: 2})
	if end.Kind != guest.OK || end.Err != nil || end.PeakMemory != 2<<16 || end.Wall <= 0 || end.Abandoned {
		t.Errorf("%+v", end)
	}
}

// A guest's exit is an exit whatever the number: those that the engine uses
// for itself and those that stand for a limit too.
//
//rlp:holds K37
func TestExitCodesAreTheGuests(t *testing.T) {
	for _, code := range []uint32{0, 1, 78, 124, 130, 137, 138, 255, 256, 0xefff_ffff, 0xffff_ffff} {
		end := run(t, module{imports: []imported{importOf(exit())}, code: slices.Concat(i32(code), call(0), spin())}, exit())
		want := guest.End{Kind: guest.Exit, ExitCode: code}
		if code == 0 {
			want.Kind = guest.OK
		}
		if end.Kind != want.Kind || end.ExitCode != want.ExitCode || end.Err != nil {
			t.Errorf("exit %#x: %+v", code, end)
		}
	}
}

func TestTraps(t *testing.T) {
	for want, m := range map[string]module{
		"unreachable":                   {code: []byte{opUnreachable}},
		"integer divide by zero":        {code: slices.Concat(i32(1), i32(0), []byte{opDiv, opDrop})},
		"out of bounds memory access":   {pages: 1, code: slices.Concat(i32(1<<31), []byte{opLoad, 2, 0, opDrop})},
		"stack overflow":                {code: call(0)},
		"invalid table access":          {table: []byte{1, 0x70, 0, 1}, code: slices.Concat(i32(5), []byte{0x11, 0, 0})},
		"invalid conversion to integer": {code: slices.Concat([]byte{0x43, 0, 0, 0xc0, 0x7f}, []byte{0xa8, opDrop})},
	} {
		end := runWith(t, guest.Config{Module: m.bytes(), MemoryBytes: 100 << 20}, wide) // room for the largest stack
		if end.Kind != guest.Trap || end.Trap != want || end.Err == nil {
			t.Errorf("%s: %+v", want, end)
		}
	}
	if end := run(t, module{start: true, code: []byte{opUnreachable}}); end.Kind != guest.Trap ||
		end.Trap != "unreachable" {
		t.Errorf("in the start section: %+v", end)
	}
}

//rlp:holds K23
func TestDeadlineEndsComputing(t *testing.T) {
	for name, m := range map[string]module{
		"_start":        {code: spin()},
		"start section": {code: spin(), start: true},
		"memory":        {pages: 1, code: []byte{opLoop, opVoid, opI32Const, 0, opLoad, 2, 0, opDrop, opBr, 0, opEnd}},
	} {
		end := runWith(t, guest.Config{Module: m.bytes(), MemoryBytes: 1 << 20}, quick)
		if end.Kind != guest.Timeout || end.Wall < quick || end.Abandoned {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

//rlp:holds K23
func TestDeadlineEndsWaitingInAHostFunction(t *testing.T) {
	wait := host("wait", func(ctx context.Context, _ []byte) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	m := module{imports: []imported{importOf(wait)}, code: call(0)}
	end := runWith(t, guest.Config{Module: m.bytes(), Funcs: []abi.Func{wait}}, quick)
	if end.Kind != guest.Timeout || end.Abandoned {
		t.Errorf("%+v", end)
	}
}

func TestNoTimeIsNoInstruction(t *testing.T) {
	called := 0
	f := host("f", func(context.Context, []byte) error { called++; return nil })
	m := module{imports: []imported{importOf(f)}, code: call(0), start: true}
	cfg := guest.Config{Module: m.bytes(), Funcs: []abi.Func{f}}
	for _, wall := range []time.Duration{0, -1} {
		if end := runWith(t, cfg, wall); end.Kind != guest.Timeout || called != 0 {
			t.Errorf("wall %d: %+v, %d calls", wall, end, called)
		}
	}
	if runWith(t, cfg, wide); called != 2 { // control: the start section and _start
		t.Errorf("%d calls", called)
	}
}

func TestCancelling(t *testing.T) {
	cause := errors.New("operator")
	ctx, cancel := context.WithCancelCause(context.Background())
	enter := host("enter", func(context.Context, []byte) error { cancel(cause); return nil })
	m := module{imports: []imported{importOf(enter)}, code: slices.Concat(call(0), spin())}
	mod := compile(t, guest.Config{Module: m.bytes(), Funcs: []abi.Func{enter}})
	if end := mod.Run(ctx, guest.RunConfig{Wall: wide}); end.Kind != guest.Cancelled || !errors.Is(end.Err, cause) {
		t.Errorf("%+v", end)
	}
	if end := mod.Run(ctx, guest.RunConfig{Wall: wide}); end.Kind != guest.Cancelled { // before it began
		t.Errorf("%+v", end)
	}
	if _, err := guest.Compile(ctx, guest.Config{Module: m.bytes()}); !errors.Is(err, cause) {
		t.Errorf("compiling: %v", err)
	}
}

//rlp:holds K27
func TestMemoryCap(t *testing.T) {
	went := false
	on := host("on", func(context.Context, []byte) error { went = true; return nil })
	use := func(m module) module {
		m.imports, m.code = []imported{importOf(on)}, append(m.code, call(0)...)
		return m
	}
	for name, c := range map[string]struct {
		m     module
		limit int64
		kind  guest.Kind
		peak  int64
	}{
		"in the cap":    {use(module{pages: 1, code: grow(3)}), 4 << 16, guest.OK, 4 << 16},
		"one page over": {use(module{pages: 1, code: grow(4)}), 4 << 16, guest.Memory, 1 << 16},
		"in steps": {
			use(module{pages: 1, code: slices.Concat(grow(1), grow(1), grow(2))}), 4 << 16,
			guest.Memory, 3 << 16,
		},
		"all that there can be": {use(module{pages: 1, code: grow(65535)}), 4 << 16, guest.Memory, 1 << 16},
		"cap within a page":     {use(module{pages: 1, code: grow(1)}), 2<<16 - 1, guest.Memory, 1 << 16},
		"minimum at the cap":    {use(module{pages: 4}), 4 << 16, guest.OK, 4 << 16},
		"minimum over the cap":  {use(module{pages: 5}), 4 << 16, guest.Memory, 0},
		"minimum of 4 GiB":      {use(module{pages: 65536}), 1 << 30, guest.Memory, 0},
		"no memory at all":      {use(module{}), 0, guest.OK, 0},
		"empty, and none":       {use(module{maxPages: -1, code: grow(1)}), 0, guest.Memory, 0},
		"its own maximum":       {use(module{pages: 1, maxPages: 2, code: grow(2)}), 4 << 16, guest.OK, 1 << 16},
		"declared over the cap": {use(module{pages: 1, maxPages: 100, code: grow(9)}), 4 << 16, guest.Memory, 1 << 16},
		"in the start section":  {module{pages: 1, code: grow(9), start: true}, 4 << 16, guest.Memory, 1 << 16},
	} {
		went = false
		end := runWith(t, guest.Config{Module: c.m.bytes(), Funcs: []abi.Func{on}, MemoryBytes: c.limit}, wide)
		if end.Kind != c.kind || end.PeakMemory != c.peak {
			t.Errorf("%s: %+v", name, end)
		}
		if went != (c.kind == guest.OK) { // a guest that was refused does not go on
			t.Errorf("%s: went on: %t", name, went)
		}
	}
}

func TestHostFunctionsSeeTheMemoryAsItIs(t *testing.T) {
	var sizes []int
	var kept byte
	look := host("look", func(_ context.Context, mem []byte) error {
		sizes = append(sizes, len(mem))
		if len(sizes) == 1 {
			mem[7] = 42
		}
		kept = mem[7]
		return nil
	})
	m := module{pages: 1, imports: []imported{importOf(look)}, code: slices.Concat(call(0), grow(2), call(0))}
	if end := run(t, m, look); end.Kind != guest.OK || !slices.Equal(sizes, []int{1 << 16, 3 << 16}) || kept != 42 {
		t.Errorf("%+v, %v, %d", end, sizes, kept)
	}
	none := host("look", func(_ context.Context, mem []byte) error { sizes = append(sizes, len(mem)); return nil })
	run(t, module{imports: []imported{importOf(none)}, code: call(0)}, none)
	if sizes[2] != 0 {
		t.Errorf("a guest without memory has %d bytes", sizes[2])
	}
}

func TestHostErrorsEndTheRun(t *testing.T) {
	full := errors.New("disk full")
	for name, f := range map[string]abi.Func{
		"error":     host("f", func(context.Context, []byte) error { return full }),
		"panic":     host("f", func(context.Context, []byte) error { panic(full) }),
		"bad index": host("f", func(_ context.Context, mem []byte) error { _ = mem[len(mem)]; return nil }),
	} {
		end := run(t, module{imports: []imported{importOf(f)}, code: slices.Concat(call(0), spin())}, f)
		if end.Kind != guest.HostError || end.In != "f" || end.Err == nil || name == "error" && end.Err != full {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

// The first boundary that is reached is the one that is told, whatever the
// guest or a host function does afterwards.
//
//rlp:holds K26
func TestTheFirstBoundaryWins(t *testing.T) {
	late := host("late", func(ctx context.Context, _ []byte) error {
		<-ctx.Done()
		return &abi.Exit{Code: 3}
	})
	lateTrap := host("late", func(ctx context.Context, _ []byte) error {
		<-ctx.Done()
		return nil
	})
	for name, f := range map[string]abi.Func{"exit": late, "trap": lateTrap} {
		m := module{pages: 1, imports: []imported{importOf(f)}, code: append(call(0), opUnreachable)}
		end := runWith(t, guest.Config{Module: m.bytes(), Funcs: []abi.Func{f}, MemoryBytes: 1 << 16}, quick)
		if end.Kind != guest.Timeout || end.ExitCode != 0 || end.Trap != "" {
			t.Errorf("%s after the deadline: %+v", name, end)
		}
	}
	grown := module{pages: 1, code: slices.Concat(grow(1), spin())}
	end := runWith(t, guest.Config{Module: grown.bytes(), MemoryBytes: 1 << 16}, quick)
	if end.Kind != guest.Memory || end.Wall >= quick {
		t.Errorf("memory before the deadline: %+v", end)
	}
}

func TestHostFunctionsRefuseAfterTheEnd(t *testing.T) {
	calls := 0
	var mod *guest.Module
	ctx, cancel := context.WithCancel(context.Background())
	f := host("f", func(inner context.Context, _ []byte) error {
		if calls++; calls == 1 {
			cancel()
			<-inner.Done()
		}
		return nil
	})
	m := module{imports: []imported{importOf(f)}, code: slices.Concat(call(0), call(0), call(0))}
	mod = compile(t, guest.Config{Module: m.bytes(), Funcs: []abi.Func{f}})
	if end := mod.Run(ctx, guest.RunConfig{Wall: wide}); end.Kind != guest.Cancelled || calls != 1 {
		t.Errorf("%+v, %d calls", end, calls)
	}
}

func TestAModuleRunsAgainFromTheStart(t *testing.T) {
	var seen []byte
	f := host("f", func(_ context.Context, mem []byte) error {
		seen = append(seen, mem[0])
		mem[0]++
		return nil
	})
	m := module{pages: 1, imports: []imported{importOf(f)}, code: call(0)}
	mod := compile(t, guest.Config{Module: m.bytes(), Funcs: []abi.Func{f}, MemoryBytes: 1 << 16})
	for range 3 {
		if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.OK {
			t.Errorf("%+v", end)
		}
	}
	if !slices.Equal(seen, []byte{0, 0, 0}) {
		t.Errorf("memory began with %v", seen)
	}
}

// Recursion without loops looks at the deadline at each function's entry.
//
//rlp:holds K23
func TestDeadlineEndsRecursion(t *testing.T) {
	for _, name := range []string{"recurse_exponential", "recurse_exponential_indirect", "start_section_recurse"} {
		wasm, err := os.ReadFile("testdata/hostile/" + name + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		end := runWith(t, guest.Config{Module: wasm, MemoryBytes: 1 << 20}, quick)
		if end.Kind != guest.Timeout || end.Abandoned {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

// A host function that does not look at its context is the one thing that
// cannot be ended. Run returns all the same, and says so.
//
//rlp:holds K23
func TestAGuestThatDoesNotStopIsAbandoned(t *testing.T) {
	release := make(chan struct{})
	deaf := host("deaf", func(context.Context, []byte) error { <-release; return nil })
	m := module{imports: []imported{importOf(deaf)}, code: call(0)}
	mod, err := guest.Compile(t.Context(), guest.Config{Module: m.bytes(), Funcs: []abi.Func{deaf}, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	end := mod.Run(t.Context(), guest.RunConfig{Wall: quick, Grace: quick})
	again := mod.Run(t.Context(), guest.RunConfig{Wall: quick})
	select {
	case <-end.Stopped:
		t.Error("it is said to have stopped")
	default:
	}
	close(release)
	<-end.Stopped
	if end.Kind != guest.Timeout || !end.Abandoned || again.Kind != guest.HostError || mod.Close() != nil {
		t.Errorf("%+v, then %+v", end, again)
	}
}

// A host function that waits for a person takes none of the guest's time, and
// what the guest does then is under the same deadline.
//
//rlp:holds K23
func TestWaitingForAPersonTakesNoWallTime(t *testing.T) {
	wait := host("wait", func(ctx context.Context, _ []byte) error {
		defer abi.ClockOf(ctx).Stop()()
		select {
		case <-time.After(3 * quick):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	m := module{imports: []imported{importOf(wait)}, code: slices.Concat(call(0), spin())}
	end := runWith(t, guest.Config{Module: m.bytes(), Funcs: []abi.Func{wait}}, quick)
	if end.Kind != guest.Timeout || end.Waited < 3*quick || end.Wall < quick {
		t.Errorf("%+v", end)
	}
}
