package hostiletest

import "slices"

func countBombs() []Attack {
	many := func(n int, entry ...[]byte) func() []byte {
		return func() []byte { return cat(u(n), rep(n, entry...)) }
	}
	with := func(set func(p *program)) func() []byte {
		return func() []byte {
			var p program
			set(&p)
			return p.bytes()
		}
	}
	in := func(id byte, entries func() []byte) []byte { return section(id, entries()) }
	global := cat(op(i32, 1, opI32Const, 0, opEnd))
	return []Attack{
		bomb("types", "a million types", false, with(func(p *program) {
			p.ntypes, p.types = 1_000_000,
				rep(1_000_000, op(0x60, 0, 0))
		})),
		bomb("type_params", "10,000 types of 1,000 parameters and results", true,
			with(func(p *program) { p.ntypes, p.types = 10_000, rep(10_000, of(i64, 1000, 1000)) })),
		bomb("imports", "100,000 imports of one function", false, with(func(p *program) {
			p.imports = in(secImport, many(100_000, text("wasi_snapshot_preview1"), text("sched_yield"), op(0, 0)))
		})),
		bomb("functions", "500,000 empty functions", true, with(func(p *program) {
			p.more = slices.Repeat([][]byte{op(2, 0, opEnd)}, 500_000)
		})),
		bomb("locals", "200 functions of 49,000 locals", true, with(func(p *program) {
			for range 200 {
				p.more = append(p.more, body(localsOf(49_000, i64), nil))
			}
		})),
		bomb("locals_used", "a function that reads and writes each of 49,000 locals in a loop", true, with(func(p *program) {
			p.locals = localsOf(49_000, i64)
			p.code = op(opLoop, void)
			for i := range 49_000 {
				p.code = append(append(append(append(p.code, opLocalGet), u(i)...), opLocalSet), u((i+7)%49_000)...)
			}
			p.code = append(p.code, opI32Const, 0, opBrIf, 0, opEnd)
		})),
		bomb("globals", "a million globals", true,
			with(func(p *program) { p.globals = in(secGlobal, many(1_000_000, global)) })),
		bomb("exports", "300,000 exports", false, with(func(p *program) { p.exports = 300_000 })),
		bomb("tables", "100,000 tables", false,
			with(func(p *program) { p.tables = in(secTable, many(100_000, op(funcref, 0, 0))) })),
		bomb("elements", "500,000 element segments", true, with(func(p *program) {
			p.tables, p.elems = section(secTable, u(1), op(funcref, 0, 1)),
				in(secElement, many(500_000, op(0, opI32Const, 0, opEnd, 1, 0)))
		})),
		bomb("element_items", "a passive element segment of 20 million functions", true, with(func(p *program) {
			p.elems = section(secElement, u(1), op(1, 0), u(20_000_000), make([]byte, 20_000_000))
		})),
		bomb("data", "a million data segments", true, with(func(p *program) {
			p.data = in(secData, many(1_000_000, op(0, opI32Const, 0, opEnd, 0)))
		})),
		bomb("names", "names of five million functions", true, with(func(p *program) {
			part := many(5_000_000, op(0, 0))()
			p.last = section(0, text("name"), op(1), u(len(part)), part)
		})),
		bomb("names_locals", "names of locals of a million functions", true, with(func(p *program) {
			part := many(1_000_000, op(0, 1, 0, 0))()
			p.last = section(0, text("name"), op(2), u(len(part)), part)
		})),
		bomb("custom", "200,000 custom sections", false,
			with(func(p *program) { p.last = rep(200_000, section(0, text("x"))) })),
		bomb("size", "a custom section of 80 MiB", false,
			with(func(p *program) { p.last = section(0, text("x"), make([]byte, 80<<20)) })),
	}
}

func fullBombs() []Attack {
	full := func(name, what string, set func(p *program)) Attack {
		return bomb("full_"+name, what, false, func() []byte {
			var p program
			set(&p)
			return p.bytes()
		})
	}
	sections := func(id byte, n int, entry ...[]byte) []byte { return vector(id, n, entry...) }
	return []Attack{
		full("types", "99,999 types", func(p *program) { p.ntypes, p.types = 99_999, rep(99_999, op(0x60, 0, 0)) }),
		full("type_params", "49 types of 1,000 parameters and results", func(p *program) {
			p.ntypes, p.types = 49,
				rep(49, of(i64, 1000, 1000))
		}),
		full("imports", "10,000 imports", func(p *program) {
			p.imports = sections(secImport, 10_000, text("wasi_snapshot_preview1"), text("sched_yield"), op(0, 0))
		}),
		full("functions", "299,999 empty functions", func(p *program) {
			p.more = slices.Repeat([][]byte{op(2, 0, opEnd)},
				299_998)
		}),
		full("globals", "100,000 globals", func(p *program) {
			p.globals = sections(secGlobal, 100_000,
				op(i32, 1, opI32Const, 0, opEnd))
		}),
		full("exports", "100,000 exports", func(p *program) { p.exports = 99_999 }),
		full("elements", "100,000 element segments", func(p *program) {
			p.tables, p.elems = section(secTable, u(1), op(funcref, 0, 1)), sections(secElement, 100_000,
				op(0, opI32Const, 0, opEnd, 1, 0))
		}),
		full("element_items", "a million elements", func(p *program) {
			p.elems = section(secElement, u(1), op(1, 0), u(1_000_000), make([]byte, 1_000_000))
		}),
		full("data", "100,000 data segments", func(p *program) {
			p.data = sections(secData, 100_000,
				op(0, opI32Const, 0, opEnd, 0))
		}),
		full("names", "a million names", func(p *program) {
			part := cat(u(1_000_000), rep(1_000_000, op(0, 0)))
			p.last = section(0, text("name"), op(1), u(len(part)), part)
		}),
		full("locals", "79 functions of 50,000 locals", func(p *program) {
			p.more = slices.Repeat([][]byte{body(localsOf(50_000, i64), nil)}, 79)
		}),
		full("size", "60 MiB of data", func(p *program) {
			p.memory = cat(op(0), u(1000))
			p.data = section(secData, u(1), op(0, opI32Const, 0, opEnd), u(60<<20), make([]byte, 60<<20))
		}),
	}
}

func lineBombs() []Attack {
	line := func(n int, code ...[]byte) func() []byte {
		return program{locals: localsOf(2, i32), code: rep(n, code...)}.bytes
	}
	return []Attack{
		bomb("adds", "one function of a million additions", true, line(1_000_000, op(opLocalGet, 0, opLocalGet, 1, opI32Add,
			opLocalSet, 0))),
		bomb("calls", "one function of 300,000 calls", true, line(300_000, op(opCall, 0))),
		bomb("stack", "an expression with a million operands", true, line(1, rep(1_000_000, op(opLocalGet, 0)),
			rep(999_999, op(opI32Add)), op(opDrop))),
		bomb("stores", "one function of 500,000 stores", true, line(500_000, op(opLocalGet, 0, opLocalGet, 0, opStore, 2,
			0))),
		bomb("selects", "one function of 500,000 selects", true, line(500_000, op(opLocalGet, 0, opLocalGet, 1, opLocalGet, 0,
			opSelect, opLocalSet, 0))),
		bomb("diamonds", "100,000 ifs in a row", true, line(100_000, op(opLocalGet, 0, opIf, void, opLocalGet, 1, opLocalSet,
			0, opEnd))),
		bomb("loops", "100,000 loops in a row", true, line(100_000, op(opLoop, void, opLocalGet, 0, opBrIf, 0, opEnd))),
		bomb("vectors", "100,000 constants of 128 bits", true, line(100_000, cat(op(opSIMD, 12), make([]byte, 16),
			op(opDrop)))),
		bomb("returns", "a function of 200,000 returns", true, line(200_000, op(opLocalGet, 0, opIf, void, opReturn, opEnd))),
		bomb("wide_calls", "20,000 calls with 1,000 parameters and results", true, func() []byte {
			t := of(i32, 1000, 1000)
			code := cat(rep(1000, constant(1)), rep(20_000, op(opCall, 1)), rep(1000, op(opDrop)))
			wide := body(u(0), op(opUnreachable))
			return binary(section(secType, u(2), op(0x60, 0, 0), t), section(secFunction, u(2), u(0), u(1)),
				section(secExport, u(1), text("_start"), op(0, 0)), section(secCode, u(2), body(u(0), code), wide))
		}),
	}
}
