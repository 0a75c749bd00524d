package meter

import (
	"slices"

	"runloop.dev/rlp/internal/engine/wasm"
)

// pieceSize is the most that one instruction fills or copies: what is more is
// done in pieces by a function that is added, and the host gets a word in
// between. It was charged for as a whole, before.
const pieceSize = 1 << 20

// pieces are what is added for that, each when it is first needed; 0 is not
// yet. No index of the guest's reaches them.
type pieces struct{ block, fill, copy uint32 }

// Locals of an added function: its parameters.
const (
	pieceTo = iota
	pieceFrom
	pieceLen
	pieceCounter
)

// inPieces copies the instruction code, whose length is in the first scratch
// local, with another way for what is too much. The usual one comes first: the
// engine lays it out so, and programs that copy little are twice as slow else.
func (f *function) inPieces(code []byte) {
	block, helper := f.m.piecewise(code)
	f.local(opLocalGet, f.scratch(0))
	f.out = append(wasm.AppendS64(append(f.out, opI32Const), pieceSize), opI32LeU, opIf)
	f.out = append(append(wasm.AppendS64(f.out, int64(block)), code...), opElse)
	f.local(opLocalGet, f.counter())
	f.out = wasm.AppendU32(append(f.out, opCall), helper)
	f.local(opLocalSet, f.counter())
	f.out = append(f.out, opEnd)
}

// piecewise is the type of a block around the instruction code, and the
// function that does it in pieces.
func (m *rewriter) piecewise(code []byte) (block, helper uint32) {
	operands := []byte{typeI32, typeI32, typeI32}
	p := &m.pieces
	made, body := &p.fill, fillBody
	if code[1] == miscMemoryCopy {
		made, body = &p.copy, copyBody
	}
	if p.block == 0 {
		p.block = m.addType(operands, nil)
	}
	if *made == 0 {
		*made = m.addFunc(m.addType(counted(operands), []byte{typeI64}), body(code, m.refill()))
	}
	return p.block, *made
}

func get(i byte) []byte { return []byte{opLocalGet, i} }

func moveLocal(i, op byte) []byte {
	return append(append(wasm.AppendS64(append(get(i), opI32Const), pieceSize), op), opLocalTee, i)
}

// outside is whether the bytes from a local on are not all in the memory.
func outside(i byte) []byte {
	return slices.Concat(get(i), []byte{opI64ExtendU}, get(pieceLen), []byte{
		opI64ExtendU, opI64Add, opMemorySize, 0,
		opI64ExtendU, opI64Const, 16, opI64Shl, opI64GtU,
	})
}

// whole is the instruction on all that is left.
func whole(code []byte) []byte {
	return slices.Concat(get(pieceTo), get(pieceFrom), get(pieceLen), code)
}

func piece(code []byte) []byte {
	return slices.Concat(get(pieceTo), get(pieceFrom), wasm.AppendS64([]byte{opI32Const}, pieceSize), code)
}

func turn(refill uint32) []byte {
	return append(wasm.AppendU32(append(get(pieceCounter), opCall), refill), opLocalSet, pieceCounter)
}

// while repeats what is in it while more than a piece is left.
func while(parts ...[]byte) []byte {
	more := append(wasm.AppendS64(append(get(pieceLen), opI32Const), pieceSize), opI32GtU, opBrIf, 0, opEnd)
	return slices.Concat([]byte{opLoop, typeNone}, slices.Concat(parts...), more)
}

// fillBody fills in pieces, from the front. What is not all in the memory is
// tried as a whole, which fails before it writes anything.
func fillBody(code []byte, refill uint32) []byte {
	return slices.Concat(
		outside(pieceTo), []byte{opIf, typeNone}, whole(code), []byte{opEnd},
		while(
			piece(code), turn(refill),
			moveLocal(pieceTo, opI32Add), moveLocal(pieceLen, opI32Sub), []byte{opDrop, opDrop},
		),
		whole(code), get(pieceCounter))
}

// copyBody copies in pieces: from the front if that is where it goes, or what
// is still to be read would be overwritten, and from the back otherwise.
func copyBody(code []byte, refill uint32) []byte {
	forth := while(
		piece(code), turn(refill),
		moveLocal(pieceTo, opI32Add), moveLocal(pieceFrom, opI32Add), moveLocal(pieceLen, opI32Sub),
		[]byte{opDrop, opDrop, opDrop},
	)
	back := while(
		moveLocal(pieceLen, opI32Sub), get(pieceTo), []byte{opI32Add}, // to + the length that is left
		get(pieceFrom), get(pieceLen), []byte{opI32Add},
		wasm.AppendS64([]byte{opI32Const}, pieceSize), code, turn(refill),
	)
	return slices.Concat(
		outside(pieceTo), outside(pieceFrom), []byte{opI32Or, opIf, typeNone}, whole(code), []byte{opEnd},
		get(pieceTo), get(pieceFrom), []byte{opI32LeU, opIf, typeNone}, forth, []byte{opElse}, back, []byte{opEnd},
		whole(code), get(pieceCounter))
}
