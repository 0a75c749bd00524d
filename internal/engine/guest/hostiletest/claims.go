package hostiletest

// huge is what the attacks claim.
const huge = 0xffffffff

// Claims are a few bytes each that claim a thousand million entries: who makes
// room for them before reading them has none left.
func Claims() []Attack {
	claim := func(name, what string, module ...[]byte) Attack {
		return Attack{Name: "claim_" + name, What: what, Ends: Refused, Slow: true, Bytes: func() []byte {
			return binary(module...)
		}}
	}
	// vain is one that the engine sees through by itself.
	vain := func(name, what string, module ...[]byte) Attack {
		a := claim(name, what, module...)
		a.Slow = false
		return a
	}
	types := section(secType, u(1), op(0x60, 0, 0))
	funcs := section(secFunction, u(1), u(0))
	head := cat(types, funcs)
	code := func(b []byte) []byte { return section(secCode, u(1), u(len(b)), b) }
	names := func(sub byte, b ...[]byte) []byte {
		inner := cat(b...)
		return section(0, text("name"), op(sub), u(len(inner)), inner)
	}
	segment := func(b ...[]byte) []byte { return cat(types, section(secElement, u(1), cat(b...))) }
	return []Attack{
		vain("types", "a type section of 2^32-1 types", section(secType, u(huge))),
		claim("params", "a type of 2^32-1 parameters", section(secType, u(1), op(0x60), u(huge))),
		claim("results", "a type of 2^32-1 results", section(secType, u(1), op(0x60, 0), u(huge))),
		vain("rec_group", "a recursive group of 2^32-1 types", section(secType, u(1), op(0x4e), u(huge))),
		claim("imports", "2^32-1 imports", section(secImport, u(huge))),
		claim("import_module", "an import whose module's name has 2^32-1 bytes", section(secImport, u(1), u(huge))),
		claim("import_name", "an import whose name has 2^32-1 bytes", section(secImport, u(1), text("m"), u(huge))),
		claim("functions", "2^32-1 functions", types, section(secFunction, u(huge))),
		claim("tables", "2^32-1 tables", section(secTable, u(huge))),
		vain("table_min", "a table of 2^32-1 elements", section(secTable, u(1), op(funcref, 0), u(huge))),
		vain("memories", "2^32-1 memories", section(secMemory, u(huge))),
		vain("memory_pages", "a memory of 2^32-1 pages", section(secMemory, u(1), op(0), u(huge))),
		claim("globals", "2^32-1 globals", section(secGlobal, u(huge))),
		vain("global_expression", "a global whose expression never ends", section(secGlobal, u(1),
			op(i32, 0, opI32Const, 0x80, 0x80))),
		claim("exports", "2^32-1 exports", section(secExport, u(huge))),
		claim("export_name", "an export whose name has 2^32-1 bytes", section(secExport, u(1), u(huge))),
		claim("elements", "2^32-1 element segments", section(secElement, u(huge))),
		claim("element_functions", "an element segment of 2^32-1 functions", segment(op(0, opI32Const, 0, opEnd), u(huge))),
		claim("element_passive", "a passive one", segment(op(1, 0), u(huge))),
		claim("element_expressions", "one of 2^32-1 expressions", segment(op(5, funcref), u(huge))),
		claim("code", "2^32-1 bodies", head, section(secCode, u(huge))),
		vain("body", "a body of 2^32-1 bytes", head, section(secCode, u(1), u(huge))),
		vain("local_groups", "2^32-1 groups of locals", head, code(cat(u(huge), op(opEnd)))),
		claim("locals", "2^32-1 locals", head, code(cat(u(1), u(huge), op(i32, opEnd)))),
		vain("locals_summed", "locals whose number wraps at 32 bits", head,
			code(cat(u(2), u(huge), op(i32), u(5), op(i32, opEnd)))),
		vain("br_table", "a br_table of 2^32-1 targets", head, code(cat(u(0), op(opI32Const, 0, opBrTable), u(huge),
			op(opEnd)))),
		vain("select", "a select of 2^32-1 types", head, code(cat(u(0), op(opUnreachable, 0x1c), u(huge), op(opEnd)))),
		claim("data", "2^32-1 data segments", section(secMemory, u(1), op(0, 1)), section(secData, u(huge))),
		claim("data_bytes", "a data segment of 2^32-1 bytes", section(secMemory, u(1), op(0, 1)),
			section(secData, u(1), op(0, opI32Const, 0, opEnd), u(huge))),
		vain("data_count", "a data count of 2^32-1", types, section(secDataCount, u(huge))),
		vain("section", "a section of 2^32-1 bytes", op(secType), u(huge)),
		claim("custom", "a custom section whose name has 2^32-1 bytes", section(0, u(huge))),
		claim("names", "names of 2^32-1 functions", names(1, u(huge))),
		claim("names_locals", "2^32-1 functions with names of locals", names(2, u(huge))),
		claim("names_inner", "a function with 2^32-1 names of locals", names(2, u(1), u(0), u(huge))),
		vain("names_size", "a part of names of 2^32-1 bytes", section(0, text("name"), op(1), u(huge))),
		claim("names_module", "a module's name of 2^32-1 bytes", names(0, u(huge))),
		vain("tag", "a section of tags", section(13, u(huge))),
	}
}
