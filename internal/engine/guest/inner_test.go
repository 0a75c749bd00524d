package guest_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/engine/guest"
)

const huge = 0xffffffff

// A few bytes that claim four thousand million entries end the process inside
// a decoder that makes room first. Each case has a control that claims no more
// than is there.
func TestCountsThatNothingBacksAreRefused(t *testing.T) {
	name := func(sub byte, body ...[]byte) []byte {
		b := slices.Concat(body...)
		return section(0, text("name"), []byte{sub}, u(uint32(len(b))), b)
	}
	code := func(locals ...[]byte) []byte {
		body := slices.Concat(slices.Concat(locals...), []byte{opEnd})
		return slices.Concat(u(1), u(uint32(len(body))), body)
	}
	for _, c := range []struct {
		what          string
		attack, sound []byte
	}{
		{"function names", name(1, u(huge)), name(1, u(1), u(0), text("f"))},
		{"functions with local names", name(2, u(huge)), name(2, u(1), u(0), u(1), u(0), text("x"))},
		{"local names of a function", name(2, u(1), u(0), u(huge)), name(2, u(1), u(0), u(0))},
		{"length of a custom section's name", section(0, u(huge)), section(0, text("x"))},
		{"length of an export's name", section(7, u(1), u(huge)), section(7, u(1), text("e"), []byte{0, 0})},
		{"functions of an element segment", section(9, u(1), u(1), []byte{0}, u(huge)), section(9, u(1), u(1), []byte{0},
			u(0))},
		{
			"expressions of an element segment", section(9, u(1), u(5), []byte{0x70}, u(huge)),
			section(9, u(1), u(5), []byte{0x70}, u(0)),
		},
		{"bytes of a data segment", section(11, u(1), u(1), u(huge)), section(11, u(1), u(1), u(0))},
		{"groups of locals", section(10, code(u(huge))), section(10, code(u(0)))},
		{"locals of a group", section(10, code(u(1), u(huge), []byte{0x7f})), section(10, code(u(1), u(3), []byte{0x7f}))},
		{
			"locals of all groups", section(10, code(u(2), u(40_000), []byte{0x7f}, u(40_000), []byte{0x7e})),
			section(10, code(u(2), u(4), []byte{0x7f}, u(4), []byte{0x7e})),
		},
		{
			"parameters of a type", section(1, u(1), []byte{0x60}, u(1001), slices.Repeat([]byte{0x7f}, 1001), u(0)),
			section(1, u(1), []byte{0x60}, u(1000), slices.Repeat([]byte{0x7f}, 1000), u(0)),
		},
	} {
		header := []byte("\x00asm\x01\x00\x00\x00")
		if _, err := guest.Imports(slices.Concat(header, c.sound)); err != nil {
			t.Errorf("control: %s: %v", c.what, err)
		}
		if err := guest.Check(guest.Config{
			Module: slices.Concat(header, c.attack), Name: "attack",
			Compiler: os.Executable,
		}); !errors.Is(err, guest.ErrModule) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// What a module calls its imports cannot write on the operator's terminal.
func TestImportNamesAreQuoted(t *testing.T) {
	for _, name := range []string{"a\nRLP_WASM_ERROR code=X", "\x1b[2J", strings.Repeat("n", 100_000), "\u202e"} {
		err := &guest.ImportError{Import: guest.Import{Module: name, Name: name}, Reason: "unknown function"}
		text := err.Error()
		if len(text) > 1000 || strings.ContainsAny(text, "\n\x1b\u202e") {
			t.Errorf("%.40q makes %.80q (%d bytes)", name, text, len(text))
		}
	}
	err := &guest.ImportError{Import: guest.Import{Module: "env", Name: "system"}, Reason: "unknown function"}
	if err.Error() != "import env.system: unknown function" {
		t.Errorf("an ordinary name reads %q", err.Error())
	}
}
