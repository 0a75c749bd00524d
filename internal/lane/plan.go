package lane

import (
	"encoding/binary"
	"errors"
)

// A plan is what [Confined] does, as rlp tells it: everything is decided in it.
type plan struct {
	inside  bool // what is to be seen is there already
	proof   bool // end when all is done, and start nothing
	mounts  []mount
	kept    []mount
	links   bool    // a broker judges links
	held    []mount // what the agent holds, and what it does not below that, by path
	work    string
	file    string // the program, "" with proof
	dev     uint64 // which file that must be
	ino     uint64
	script  bool
	dir     string // where it starts, within work
	argv    []string
	env     []string
	memory  int64 // of each process; 0: bounded elsewhere
	pids    int64
	scratch int64 // bytes of each private folder

	guards []guardedDir // made from the mounts where programs will be
}

// A guardedDir is a folder that programs may write, in which a broker makes
// changes for them: all, where something is kept from them in it, else those that
// make links, and move or remove folders.
type guardedDir struct {
	path string
	dir  int // can be written, whatever covers it
	// covered says that programs see it through a mount that is read-only. No path
	// leads to dir, which is below that mount.
	covered bool
	judged  bool // the links that are put in it
}

// planVersion is the first thing in a plan: one program may be an older file
// than the other.
const planVersion = 3

// errPlan says that a plan is not one.
var errPlan = errors.New("this is no plan of this version of rlp")

// A codec writes a plan, or reads one. Each field is passed once, in one place,
// so that both are the same.
type codec struct {
	data    []byte
	reading bool
	bad     bool
}

func (p *plan) each(c *codec) {
	version := int64(planVersion)
	if c.number(&version); version != planVersion {
		c.bad = true
		return
	}
	c.flag(&p.inside)
	c.flag(&p.proof)
	c.flag(&p.script)
	c.flag(&p.links)
	for _, s := range []*string{&p.work, &p.file, &p.dir} {
		c.text(s)
	}
	dev, ino := int64(p.dev), int64(p.ino)
	for _, n := range []*int64{&dev, &ino, &p.memory, &p.pids, &p.scratch} {
		c.number(n)
	}
	p.dev, p.ino = uint64(dev), uint64(ino)
	list(c, &p.argv, (*codec).text)
	list(c, &p.env, (*codec).text)
	list(c, &p.mounts, (*codec).mount)
	list(c, &p.kept, (*codec).mount)
	list(c, &p.held, (*codec).mount)
}

func (c *codec) mount(s *mount) {
	kind, access := int64(s.kind), int64(s.access)
	c.text(&s.path)
	c.number(&kind)
	c.number(&access)
	c.flag(&s.mountedOver)
	c.flag(&s.guarded)
	s.kind, s.access = mountKind(kind), Access(access)
}

func list[T any](c *codec, l *[]T, each func(*codec, *T)) {
	n := int64(len(*l))
	c.number(&n)
	for i := int64(0); i < n && !c.bad; i++ {
		if c.reading {
			var zero T
			*l = append(*l, zero)
		}
		each(c, &(*l)[i])
	}
}

func (c *codec) flag(b *bool) {
	var n int64
	if *b {
		n = 1
	}
	c.number(&n)
	*b = n == 1
}

func (c *codec) number(n *int64) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, *n)
		return
	}
	v, size := binary.Varint(c.data)
	if size <= 0 {
		c.bad, *n = true, 0
		return
	}
	*n, c.data = v, c.data[size:]
}

func (c *codec) text(s *string) {
	n := int64(len(*s))
	c.number(&n)
	switch {
	case !c.reading:
		c.data = append(c.data, *s...)
	case n < 0 || n > int64(len(c.data)):
		c.bad = true
	default:
		*s, c.data = string(c.data[:n]), c.data[n:]
	}
}

func (p *plan) encode() []byte {
	var c codec
	p.each(&c)
	return c.data
}

func decodePlan(data []byte) (*plan, error) {
	c := codec{data: data, reading: true}
	var p plan
	if p.each(&c); c.bad || len(c.data) > 0 {
		return nil, errPlan
	}
	return &p, nil
}
