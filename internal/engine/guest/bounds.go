package guest

import "fmt"

// What a module may have of each thing. The bounds admit every program that we
// have seen (a Go agent has up to 100,000 data segments and blocks 571 deep, an
// interpreter of 26 MB 12,000 functions) and keep what an engine makes of a
// module, which is up to 8,000 times the bytes that say so, within some hundred
// megabytes. Where the specification's own list of limits has a number it is
// that one.
const (
	maxModule    = 64 << 20 // bytes
	maxTypes     = 100_000
	maxParams    = 1000    // parameters or results of one type
	maxAllParams = 100_000 // of all types
	maxImports   = 10_000
	maxFunctions = 300_000
	maxGlobals   = 100_000
	maxExports   = 100_000
	maxSegments  = 100_000   // element or data segments
	maxItems     = 1_000_000 // functions or expressions in all element segments
	maxNames     = 1_000_000 // of functions, or of locals in all of them
	maxBody      = 4 << 20   // bytes of one function
	maxLocals    = 50_000    // of one function
	maxAllLocals = 4_000_000 // of all functions

	// maxTables and maxTableSize bound what a guest can have of tables, which
	// no memory limit covers: 8 bytes of the host for each element.
	maxTables    = 8
	maxTableSize = 1 << 20

	// maxNesting is how deep blocks may lie within each other.
	maxNesting = 10_000
)

// most bounds the entries of a section.
func most(id byte) (what string, n uint32) {
	switch id {
	case sectionType:
		return "types", maxTypes
	case sectionImport:
		return "imports", maxImports
	case sectionFunction, sectionCode:
		return "functions", maxFunctions
	case sectionTable:
		return "tables", maxTables
	case sectionMemory:
		return "memories", 1
	case sectionGlobal:
		return "globals", maxGlobals
	case sectionExport:
		return "exports", maxExports
	case sectionElement:
		return "element segments", maxSegments
	}
	return "data segments", maxSegments
}

// over refuses a number above its bound.
func over(n uint64, what string, bound uint64) error {
	if n <= bound {
		return nil
	}
	return fmt.Errorf("%d %s, at most %d are allowed", n, what, bound)
}

// add counts towards a bound that holds for the whole module.
func (r *reader) add(total *uint64, n uint64, what string, bound uint64) {
	if r.Err == nil {
		*total += n
		r.Stop(over(*total, what, bound))
	}
}
