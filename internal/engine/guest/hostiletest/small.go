package hostiletest

import "fmt"

// Small are the attacks that fill a module of at most size bytes: what a
// compiler takes for them is what any module of that size can make it take, as
// far as is known.
func Small(size int) []Attack {
	kinds := map[string]func(n int) []byte{
		"phi": Phi, "blocks": nestedOf("blocks"), "loops": nestedOf("loops"),
		"ifs": nestedOf("ifs"), "loops_left": nestedOf("loops_left"),
	}
	for _, values := range []int{8, 30, 100, 300, 1000} {
		types := of(i32, 0, values)
		both := of(i32, min(values, 300), min(values, 300))
		kinds[fmt.Sprintf("results_%d", values)] = func(n int) []byte {
			return program{ntypes: 1, types: types, code: cat(op(opUnreachable), nested(n, cat(op(opBlock), s(1)),
				op(opUnreachable)))}.bytes()
		}
		kinds[fmt.Sprintf("params_%d", values)] = func(n int) []byte {
			one := cat(op(opLoop), s(1), op(opLocalGet, 0, opBrIf, 0, opEnd))
			many := min(values, 300)
			return program{ntypes: 1, types: both, locals: localsOf(1, i32), code: cat(rep(many, constant(1)), rep(n, one),
				rep(many, op(opDrop)))}.bytes()
		}
		kinds[fmt.Sprintf("calls_%d", values)] = func(n int) []byte {
			code := cat(rep(n, op(opCall, 1), rep(0, op(opDrop))), op(opUnreachable))
			return binary(section(secType, u(2), op(0x60, 0, 0), types), section(secFunction, u(2), u(0), u(1)),
				section(secExport, u(1), text("_start"), op(0, 0)), section(secCode, u(2), body(u(0), code),
					body(u(0), op(opUnreachable))))
		}
		kinds[fmt.Sprintf("switch_%d", values)] = func(n int) []byte {
			code := cat(op(opBlock), s(1), op(opUnreachable), op(opEnd))
			code = cat(op(opBlock), s(1), op(opCall, 1, opLocalGet, 0, opBrTable), u(n), make([]byte, n), op(0, opEnd),
				op(opUnreachable), code)
			return binary(section(secType, u(2), op(0x60, 0, 0), types), section(secFunction, u(2), u(0), u(1)),
				section(secExport, u(1), text("_start"), op(0, 0)), section(secCode, u(2), body(localsOf(1, i32), code),
					body(u(0), op(opUnreachable))))
		}
	}
	for _, locals := range []int{100, 1000, 10_000, 50_000} {
		kinds[fmt.Sprintf("locals_%d", locals)] = func(n int) []byte {
			more := make([][]byte, n)
			for i := range more {
				more[i] = body(localsOf(locals, i64), nil)
			}
			return program{locals: localsOf(1, i32), more: more}.bytes()
		}
		kinds[fmt.Sprintf("locals_loops_%d", locals)] = func(n int) []byte {
			return program{locals: localsOf(locals, i64), code: nested(n, op(opLoop, void), op(opLocalGet, 0, opLocalSet,
				1))}.bytes()
		}
		kinds[fmt.Sprintf("locals_diamonds_%d", locals)] = func(n int) []byte {
			return program{locals: cat(u(2), u(1), op(i32), u(locals), op(i64)), code: cat(op(opLoop, void),
				rep(n, op(opLocalGet, 0, opIf, void, opLocalGet, 1, opLocalSet, 2, opElse, opLocalGet, 2, opLocalSet, 1, opEnd)),
				op(opBr, 0, opEnd))}.bytes()
		}
	}
	var list []Attack
	for name, make := range kinds {
		n := 1
		for len(make(n+1)) <= size {
			n++
		}
		if wasm := make(n); len(wasm) <= size {
			list = append(list, Attack{
				Name: "small_" + name, What: fmt.Sprintf("%d of %s", n, name), Ends: Bounded,
				Bytes: func() []byte { return wasm },
			})
		}
	}
	return list
}

func nestedOf(kind string) func(int) []byte { return func(n int) []byte { return Nested(kind, n) } }
