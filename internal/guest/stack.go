package guest

import (
	"reflect"
	"strings"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
)

// mostStack bounds the stack of native code whatever the memory is: as much as the
// engine's own growth comes to. The engine makes no larger one, and none at all of
// what is as large as this.
const mostStack = 80 << 20

// stack is what a guest's native code has its frames in. The engine's own begins
// at 10 KiB and doubles up to [mostStack], on the host's heap and whatever the
// guest may have; it has no setting and asks nobody. So the engine is given one
// that is as large as any and of which only the end is memory: what it compares
// with at each call is where that begins, and beyond it the guest has a stack
// overflow, as at the end of the engine's own.
type stack struct {
	region []byte // address space, the last part of it opened
	engine *engineStack
	room   uint64 // how much may be used
	most   uint64 // what room was at first
}

// engineStack is where the engine looks for the stack of one call.
type engineStack struct {
	slice  *[]byte
	top    *uintptr
	bottom **byte
	at     **uint64 // where the stack was when the host was last called
}

const errEngine Unable = "the engine's stack is not where this version has it, so that it cannot be bounded"

// engineStackOf finds the fields by their names and types; nil is a function of
// the host's, which has none.
func engineStackOf(fn api.Function) (*engineStack, error) {
	v := reflect.ValueOf(fn)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, errEngine
	}
	t, base := v.Elem().Type(), v.UnsafePointer()
	if t.Name() == "hostFunction" || strings.HasSuffix(t.PkgPath(), "/interpreter") { // whose frames are few, and no native ones
		return nil, nil
	}
	ctx, ok := t.FieldByName("execCtx")
	if !ok {
		return nil, errEngine
	}
	inner := unsafe.Add(base, ctx.Offset)
	slice, top := field[[]byte](t, base, "stack"), field[uintptr](t, base, "stackTop")
	bottom, at := field[*byte](ctx.Type, inner, "stackBottomPtr"), field[*uint64](ctx.Type, inner, "stackPointerBeforeGoCall")
	if slice == nil || top == nil || bottom == nil || at == nil {
		return nil, errEngine
	}
	return &engineStack{slice, top, bottom, at}, nil
}

// field is a field of the structure at base, if it is of type T.
func field[T any](t reflect.Type, base unsafe.Pointer, name string) *T {
	f, ok := t.FieldByName(name)
	if !ok || f.Type != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(unsafe.Add(base, f.Offset))
}

// lend gives the engine the stack for a call of fn.
func (m *memory) lend(fn api.Function) error {
	s := &m.stack
	e, err := engineStackOf(fn)
	if e == nil || err != nil {
		return err
	}
	room := min(m.limit+besideFree-uint64(len(m.view))-m.beside, mostStack)
	if s.region == nil {
		if s.region = reserveStack(room); s.region == nil {
			m.missing()
			return errNoMemory
		}
	}
	s.engine, s.room, s.most = e, room, room
	*e.slice = s.region
	*e.top = uintptr(unsafe.Pointer(unsafe.SliceData(s.region))) + uintptr(len(s.region)-stackAlign)
	*e.bottom = &s.region[s.begin()]
	return nil
}

// giveBack takes the stack from the engine, and notes how much of it was used.
func (m *memory) giveBack() {
	if m.stack.engine == nil {
		return
	}
	used := touched(m.stack.region[m.stack.begin():]) // in whole pages
	m.peak = max(m.peak, min(taken(uint64(len(m.view)), m.beside+used), m.limit))
	m.stack.giveBack()
}

const (
	// stackAlign is what the stack of native code is aligned to.
	stackAlign = 16

	// stackGrain is by how much it is made smaller.
	stackGrain = 4 << 10
)

// begin is where in the region the stack begins that may be used.
func (s *stack) begin() int { return len(s.region) - max(int(s.room)&^(stackGrain-1), stackGrain) }

// bound lets no more than room be used from now on, which is no less than what is
// in use, and no more than at first.
func (s *stack) bound(room uint64) {
	if room = min(room, s.most); s.engine == nil || room == s.room {
		return
	}
	before := s.begin()
	s.room = room
	if begin := s.begin(); begin != before {
		*s.engine.bottom = &s.region[begin]
		forget(s.region[min(before, begin):begin])
	}
}

// isOver reports whether err says that the stack was used up, and more of it would
// have been more than the memory that the guest may have. No guest and no function
// of the host's can make the engine say so.
func (s *stack) isOver(err error) bool {
	return s.room < mostStack && s.region != nil && innermost(err).Error() == "stack overflow"
}

// depth is how much of the stack the guest had in use when it last called the
// host.
func (s *stack) depth() uint64 {
	if s.engine == nil || *s.engine.at == nil {
		return 0
	}
	at, top := uintptr(unsafe.Pointer(*s.engine.at)), *s.engine.top
	if at > top || top-at > uintptr(len(s.region)) {
		return 0
	}
	return uint64(top - at)
}

// giveBack takes the stack from the engine: nothing of the engine's may lead to
// what is not there any more.
func (s *stack) giveBack() {
	if e := s.engine; e != nil {
		*e.slice, *e.top, *e.bottom, *e.at = nil, 0, nil, nil
		s.engine = nil
	}
}

// free is called once the guest has ended.
func (s *stack) free() {
	s.giveBack()
	releaseStack(s.region)
	s.region = nil
}
