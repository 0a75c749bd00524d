package proxy

import (
	"encoding/binary"
	"net/netip"
	"sync"

	"runloop.dev/rlp/internal/effect/netns"
)

// Bounds of names.
const (
	mostNames = 16 << 10 // that are known at once
	firstName = 16       // the addresses below are the namespace's own
	lastName  = 1<<17 - 2
)

// names are the addresses that stand for names. The oldest name is forgotten when
// there are too many, and its address stands for nothing until all others were
// given out: a program that kept it is refused, never led to another name.
type names struct {
	mu   sync.Mutex
	at   map[string]uint32
	by   [mostNames]named // the one with number n at n % mostNames
	next uint32
}

type named struct {
	number uint32
	name   string
}

func newNames() *names {
	return &names{at: map[string]uint32{}, next: firstName}
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

// mostTold is how many of one kind a policy is told of: a program chooses how many there are.
const mostTold = 1 << 10

// andMore is said of the last one that a policy is told of.
const andMore = "; others are not recorded one by one from here on"

// A told is what a policy was told of, each once. The kinds have one each, so that many
// of one hide none of another.
type told struct {
	mu  sync.Mutex
	all map[string]struct{}
}

// isNew reports whether what is new and to be told of, and what to say behind it.
func (t *told) isNew(what string) (is bool, more string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.all[what]; known || len(t.all) >= mostTold {
		return false, ""
	}
	if t.all == nil {
		t.all = map[string]struct{}{}
	}
	if t.all[what] = struct{}{}; len(t.all) == mostTold {
		more = andMore
	}
	return true, more
}
