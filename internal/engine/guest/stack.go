package guest

import (
	"reflect"
	"strings"
	"sync"
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
	at     *region // of the run
	region []byte  // its addresses, the last part of them opened
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

// engineFields are where a structure of the engine's has the fields of an
// [engineStack]; nil: it is a function of the host's, which has none.
type engineFields struct{ slice, top, bottom, at uintptr }

// engineStackOf finds the fields of fn, or knows from an earlier run where they are:
// to look takes as long as to begin a call.
func (s *stacks) engineStackOf(fn api.Function) (*engineStack, error) {
	v := reflect.ValueOf(fn)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, errEngine
	}
	t := v.Elem().Type()
	known, ok := s.fields.Load(t)
	if !ok {
		found, err := findFields(t)
		if err != nil {
			return nil, err
		}
		known, _ = s.fields.LoadOrStore(t, found)
	}
	f, base := known.(*engineFields), v.UnsafePointer()
	if f == nil {
		return nil, nil
	}
	return &engineStack{
		(*[]byte)(unsafe.Add(base, f.slice)), (*uintptr)(unsafe.Add(base, f.top)),
		(**byte)(unsafe.Add(base, f.bottom)), (**uint64)(unsafe.Add(base, f.at)),
	}, nil
}

// findFields finds the fields by their names and types.
func findFields(t reflect.Type) (*engineFields, error) {
	// whose frames are few, and no native ones
	if t.Name() == "hostFunction" || strings.HasSuffix(t.PkgPath(), "/interpreter") {
		return nil, nil
	}
	ctx, ok := t.FieldByName("execCtx")
	if !ok || ctx.Type.Kind() != reflect.Struct {
		return nil, errEngine
	}
	slice, ok1 := field[[]byte](t, "stack")
	top, ok2 := field[uintptr](t, "stackTop")
	bottom, ok3 := field[*byte](ctx.Type, "stackBottomPtr")
	at, ok4 := field[*uint64](ctx.Type, "stackPointerBeforeGoCall")
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return nil, errEngine
	}
	return &engineFields{slice, top, ctx.Offset + bottom, ctx.Offset + at}, nil
}

func field[T any](t reflect.Type, name string) (uintptr, bool) {
	f, ok := t.FieldByName(name)
	return f.Offset, ok && f.Type == reflect.TypeFor[T]()
}

// lend gives the engine the stack for a call of fn.
func (m *memory) lend(fn api.Function) error {
	s := &m.stack
	e, err := m.stacks.engineStackOf(fn)
	if e == nil || err != nil {
		return err
	}
	room := min(m.limit+besideFree-uint64(len(m.view))-m.beside, mostStack)
	if s.at == nil {
		if s.at = m.stacks.take(room); s.at == nil {
			m.missing()
			return errNoMemory
		}
		s.region = s.at.all
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
	m.peak = max(m.peak, min(taken(uint64(len(m.view)), m.beside+m.stack.at.touched(m.frame)), m.limit))
	m.stack.giveBack()
}

const (
	// stackAlign is what the stack of native code is aligned to.
	stackAlign = 16

	// stackGrain is by how much it is made smaller.
	stackGrain = 4 << 10
)

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

// free is called once the guest has ended. Where it did not end in the engine,
// what it used was not looked at, and the stack is for nobody else.
func (s *stack) free(to *stacks) {
	if s.at == nil {
		return
	}
	seen := s.engine == nil
	s.giveBack()
	if !seen || !to.put(s.at) {
		s.at.release()
	}
	s.at, s.region = nil, nil
}

// stacks are what runs of one process leave to the next ones, whosever they are:
// nothing of a run is in it. The zero stacks keeps none.
type stacks struct {
	fields sync.Map // by type: where the engine's fields are

	mu   sync.Mutex
	idle []*region
	most int
}

// mostIdle is how many stacks of runs that have ended wait for others.
const mostIdle = 4

// keep has that many kept from now on.
func (s *stacks) keep(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.most = most; len(s.idle) > most; s.idle = s.idle[:len(s.idle)-1] {
		s.idle[len(s.idle)-1].release()
	}
}

// take is a region of which room may be used; nil: there is no memory.
func (s *stacks) take(room uint64) *region {
	r := s.waiting()
	if r == nil {
		if r = newRegion(); r == nil {
			return nil
		}
	}
	if !r.open(room) {
		r.release()
		return nil
	}
	return r
}

func (s *stacks) waiting() (r *region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		r, s.idle = s.idle[n-1], s.idle[:n-1]
	}
	return r
}

// put keeps r, cleared, for the next run. It is false where it is the caller's to
// release.
func (s *stacks) put(r *region) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) >= s.most || !r.clear() {
		return false
	}
	s.idle = append(s.idle, r)
	return true
}
