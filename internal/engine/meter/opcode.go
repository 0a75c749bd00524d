package meter

// Instructions that are looked at or written. All others are copied.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opLoadFirst    = 0x28
	opStoreLast    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opNumericFirst = 0x45
	opI32Ne        = 0x47
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI64LtS       = 0x53
	opI64GtU       = 0x56
	opI64GeS       = 0x59
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Or        = 0x72
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Mul       = 0x7e
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad
	opNumericLast  = 0xc4

	opI32ReinterpretF32 = 0xbc
	opI64ReinterpretF64 = 0xbd
	opF32ReinterpretI32 = 0xbe
	opF64ReinterpretI64 = 0xbf

	opRefNull   = 0xd0
	opRefIsNull = 0xd1
	opRefFunc   = 0xd2
	opMisc      = 0xfc
	opVector    = 0xfd

	miscTruncLast  = 0x07
	miscMemoryInit = 0x08
	miscDataDrop   = 0x09
	miscMemoryCopy = 0x0a
	miscMemoryFill = 0x0b
	miscTableInit  = 0x0c
	miscElemDrop   = 0x0d
	miscTableCopy  = 0x0e
	miscTableGrow  = 0x0f
	miscTableSize  = 0x10
	miscTableFill  = 0x11

	vectorLoadFirst  = 0x00
	vectorStore      = 0x0b
	vectorConst      = 0x0c
	vectorShuffle    = 0x0d
	vectorLaneFirst  = 0x15
	vectorLaneLast   = 0x22
	vectorLoadLane   = 0x54
	vectorStoreLane  = 0x5b
	vectorLoadZero32 = 0x5c
	vectorLoadZero64 = 0x5d

	typeI32       = 0x7f
	typeI64       = 0x7e
	typeF32       = 0x7d
	typeF64       = 0x7c
	typeV128      = 0x7b
	typeFuncref   = 0x70
	typeExternref = 0x6f
	typeFunc      = 0x60
	typeNone      = 0x40
)

func isValueType(c byte) bool {
	return c >= typeV128 && c <= typeI32 || c == typeFuncref || c == typeExternref
}

// price is what an instruction costs but for what it moves.
func price(op byte) uint64 {
	switch op {
	case opNop, opDrop, opBlock, opLoop, opElse, opEnd:
		return 0
	}
	return 1
}

// Shifts from what an operation of n moves to what that costs: a unit for each
// 8 bytes, or for each element of a table.
const (
	bytesShift = 3
	pageShift  = 16 - bytesShift
)

// immediates passes over what follows op and needs no change. It knows every
// instruction that the engine accepts, and no other: a disagreement about
// where one ends would let code through unmetered.
func immediates(r *reader, op byte) {
	switch {
	case op == opUnreachable, op == opNop, op == opDrop, op == opSelect, op == opRefIsNull:
	case op >= opNumericFirst && op <= opNumericLast:
	case op == opI32Const:
		r.Skip(5)
	case op == opI64Const:
		r.Skip(10)
	case op >= opLoadFirst && op <= opStoreLast:
		memoryArgument(r)
	case op == opF32Const:
		r.Take(4)
	case op == opF64Const:
		r.Take(8)
	case op == opTableGet, op == opTableSet:
		r.U32()
	case op == opMemorySize:
		zero(r)
	case op == opSelectTyped:
		if r.Byte() != 1 {
			r.Fail(ErrMalformed, "select of several types")
		}
		r.valueType()
	case op == opRefNull:
		r.refType()
	case op == opVector:
		vector(r)
	default:
		r.Fail(ErrUnsupported, "instruction %#x", op)
	}
}

// zero passes over the index of the one memory, in its one form.
func zero(r *reader) {
	if r.Byte() != 0 {
		r.Fail(ErrUnsupported, "a memory other than the first")
	}
}

func memoryArgument(r *reader) {
	if align := r.U32(); align >= 32 {
		r.Fail(ErrUnsupported, "memory alignment %d", align) // of which bit 6 names a memory
	}
	r.U32()
}

// vector passes over an instruction of the vector extension. Its opcode is a
// number of one byte, or of two of which the second is 1; other forms, of which
// engines think differently, are refused.
func vector(r *reader) {
	op := r.Byte()
	if op >= 0x80 {
		if r.Byte() != 1 {
			r.Fail(ErrUnsupported, "vector instruction %#x in another form", op)
		}
		return
	}
	switch {
	case op <= vectorStore, op == vectorLoadZero32, op == vectorLoadZero64:
		memoryArgument(r)
	case op == vectorConst, op == vectorShuffle:
		r.Take(16)
	case op >= vectorLaneFirst && op <= vectorLaneLast:
		r.Byte()
	case op >= vectorLoadLane && op <= vectorStoreLane:
		memoryArgument(r)
		r.Byte()
	}
}

// misc passes over what follows an instruction of the second table.
func misc(r *reader, op uint32) {
	switch op {
	case miscMemoryInit:
		r.U32()
		zero(r)
	case miscMemoryCopy:
		zero(r)
		zero(r)
	case miscMemoryFill:
		zero(r)
	case miscTableInit, miscTableCopy:
		r.U32()
		r.U32()
	case miscDataDrop, miscElemDrop, miscTableGrow, miscTableSize, miscTableFill:
		r.U32()
	default:
		if op > miscTruncLast {
			r.Fail(ErrUnsupported, "instruction 0xfc %#x", op)
		}
	}
}
