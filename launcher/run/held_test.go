package run

import (
	"context"
	"slices"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/record/audit"
)

// leb is n as modules write it.
func leb(n uint32) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// number is an instruction that gives n.
func number(n uint32) (b []byte) {
	b = []byte{0x41}
	for v := int32(n); ; v >>= 7 {
		if v >= -64 && v < 64 {
			return append(b, byte(v)&0x7f)
		}
		b = append(b, byte(v)&0x7f|0x80)
	}
}

// repeats is a module of two pages of memory that calls an import over and over.
func repeats(module, name string, result byte, data string, args ...uint32) []byte {
	text := func(s string) []byte { return append(leb(uint32(len(s))), s...) }
	section := func(id byte, parts ...[]byte) []byte {
		all := slices.Concat(parts...)
		return slices.Concat([]byte{id}, leb(uint32(len(all))), all)
	}
	params := slices.Repeat([]byte{0x7f}, len(args))
	code := []byte{0, 0x03, 0x40} // no locals, loop
	for _, a := range args {
		code = append(code, number(a)...)
	}
	code = append(code, 0x10, 0, 0x1a, 0x0c, 0, 0x0b, 0x0b) // call, drop, again
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{2, 0x60}, leb(uint32(len(args))), params, []byte{1, result, 0x60, 0, 0}),
		section(2, []byte{1}, text(module), text(name), []byte{0, 0}),
		section(3, []byte{1, 1}), section(5, []byte{1, 0, 2}),
		section(7, []byte{2}, text("memory"), []byte{2, 0}, text("_start"), []byte{0, 1}),
		section(10, []byte{1}, leb(uint32(len(code))), code),
		section(11, []byte{1, 0, 0x41, 0, 0x0b}, text(data)))
}

// A largeKB has one large value.
type largeKB struct{ hostcalls.KB }

func (largeKB) Get(context.Context, string, string) (hostcalls.KBValue, error) {
	return hostcalls.KBValue{Bytes: make([]byte, 20<<20), Plain: true}, nil
}

// What a run prints and is answered is memory of its own: what is more than it may
// have ends it, and its usage says how much that was, whatever the operator lets it
// print. Control: what is not kept, and what there is room for, ends nothing.
func TestMemoryBoundsWhatIsHeldForARun(t *testing.T) {
	const mib = 1 << 20
	// 64 KiB from 16 on
	prints := repeats("wasi_snapshot_preview1", "fd_write", 0x7f, "\x10\x00\x00\x00\x00\x00\x01\x00", 1, 0, 1, 8)
	complains := repeats("wasi_snapshot_preview1", "fd_write", 0x7f, "\x10\x00\x00\x00\x00\x00\x01\x00", 2, 0, 1, 8)
	asks := repeats(hostcalls.ImportModule, "kb_get", 0x7e, "noteskey", 0, 5, 5, 3, 64, 0)
	for name, c := range map[string]struct {
		module        []byte
		memory, print int64
		want          Outcome
	}{
		"output that is kept":                {prints, 8 * mib, 1 << 40, Memory},
		"the same on stderr":                 {complains, 8 * mib, 1 << 40, Memory},
		"an answer":                          {asks, 8 * mib, mib, Memory},
		"control: output that is not kept":   {prints, 8 * mib, mib, Fuel},
		"control: room for an answer":        {asks, 30 * mib, mib, Fuel},
		"control: no more than all may have": {prints, mib, mib, Fuel},
	} {
		spec := specOf(t, audit.NewMemory(), "kb:read:notes")
		spec.Module, spec.Components = c.module, hostcalls.Components{KB: largeKB{}, Masks: spyMasks{}}
		limits := caps.Limits{}.With(caps.MemoryBytes, c.memory).With(caps.StdoutMaxBytes, c.print).With(caps.StderrMaxBytes,
			c.print).With(caps.CPUFuel, 2_000_000)
		spec.Policy.Layers = []*caps.Layer{{Name: "operator", Limits: limits}}
		r := Launch(t.Context(), spec)
		if r.Outcome != c.want || r.ExitCode != outcomes[c.want].status {
			t.Errorf("%s: %s, exit %d: %s", name, r.Outcome, r.ExitCode, r.Message)
		}
		if r.Usage.MemoryBytes > c.memory || len(r.Stdout)+len(r.Stderr) > int(c.memory)+mib {
			t.Errorf("%s: %d bytes of memory, %d and %d printed", name, r.Usage.MemoryBytes, len(r.Stdout), len(r.Stderr))
		}
		if c.print > mib && r.Usage.MemoryBytes < c.memory/2 {
			t.Errorf("%s: only %d bytes are told", name, r.Usage.MemoryBytes)
		}
	}
}
