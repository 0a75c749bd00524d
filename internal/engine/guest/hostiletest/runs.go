package hostiletest

// Runs are modules that compile at once and attack as they run.
func Runs() []Attack {
	run := func(name, what string, ends int, p program) Attack {
		return Attack{Name: "run_" + name, What: what, Ends: ends, Bytes: p.bytes}
	}
	table := section(secTable, u(1), op(funcref, 0), u(1))
	self := section(secElement, u(1), op(0, opI32Const, 0, opEnd), u(1), u(0))
	forever := func(code ...[]byte) []byte { return cat(op(opLoop, void), cat(code...), op(opBr, 0, opEnd)) }
	misc := func(n byte, rest ...byte) []byte { return cat(op(opMisc, n), rest) }
	big := cat(op(0), u(1024))
	const stops = Timeout | Fuel
	return []Attack{
		run("spin", "a loop without an end", stops, program{code: forever()}),
		run("spin_start", "the same in the start section", stops, program{code: forever(), start: true}),
		run("spin_nested", "loops within loops", stops, program{code: cat(rep(50, op(opLoop, void)), op(opBr, 25),
			rep(50, op(opEnd)))}),
		run("spin_br_table", "a loop by br_table", stops,
			program{code: cat(op(opLoop, void, opI32Const, 0, opBrTable, 1, 0, 0, opEnd))}),
		run("recurse", "recursion without an end", Trap|Memory|stops, program{code: cat(op(opCall), u(0))}),
		run("recurse_indirect", "the same by call_indirect", Trap|Memory|stops,
			program{tables: table, elems: self, code: cat(constant(0), op(opCallIndirect, 0, 0))}),
		run("recurse_frames", "recursion with frames of 5,000 locals", Trap|Memory|Refused|stops, program{
			locals: localsOf(5000, i64),
			code:   cat(op(opCall), u(0), rep(100, op(opLocalGet, 0, opLocalSet, 1))),
		}),
		run("recurse_binary", "a tree of calls 60 deep, without a loop", stops, program{
			globals: section(secGlobal, u(1), op(i32, 1), constant(60), op(opEnd)),
			code: cat(op(opGlobalGet, 0, 0x45, opIf, void, opReturn, opEnd), op(opGlobalGet, 0), constant(1),
				op(0x6b, opGlobalSet, 0),
				op(opCall), u(0), op(opCall), u(0), op(opGlobalGet, 0), constant(1), op(opI32Add, opGlobalSet, 0)),
		}),
		run("memory_fill", "fills 64 MiB again and again", stops,
			program{memory: big, code: forever(constant(0), constant(1), constant(64<<20), misc(11, 0))}),
		run("memory_copy", "copies 32 MiB again and again", stops,
			program{memory: big, code: forever(constant(0), constant(32<<20), constant(32<<20), misc(10, 0, 0))}),
		run("memory_fill_line", "fills 64 MiB 1,000 times without a loop", stops|OK|Refused,
			program{memory: big, code: rep(1000, constant(0), constant(1), constant(64<<20), misc(11, 0))}),
		run("memory_grow", "grows page by page", Memory, program{code: forever(constant(1), op(opGrow, 0, opDrop))}),
		run("memory_grow_all", "grows to 4 GiB at once", Memory, program{code: cat(constant(65535), op(opGrow, 0, opDrop))}),
		run("memory_grow_negative", "grows by 2^32-1 pages", Memory|OK,
			program{code: cat(constant(-1), op(opGrow, 0, opDrop))}),
		run("memory_grow_zero", "grows by nothing for ever", stops,
			program{code: forever(constant(0), op(opGrow, 0, opDrop))}),
		run("memory_min", "begins with 4 GiB", Memory|Refused, program{memory: cat(op(0), u(65536))}),
		run("memory_min_over", "begins with more than 4 GiB", Refused, program{memory: cat(op(0), u(65537))}),
		run("table_grow", "grows a table by 2^16 for ever", stops|Trap|Memory|OK,
			program{tables: table, code: forever(op(0xd0, funcref), constant(1<<16), misc(15, 0), op(opDrop))}),
		run("table_grow_all", "grows a table by 2^30", OK|Trap,
			program{tables: table, code: cat(op(0xd0, funcref), constant(1<<30), misc(15, 0), op(opDrop))}),
		run("references", "makes a reference to a function for ever", Memory|stops,
			program{tables: table, elems: self, code: forever(op(0xd2), u(0), op(opDrop))}),
		run("table_fill", "fills a table of a million for ever", stops, program{
			tables: section(secTable, u(1), op(funcref, 0), u(1<<20)),
			code:   forever(constant(0), op(0xd0, funcref), constant(1<<20), misc(17, 0)),
		}),
		run("tables", "eight tables of a million", OK|Memory, program{tables: vector(secTable, 8, op(funcref, 0), u(1<<20))}),
		run("start_traps", "a start section that traps", Trap, program{code: op(opUnreachable), start: true}),
		run("unaligned", "reads past the end of memory", Trap, program{code: cat(constant(-1), op(opLoad, 2), u(huge),
			op(opDrop))}),
		run("data_outside", "a data segment outside the memory", Trap|Refused,
			program{data: section(secData, u(1), op(0), constant(1<<20), op(opEnd), text("x"))}),
		run("element_outside", "an element segment outside the table (the engine leaves it out)", Trap|Refused|OK,
			program{tables: table, elems: section(secElement, u(1), op(0), constant(100), op(opEnd), u(1), u(0))}),
		run("divide", "divides the smallest number by -1", Trap, program{code: cat(constant(-1<<31), constant(-1),
			op(0x6d, opDrop))}),
		run("straight_line", "500,000 instructions without a loop", OK|Refused|stops,
			program{code: rep(250_000, constant(1), op(opDrop))}),
	}
}
