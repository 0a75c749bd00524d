package caps

import (
	"cmp"
	"strings"
	"unsafe"

	"github.com/bits-and-blooms/bitset"
)

// A Decision answers a [Request]. The zero Decision denies.
type Decision struct {
	Allow bool
	Code  Code
	// Layer is the first layer that refuses: 0 is the base, i the i-th that was
	// narrowed by; -1 when the request is allowed or is no request at all.
	Layer int16
	// Scope is the deepest scope of the universe that holds the request, -1 when
	// the request is no request at all.
	Scope int32
}

var noRequest = Decision{Code: InvalidRequest, Layer: -1, Scope: -1}

// Check decides r: one walk to the deepest scope that holds it, and one bit. It
// is a pure function of s and r, and allocates nothing. A name of "*" asks for
// the family as a whole.
func (s Set) Check(r Request) Decision {
	st := s.state()
	id := st.find(r)
	if id < 0 {
		return noRequest
	}
	if r.Name == "*" { // which is no path
		return st.checkTree(r, id)
	}
	if st.eff[r.Family][r.Mode].Test(uint(id)) {
		return Decision{Allow: true, Code: Granted, Layer: -1, Scope: id}
	}
	return st.refuse(r, id)
}

// CheckTree decides r and everything below it at once: moving or removing a
// directory touches what it holds. Scope of a denial is what is denied.
func (s Set) CheckTree(r Request) Decision {
	st := s.state()
	id := st.find(r)
	if id < 0 {
		return noRequest
	}
	return st.checkTree(r, id)
}

// Holds reports whether scope id of f, as an earlier [Decision] of this set or
// of one that it was narrowed from names it, allows mode m: one bit.
func (s Set) Holds(id int32, f Family, m Mode) bool {
	return f < numUniverses && m < families[f].modes && s.state().eff[f][m].Test(uint(id))
}

// Covers reports whether s allows all of g: every mode, everything within its
// scope.
func (s Set) Covers(g Grant) bool {
	if checkGrant(g) != nil {
		return false
	}
	st, t := s.state(), s.state().trees[g.Family]
	for m := range families[g.Family].modes {
		if !g.Modes.Has(m) {
			continue
		}
		id := t.locate(g.Scope)
		if _, whole := t.firstDenied(st.eff[g.Family][m], id, g.Scope); !whole {
			return false
		}
	}
	return true
}

// find is the deepest node that holds r, -1 when r is no request.
func (st *state) find(r Request) int32 {
	if r.Family >= numUniverses {
		return -1
	}
	row := &families[r.Family]
	if r.Mode >= row.modes {
		return -1
	}
	if row.shape == pathTree {
		return st.trees[r.Family].locatePath(r.Name) // which checks as it walks
	}
	if !row.valid(r.Name) {
		if r.Name == "*" || row.shape == onlyRoot && r.Name == "" {
			return 0
		}
		return -1
	}
	if row.shape == secretTree && r.Mode == Get && strings.Contains(r.Name, "@") {
		return -1
	}
	return st.trees[r.Family].locate(r.Name)
}

func (st *state) checkTree(r Request, id int32) Decision {
	bad, whole := st.trees[r.Family].firstDenied(st.eff[r.Family][r.Mode], id, r.Name)
	if !whole {
		return st.refuse(r, bad)
	}
	return Decision{Allow: true, Code: Granted, Layer: -1, Scope: id}
}

// firstDenied is the first node whose bit is not set of id, the deepest that
// holds scope, and those below it; none is when all is allowed. Of a scope
// within the cell of id nothing of the universe is below.
func (t *tree) firstDenied(bits *bitset.BitSet, id int32, scope string) (denied int32, none bool) {
	if !bits.Test(uint(id)) {
		return id, false
	}
	if t.nodes[id].name != scope {
		return -1, true
	}
	for i, ok := bits.NextClear(uint(id)); ok; i, ok = bits.NextClear(i + 1) {
		p := int32(i)
		for p > id {
			p = t.nodes[p].parent
		}
		if p == id {
			return int32(i), false
		}
	}
	return -1, true
}

// refuse is the denial of r, whose deepest node is id.
func (st *state) refuse(r Request, id int32) Decision {
	layer := st.refuser(r.Family, r.Mode, id)
	code := Code(0)
	if layer > 0 {
		code = st.steps[layer-1].layer.Because
	}
	if code == 0 {
		code = st.reason(r)
	}
	return Decision{Code: code, Layer: layer, Scope: id}
}

// refuser is the first layer whose bit for the node is not set; a sum of others
// only if it is the only one.
func (st *state) refuser(f Family, m Mode, id int32) int16 {
	if !st.base[f][m].Test(uint(id)) {
		return 0
	}
	sum := int16(0)
	for i := range st.steps {
		if b := st.steps[i].votes[f]; b != nil && b[m] != nil && !b[m].Test(uint(id)) {
			if !st.steps[i].layer.Sum {
				return int16(i + 1)
			}
			sum = cmp.Or(sum, int16(i+1))
		}
	}
	return sum
}

func (st *state) reason(r Request) Code {
	if r.Family != Tool && !(Set{st}).Any(r.Family) {
		return CapMissing
	}
	if r.Family == Net && r.Name != "*" {
		return st.netReason(r)
	}
	return families[r.Family].denied
}

// netReason tells a method that is not granted from a scheme and from a host
// that are not.
func (st *state) netReason(r Request) Code {
	if r.Mode == Bytes {
		return HostNotPermitted
	}
	scheme := r.Mode / numMethods
	if st.anyMethod(scheme, r.Name) {
		return MethodNotPermitted
	}
	if schemes[scheme] != "http" {
		return HostNotPermitted
	}
	if st.anyMethod(0, r.Name) {
		return HTTPNotPermitted
	}
	var buf [300]byte // of a host with another port this makes none
	b := append(append(buf[:0], strings.TrimSuffix(r.Name, ":80")...), ":443"...)
	if st.anyMethod(0, unsafe.String(&b[0], len(b))) {
		return HTTPNotPermitted
	}
	return HostNotPermitted
}

func (st *state) anyMethod(scheme Mode, host string) bool {
	id := uint(st.trees[Net].locateHost(0, host))
	for _, b := range st.eff[Net][scheme*numMethods : (scheme+1)*numMethods] {
		if b.Test(id) {
			return true
		}
	}
	return false
}
