package wasi

import (
	"errors"
	"fmt"
	"strings"
)

// stringTable is a list of strings as C has it: one run of NUL-ended bytes and
// where each begins.
type stringTable struct {
	text   []byte
	starts []uint32
}

// maxStrings bounds the text of a table, as ARG_MAX does.
const maxStrings = 1 << 20

func newStringTable(what string, list []string) (stringTable, error) {
	var t stringTable
	for _, v := range list {
		if strings.IndexByte(v, 0) >= 0 {
			return t, fmt.Errorf("%w: %s with a NUL byte", ErrConfig, what)
		}
		t.starts = append(t.starts, uint32(len(t.text)))
		t.text = append(append(t.text, v...), 0)
		if len(t.text) > maxStrings {
			return t, fmt.Errorf("%w: more than %d bytes of %ss", ErrConfig, maxStrings, what)
		}
	}
	return t, nil
}

func (t *stringTable) get(m memory, a []uint64) (moved int, errno Errno) {
	ptrs, ok1 := m.span(uint32(a[0]), 4*uint64(len(t.starts)))
	text, ok2 := m.span(uint32(a[1]), uint64(len(t.text)))
	if !ok1 || !ok2 {
		return 0, EFAULT
	}
	copy(text, t.text)
	for i, start := range t.starts {
		putU32(ptrs[4*i:], uint32(a[1])+start)
	}
	return len(text) + len(ptrs), Success
}

func (t *stringTable) sizes(m memory, a []uint64) Errno {
	count, ok1 := m.at(uint32(a[0]), 4)
	size, ok2 := m.at(uint32(a[1]), 4)
	if !ok1 || !ok2 {
		return EFAULT
	}
	putU32(count, uint32(len(t.starts)))
	putU32(size, uint32(len(t.text)))
	return Success
}

// ErrConfig is what New answers to arguments or environment that a guest could
// not be given as they are.
var ErrConfig = errors.New("invalid wasi configuration")
