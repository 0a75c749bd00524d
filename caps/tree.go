package caps

import (
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
)

// Bounds of a universe. MaxScopes counts what policies name, over all families;
// maxNodes counts the directories on the way to them as well.
const (
	MaxScopes = 131_072
	maxNodes  = 1 << 20
)

// ErrTooManyScopes is the error of a launch whose policies name more scopes
// than [MaxScopes]. The set that comes with it grants nothing.
var ErrTooManyScopes = errors.New("the policies name too many scopes")

// A node is one scope. Node i stands for bit i, and for the cell of the scope:
// the scope minus the scopes below it.
type node struct {
	name   string // the scope, in full
	key    string // what leads to it from its parent
	parent int32  // always less than the node's own id; -1 for a root
	base   ModeSet
	named  bool // by a policy, not only on the way to what is
}

// A tree is the universe of one family: every scope that a layer names, and
// every scope on the way there, so that a request finds its deepest scope by
// one walk from the root, and a scope's parent never changes. It only grows,
// and is copied before it does.
type tree struct {
	family Family
	nodes  []node
	slots  []uint64 // open addressing: hash in the high half, id+1 in the low one
	seed   maphash.Seed
}

// rawRoot is the second root of a family with raw names, which holds them all.
const (
	rawRoot     = 1
	rawRootName = "*_raw"
)

func newTree(f Family) *tree {
	t := &tree{family: f, slots: make([]uint64, 8), seed: maphash.MakeSeed()}
	t.nodes = append(t.nodes, node{name: f.root(), parent: -1})
	if families[f].raw {
		t.nodes = append(t.nodes, node{name: rawRootName, parent: -1})
	}
	return t
}

// clone copies t with room for what more scopes lead to, as paths go.
func (t *tree) clone(more int) *tree {
	c := *t
	room := len(t.nodes) + 4*more
	c.nodes = append(make([]node, 0, room), t.nodes...)
	if 2*room < len(t.slots) {
		c.slots = slices.Clone(t.slots)
	} else {
		c.resize(2 * room)
	}
	return &c
}

// resize gives t a table of at least n slots.
func (t *tree) resize(n int) {
	old := t.slots
	t.slots = make([]uint64, max(len(old), 1<<bits.Len(uint(n))))
	for _, s := range old {
		if s != 0 {
			t.put(s)
		}
	}
}

func (t *tree) hash(parent int32, key string) uint32 {
	return uint32(maphash.String(t.seed, key)>>7) + uint32(parent)*0x9e3779b1
}

// child is the node that key leads to from parent, -1 if there is none.
func (t *tree) child(parent int32, key string) int32 {
	h := t.hash(parent, key)
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			return -1
		}
		if uint32(s>>32) != h {
			continue
		}
		id := int32(uint32(s)) - 1
		if n := &t.nodes[id]; n.parent == parent && n.key == key {
			return id
		}
	}
}

// grow is child, made with name when it is not there.
func (t *tree) grow(parent int32, key, name string) int32 {
	if id := t.child(parent, key); id != -1 {
		return id
	}
	if 2*len(t.nodes) >= len(t.slots) {
		t.resize(len(t.slots))
	}
	id := int32(len(t.nodes))
	t.nodes = append(t.nodes, node{name: name, key: key, parent: parent})
	t.put(uint64(t.hash(parent, key))<<32 | uint64(id+1))
	return id
}

func (t *tree) put(s uint64) {
	mask := uint32(len(t.slots) - 1)
	i := uint32(s>>32) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// locate is the deepest node that holds name, which is canonical.
func (t *tree) locate(name string) int32 {
	switch families[t.family].shape {
	case pathTree:
		return t.locatePath(name)
	case hostTree:
		return t.locateHost(0, name)
	case modelTree:
		colon := strings.IndexByte(name, ':')
		if colon == -1 {
			return t.below(0, name)
		}
		if provider := t.child(0, name[:colon+1]); provider != -1 {
			return t.below(provider, name[colon+1:])
		}
		return 0
	case secretTree:
		at := strings.IndexByte(name, '@')
		if at == -1 {
			return t.below(0, name)
		}
		if id := t.child(0, name[:at]); id != -1 {
			return t.locateHost(id, name[at+1:])
		}
		return 0
	case onlyRoot:
		return 0
	}
	return t.below(t.rootOf(name), name)
}

// below is the node that key leads to, else parent itself.
func (t *tree) below(parent int32, key string) int32 {
	if id := t.child(parent, key); id != -1 {
		return id
	}
	return parent
}

func (t *tree) rootOf(name string) int32 {
	if families[t.family].raw && isRaw(name) {
		return rawRoot
	}
	return 0
}

func (t *tree) locatePath(path string) int32 {
	if path == "/" {
		return 0
	}
	if path == "" || path[0] != '/' || len(path) > MaxPath || strings.IndexByte(path, 0) != -1 {
		return -1
	}
	at, inside := int32(0), true
	for rest := path[1:]; ; {
		end := strings.IndexByte(rest, '/')
		part := rest
		if end != -1 {
			part = rest[:end]
		}
		if !isPart(part) {
			return -1
		}
		if inside {
			if next := t.child(at, part); next != -1 {
				at = next
			} else {
				inside = false
			}
		}
		if end == -1 {
			return at
		}
		rest = rest[end+1:]
	}
}

// locateHost finds "a.example.org:443" below root: by way of its wildcard,
// whose key is ".example.org:443", so that no key has to be made.
func (t *tree) locateHost(root int32, host string) int32 {
	dot := strings.IndexByte(host, '.')
	if dot == -1 {
		return t.below(root, host)
	}
	wild := t.child(root, host[dot:])
	if wild == -1 {
		return root
	}
	return t.below(wild, host[:dot])
}

// intern is the node of scope, made when it is not there.
func (t *tree) intern(scope string) int32 {
	if scope == t.family.root() {
		return 0
	}
	switch families[t.family].shape {
	case pathTree:
		at := int32(0)
		for start := 1; start < len(scope); {
			end := len(scope)
			if i := strings.IndexByte(scope[start:], '/'); i != -1 {
				end = start + i
			}
			at = t.grow(at, scope[start:end], scope[:end])
			start = end + 1
		}
		return at
	case hostTree:
		return t.internHost(0, "", scope)
	case modelTree:
		provider, model, ok := strings.Cut(scope, ":")
		if !ok {
			return t.grow(0, scope, scope)
		}
		at := t.grow(0, scope[:len(provider)+1], provider+":*")
		if model == "*" {
			return at
		}
		return t.grow(at, model, scope)
	case secretTree:
		id, host, bound := strings.Cut(scope, "@")
		at := t.grow(0, id, id)
		if bound {
			return t.internHost(at, id+"@", host)
		}
		return at
	case onlyRoot:
		return 0
	}
	return t.grow(t.rootOf(scope), scope, scope)
}

func (t *tree) internHost(root int32, prefix, host string) int32 {
	dot := strings.IndexByte(host, '.')
	if dot == -1 {
		return t.grow(root, host, prefix+host)
	}
	wild := t.grow(root, host[dot:], prefix+"*"+host[dot:])
	if host[:dot] == "*" {
		return wild
	}
	return t.grow(wild, host[:dot], prefix+host)
}

// exact is the node whose scope is scope, -1 if there is none. A pattern leads
// to its own node, for no name has a "*" in it.
func (t *tree) exact(scope string) int32 {
	if id, exact := t.place(scope); exact {
		return id
	}
	return -1
}

// place is the deepest node that holds scope, and whether it is scope's own; -1
// for a path that is not clean.
func (t *tree) place(scope string) (id int32, exact bool) {
	id = t.locate(scope)
	return id, id >= 0 && t.nodes[id].name == scope
}
