package meter_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// writer writes random programs that end: loops count down, and a function
// calls only those behind it.
type writer struct {
	*rand.Rand
	b     strings.Builder
	self  int // index of the function being written
	last  int // of all functions
	depth int // loops around
	left  int // statements yet to write
}

// Locals: two parameters, three of its own, and one for each loop within another.
const (
	plainLocals = 5
	maxLoops    = 3
)

func (w *writer) f(format string, args ...any) { fmt.Fprintf(&w.b, format+"; ", args...) }

// number leaves an i32 on the stack.
func (w *writer) number(depth int) {
	switch n := w.IntN(14); {
	case depth <= 0 || n < 3:
		w.f("get %d", w.IntN(plainLocals))
	case n < 5:
		w.f("i32 %d", int32(w.Uint32()>>(w.IntN(4)*8)))
	case n < 9:
		w.number(depth - 1)
		w.number(depth - 1)
		w.f("%s", []string{"add", "sub", "mul", "xor", "and", "rotl", "lt_u"}[w.IntN(7)])
	case n == 9:
		w.number(depth - 1)
		w.f("i32 4095; and; load")
	case n == 10:
		w.number(depth - 1)
		w.f("if i32")
		w.number(depth - 1)
		w.f("else")
		w.number(depth - 1)
		w.f("end")
	case n == 11 && w.self < w.last:
		w.number(depth - 1)
		w.number(depth - 1)
		if callee := w.self + 1 + w.IntN(w.last-w.self); w.IntN(2) == 0 {
			w.f("call %d", callee)
		} else {
			w.f("i32 %d; call_indirect %d", callee-1, callee)
		}
	case n == 12:
		w.number(depth - 1)
		w.number(depth - 1)
		w.number(depth - 1)
		w.f("select")
	default:
		w.f("global.get 0")
	}
}

// statements writes some, within labels that may be left to; those of loops
// are not.
func (w *writer) statements(labels []bool) {
	for range 1 + w.IntN(4) {
		if w.left--; w.left < 0 {
			return
		}
		w.statement(labels)
	}
}

func (w *writer) within(labels []bool, leave bool) {
	w.statements(append([]bool{leave}, labels...))
}

func (w *writer) target(labels []bool) (int, bool) {
	i := w.IntN(len(labels) + 1)
	return i, i < len(labels) && labels[i]
}

func (w *writer) statement(labels []bool) {
	switch w.IntN(15) {
	case 0, 1:
		w.number(2)
		w.f("set %d", w.IntN(plainLocals))
	case 2:
		w.number(2)
		w.f("i32 4095; and")
		w.number(2)
		w.f("store")
	case 3:
		w.number(1)
		w.f("call 0")
	case 4, 5:
		w.number(1)
		w.f("if")
		w.within(labels, true)
		if w.IntN(2) == 0 {
			w.f("else")
			w.within(labels, true)
		}
		w.f("end")
	case 6, 7:
		w.f("block")
		w.within(labels, true)
		w.f("end")
	case 8, 9:
		w.loop(labels)
	case 10:
		if i, ok := w.target(labels); ok {
			w.number(1)
			w.f("br_if %d", i)
		}
	case 11:
		w.jump(labels)
	case 12:
		w.number(1)
		w.f("global.set 0")
	case 13:
		w.bulk()
	case 14:
		w.rare()
	}
}

// loop runs a few times and may go on early.
func (w *writer) loop(labels []bool) {
	if w.depth >= maxLoops {
		return
	}
	counter := plainLocals + w.depth
	w.depth++
	w.f("i32 %d; set %d; block; loop; get %d; eqz; br_if 1; get %d; i32 1; sub; set %d", 1+w.IntN(6), counter, counter,
		counter, counter)
	w.statements(append([]bool{true, true}, labels...))
	w.f("br 0; end; end")
	w.depth--
}

func (w *writer) jump(labels []bool) {
	i, ok := w.target(labels)
	j, also := w.target(labels)
	switch {
	case ok && also && w.IntN(2) == 0:
		w.number(1)
		w.f("br_table %d %d %d", i, j, i)
	case ok:
		w.f("br %d", i)
	case w.IntN(2) == 0:
		w.number(1)
		w.f("return")
	}
}

func (w *writer) bulk() {
	switch w.IntN(5) {
	case 0:
		w.f("i32 %d; get 0; i32 %d; memory.fill", w.IntN(9000), w.IntN(200))
	case 1:
		w.f("i32 %d; i32 %d; i32 %d; memory.copy", w.IntN(9000), w.IntN(9000), w.IntN(200))
	case 2:
		w.f("i32 %d; i32 0; i32 %d; memory.init 0", w.IntN(9000), w.IntN(5))
	case 3:
		w.f("i32 %d; memory.grow; set 2", w.IntN(2))
	case 4:
		w.f("i32 0; i32 1; i32 %d; table.copy", w.IntN(2))
	}
}

// rare is what ends a program, or nearly.
func (w *writer) rare() {
	switch w.IntN(6) {
	case 0:
		w.number(1)
		w.f("if; unreachable; end")
	case 1:
		w.number(1)
		w.number(1)
		w.f("div_u; set 3")
	case 2:
		w.f("i32 60000; get 0; i32 %d; memory.fill", 5000+w.IntN(1000))
	default:
		w.number(1)
		w.f("loop 4; i32 1; add; end; drop")
	}
}

// randomModule is a module of some functions (i32, i32) -> i32.
func randomModule(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	n := 1 + r.IntN(3)
	m := testModule{}
	for i := 1; i <= n; i++ {
		w := &writer{Rand: r, self: i, last: n, left: 30}
		w.statements(nil)
		w.number(2)
		m.fns = append(m.fns, fn{
			sig: sig{i32 + i32, i32}, locals: strings.Repeat(i32, plainLocals-2+maxLoops),
			code: w.b.String(),
		})
	}
	// One type of a block with a parameter, where loop 4 finds it whatever n is.
	for len(m.fns) < 3 {
		m.fns = append(m.fns, fn{sig: sig{i32 + i32, i32}, code: "get 0"})
	}
	m.blocks = []sig{{i32, i32}}
	return m.bytes()
}
