package proxy

import (
	"encoding/binary"
	"net/netip"
	"sync"

	"runloop.dev/rlp/internal/effect/netns"
)

// Bounds of names.
const (
	mostNames   = 16 << 10 // that are known at once
	mostUnknown = 1 << 10  // that a policy is told of
	firstName   = 16       // the addresses below are the namespace's own
	lastName    = 1<<17 - 2
)

// names are the addresses that stand for names. The oldest name is forgotten when
// there are too many, and its address stands for nothing until all others were
// given out: a program that kept it is refused, never led to another name.
type names struct {
	mu      sync.Mutex
	at      map[string]uint32
	by      [mostNames]named // the one with number n at n % mostNames
	next    uint32
	unknown map[string]struct{}
}

type named struct {
	number uint32
	name   string
}

func newNames() *names {
	return &names{at: map[string]uint32{}, next: firstName, unknown: map[string]struct{}{}}
}

// addresses are those that stand for name from now on.
func (n *names) addresses(name string) (v4, v6 netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, known := n.at[name]
	if !known {
		number = n.next
		if n.next++; n.next > lastName {
			n.next = firstName
		}
		slot := &n.by[number%mostNames]
		delete(n.at, slot.name)
		*slot = named{number, name}
		n.at[name] = number
	}
	four, six := netns.Pool4.Addr().As4(), netns.Pool6.Addr().As16()
	binary.BigEndian.PutUint32(four[:], binary.BigEndian.Uint32(four[:])+number)
	binary.BigEndian.PutUint32(six[12:], number)
	return netip.AddrFrom4(four), netip.AddrFrom16(six)
}

// name is the name that a stands for: "" if it could stand for one and stands for
// none. It is not ok where a is an address like others.
func (n *names) name(a netip.Addr) (name string, ok bool) {
	if !netns.Pool4.Contains(a) && !netns.Pool6.Contains(a) {
		return "", false
	}
	number := uint32(0)
	if a.Is4() {
		first, four := netns.Pool4.Addr().As4(), a.As4()
		number = binary.BigEndian.Uint32(four[:]) - binary.BigEndian.Uint32(first[:])
	} else {
		six := a.As16()
		if binary.BigEndian.Uint32(six[8:]) != 0 {
			return "", true
		}
		number = binary.BigEndian.Uint32(six[12:])
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if slot := &n.by[number%mostNames]; slot.number == number {
		return slot.name, true
	}
	return "", true
}

// isNew reports whether name was not unknown before, as long as there are few.
func (n *names) isNew(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, told := n.unknown[name]; told || len(n.unknown) >= mostUnknown {
		return false
	}
	n.unknown[name] = struct{}{}
	return true
}
