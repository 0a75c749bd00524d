package hostiletest

import "slices"

// Bombs are modules that are small, or say little, and keep a compiler busy or
// take all the memory that there is.
func Bombs() []Attack { return slices.Concat(nestingBombs(), countBombs(), fullBombs(), lineBombs()) }

func bomb(name, what string, slow bool, bytes func() []byte) Attack {
	return Attack{Name: "bomb_" + name, What: what, Ends: Bounded, Slow: slow, Bytes: bytes}
}

func nested(n int, opening, code []byte) []byte { return cat(rep(n, opening), code, rep(n, op(opEnd))) }

// Nested is what a compiler is slow at: n blocks, loops or ifs within each
// other, in one function.
func Nested(kind string, n int) []byte {
	opening := map[string][]byte{
		"blocks": op(opBlock, void), "loops": op(opLoop, void), "ifs": op(opLocalGet, 0, opIf, void),
		"loops_left": cat(op(opLoop, void, opLocalGet, 0, opBrIf, 0)),
	}[kind]
	return program{locals: localsOf(1, i32), code: nested(n, opening, nil)}.bytes()
}

// Phi is a loop of n diamonds, in each of which another of n locals is written.
func Phi(n int) []byte {
	code := op(opLoop, void)
	for i := range n {
		code = append(code, cat(op(opLocalGet), u(i), op(opIf, void), constant(i), op(opLocalSet), u((i+1)%n), op(opEnd))...)
	}
	code = cat(code, op(opLocalGet, 0, opBrIf, 0, opEnd))
	return program{locals: localsOf(n, i32), code: code}.bytes()
}

// Switch is n blocks around a br_table of m targets that leave them in turn.
func Switch(n, m int) []byte {
	targets := make([]byte, 0, 3*m)
	for i := range m {
		targets = append(targets, u(i%n)...)
	}
	code := cat(op(opLocalGet, 0, opBrTable), u(m), targets, u(0))
	return program{locals: localsOf(1, i32), code: nested(n, op(opBlock, void), code)}.bytes()
}

func nestingBombs() []Attack {
	list := []Attack{
		bomb("phi", "a loop of 1,500 diamonds over 1,500 locals", true, func() []byte { return Phi(1500) }),
		bomb("switch", "a br_table of 500,000 targets", true, func() []byte { return Switch(1000, 500_000) }),
		bomb("switches", "3,000 br_tables of 1,000 targets over 1,000 blocks", true, func() []byte {
			one := cat(op(opLocalGet, 0, opBrTable), u(1000))
			for i := range 1000 {
				one = append(one, u(i)...)
			}
			one = cat(op(opBlock, void), one, u(0), op(opEnd))
			return program{locals: localsOf(1, i32), code: nested(1000, op(opBlock, void), rep(3000, one))}.bytes()
		}),
		bomb("switch_values", "a br_table of 60,000 targets that carry 900 values each", true, func() []byte {
			values := rep(900, op(opLocalGet, 0))
			code := cat(op(opBlock), s(1), values, op(opLocalGet, 0, opBrTable), u(60_000), rep(60_000, op(0)), op(0, opEnd),
				rep(900, op(opDrop)))
			return program{ntypes: 1, types: of(i32, 0, 900), locals: localsOf(1, i32), code: code}.bytes()
		}),
		bomb("results", "1,000 nested blocks of 1,000 results", true, func() []byte {
			return program{
				ntypes: 1, types: of(i32, 0, 1000),
				code: cat(nested(1000, cat(op(opBlock), s(1)), rep(1000, constant(1))), rep(1000, op(opDrop))),
			}.bytes()
		}),
		bomb("loop_params", "loops of 1,000 parameters in a row, each a phi", true, func() []byte {
			one := cat(op(opLoop), s(1), op(opLocalGet, 0, opBrIf, 0, opEnd))
			return program{
				ntypes: 1, types: of(i32, 1000, 1000), locals: localsOf(1, i32),
				code: cat(rep(1000, constant(1)), rep(1000, one), rep(1000, op(opDrop))),
			}.bytes()
		}),
		bomb("dead_blocks", "100,000 blocks nested where nothing comes to", true, func() []byte {
			return program{code: cat(op(opUnreachable), nested(100_000, op(opBlock, void), nil))}.bytes()
		}),
		bomb("loops_locals", "1,000 loops within each other over 10,000 locals", true, func() []byte {
			var set []byte
			for i := range 10_000 {
				set = append(set, cat(op(opLocalGet), u(i), constant(1), op(opI32Add, opLocalSet), u(i))...)
			}
			return program{locals: localsOf(10_000, i32), code: nested(1000, op(opLoop, void),
				cat(set, op(opLocalGet, 0, opBrIf), u(500)))}.bytes()
		}),
	}
	for _, kind := range []string{"blocks", "loops", "ifs", "loops_left"} {
		for _, n := range []int{9_000, 60_000} {
			size := map[int]string{9_000: "9k", 60_000: "60k"}[n]
			list = append(list, bomb("nested_"+kind+"_"+size, size+" "+kind+" within each other", true, func() []byte {
				return Nested(kind, n)
			}))
		}
	}
	return list
}
