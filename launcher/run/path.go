package run

import (
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/effect/links"
)

// pathGate is the gate as the jail asks it.
type pathGate struct {
	gate      *gate.Gate
	ops       []*gate.Op
	untrusted []string // what is below these marks the run
}

func newPathGate(g *gate.Gate, untrusted []string) (*pathGate, error) {
	p := &pathGate{gate: g, ops: make([]*gate.Op, jail.NumOps), untrusted: untrusted}
	for i := range p.ops {
		name, named := jail.Op(i).String(), g.Op
		if strings.HasPrefix(name, "fd_") {
			named = g.OpenedOp
		}
		op, err := named(name)
		if err != nil {
			return nil, err
		}
		p.ops[i] = op
	}
	return p, nil
}

// Admit decides mode on path for op and records the decision.
func (p *pathGate) Admit(op jail.Op, mode caps.Mode, path string) gate.Permit {
	a := p.gate.Admit(p.ops[op], caps.Request{Family: caps.FS, Mode: mode, Name: path}, path, nil)
	return p.takeIn(a.Permit, op, mode, path, false)
}

// AdmitTree decides for a whole tree.
func (p *pathGate) AdmitTree(op jail.Op, mode caps.Mode, path string) gate.Permit {
	a := p.gate.AdmitTree(p.ops[op], caps.Request{Family: caps.FS, Mode: mode, Name: path}, path)
	return p.takeIn(a.Permit, op, mode, path, true)
}

// AdmitMove reports whether a path may be moved, or linked.
func (p *pathGate) AdmitMove(op jail.Op, from, to string) bool {
	return p.gate.AdmitMove(p.ops[op], from, to) && p.staysUntrusted(op, from, to)
}

// Holds reports whether the scope of a permit still allows mode.
func (p *pathGate) Holds(permit gate.Permit, mode caps.Mode) bool {
	return p.gate.Holds(permit.Scope(), caps.FS, mode)
}

// Reject records, and counts, a call that named no path.
func (p *pathGate) Reject(op string, text []byte) {
	i := slices.IndexFunc(p.ops, func(o *gate.Op) bool { return o.String() == op })
	if i < 0 { // no function on a path is unknown here
		return
	}
	const most = 256
	said, more := text, ""
	if len(said) > most {
		said, more = said[:most], "..."
	}
	target := strconv.QuoteToASCII(string(said)) + more
	p.gate.Refuse(p.ops[i], caps.Request{Family: caps.FS, Mode: caps.Read, Name: target}, target, caps.InvalidRequest)
}

// Revoked records that a descriptor was refused.
func (p *pathGate) Revoked(op jail.Op, mode caps.Mode, path string) { p.Admit(op, mode, path) }

// takesIn reports whether an operation gives the guest what is in a file, a name
// in a folder or the text of a link, or takes a file to where it would be read
// as another: the run is marked then and there, since the other name has no
// mark. That something exists, and its size and times, is not what somebody
// wrote.
func takesIn(op jail.Op) bool {
	switch op {
	case jail.PathOpen, jail.PathReadlink, jail.PathRename, jail.PathLink:
		return true
	}
	return false
}

// takeIn is the permit of an operation once the run is marked, where it takes in
// what lies in an untrusted folder; tree says that it takes all below path along.
// It permits nothing when the mark could not be recorded. path has been led past
// links: each path on the way is put to the gate, so that none leads here unseen.
func (p *pathGate) takeIn(permit gate.Permit, op jail.Op, mode caps.Mode, path string, tree bool) gate.Permit {
	if !permit.OK() || mode != caps.Read || !takesIn(op) {
		return permit
	}
	for _, folder := range p.untrusted {
		if links.Within(path, folder) || tree && links.Within(folder, path) {
			if p.gate.Taint(gate.Cause(caps.SourceWord(caps.FS), path)) != nil {
				return gate.Permit{}
			}
			break
		}
	}
	return permit
}

// staysUntrusted refuses to move or link what lies in an untrusted folder to where
// the next run would read it without being marked.
func (p *pathGate) staysUntrusted(op jail.Op, from, to string) bool {
	if !links.Crosses(p.untrusted, from, to, op == jail.PathLink) {
		return true
	}
	p.gate.Refuse(p.ops[op], caps.Request{Family: caps.FS, Mode: caps.Write, Name: to}, to, caps.UntrustedContext)
	return false
}
