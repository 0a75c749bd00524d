package meter

import "runloop.dev/rlp/internal/engine/wasm"

// The guest's own functions take the counter as one more parameter, the last,
// and give it back as one more result: it stays in a register. Whoever knows
// nothing of it calls a function of the old type, which is added: the host by
// an export, and a function of the host's by a reference.

func (m *rewriter) counted(t uint32) uint32 {
	if m.countedTypes[t] == 0 {
		m.countedTypes[t] = m.addType(counted(m.types[t].params), counted(m.types[t].results))
	}
	return m.countedTypes[t]
}

func counted(types []byte) []byte { return append(types[:len(types):len(types)], typeI64) }

func (m *rewriter) addFunc(t uint32, body []byte) uint32 {
	m.addedFuncs = wasm.AppendU32(m.addedFuncs, t)
	m.addedCode = append(wasm.AppendU32(m.addedCode, uint32(len(body)+2)), 0)
	m.addedCode = append(append(m.addedCode, body...), opEnd)
	m.numAdded++
	return m.numFuncs() + m.numAdded
}

// arguments is code that leaves the first n locals on the stack.
func arguments(n int) []byte {
	var code []byte
	for i := range n {
		code = wasm.AppendU32(append(code, opLocalGet), uint32(i))
	}
	return code
}

// handOn is [arguments], of which the module may have as many as bytes: a type
// is written once, however many functions of it are added.
func (m *rewriter) handOn(n int) []byte {
	if m.handed += n; m.handed > m.most {
		return nil
	}
	return arguments(n)
}

// outer is the index of a function for those outside.
func (m *rewriter) outer(f uint32) uint32 {
	if f < m.imports {
		return f
	}
	w, ok := m.outside[f]
	if !ok {
		t := m.funcs[f]
		code := append(m.handOn(len(m.types[t].params)), opGlobalGet)
		code = wasm.AppendU32(append(wasm.AppendU32(code, m.globals), opCall), m.shift(f))
		w = m.addFunc(t, wasm.AppendU32(append(code, opGlobalSet), m.globals))
		m.outside[f] = w
	}
	return w
}

// reference is the index of a function for tables and references: all that is
// called by them is of a type with the counter.
func (m *rewriter) reference(f uint32) uint32 {
	if f >= m.imports {
		return m.shift(f)
	}
	w, ok := m.inside[f]
	if !ok {
		t := m.funcs[f]
		n := len(m.types[t].params)
		code := append(m.handOn(n), opLocalGet)
		code = wasm.AppendU32(append(wasm.AppendU32(code, uint32(n)), opGlobalSet), m.globals)
		code = wasm.AppendU32(append(code, opCall), f)
		w = m.addFunc(m.counted(t), wasm.AppendU32(append(code, opGlobalGet), m.globals))
		m.inside[f] = w
	}
	return w
}

// declare lets code refer to the functions that it could because they are
// exported, now that others are exported in their place.
func (m *rewriter) declare() {
	if !m.refers || len(m.declared) == 0 {
		return
	}
	entry := []byte{elemPassive | elemExplicit, 0}
	list := wasm.AppendU32(nil, uint32(len(m.declared)))
	for _, f := range m.declared {
		list = wasm.AppendU32(list, m.reference(f))
	}
	m.append(secElement, append(entry, list...))
}
