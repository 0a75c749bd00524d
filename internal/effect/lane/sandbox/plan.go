package sandbox

import (
	"encoding/binary"
	"errors"
)

// What a confined rlp is given beside its own streams.
const (
	planFile   = 3
	ReportFile = 4
	// SocketFile is a Unix socket: a confined rlp hands over by it the sockets of the
	// network that it made, and then takes signals for the program.
	SocketFile = 5
	// LiveFile is the first of the program's own streams, where rlp's pass through.
	LiveFile = 6
)

// A Plan is what [Confined] does, as rlp tells it: everything is decided in it.
type Plan struct {
	Inside    bool // what is to be seen is there already
	Proof     bool // end when all is done, and start nothing
	Mounts    []Mount
	Kept      []Mount
	Links     bool     // a broker judges links
	Held      []Mount  // what the agent holds, and what it does not below that, by path
	Untrusted []string // folders out of which nothing is moved or linked
	Protected []string // names that stay as they are in guarded folders, [Any] for a part
	Work      string
	File      string // the program, "" with proof
	Dev       uint64 // which file that must be
	Ino       uint64
	SHA256    string // instead: what it must hold, in hex
	Script    bool
	Dir       string // where it starts: within work, or an absolute path
	Argv      []string
	Env       []string
	Memory    int64 // of each process; 0: bounded elsewhere
	Pids      int64
	Scratch   int64 // bytes of each private folder
	Network   bool  // one is made, and handed over by [SocketFile]
	Live      bool  // the program's streams are [LiveFile] and the two after it
	Terminal  bool  // but the first two are a terminal of its own, handed over by [SocketFile]
	Apart     bool  // and the third is not
	Ports     []uint16
	Inward    bool // sockets that connect to the program are handed over, too
	// Sockets are the folders in which programs make sockets of Unix, and connect to
	// them; none: they make no such sockets.
	Sockets []string
	// Counts bound what the user of the program has of the kernel, as [Counted] says.
	Counts []int64
	Dials  bool // a broker connects sockets: some might lead to others
	Told   bool // a broker refuses other sockets, and reports which
	// Executes bounds what is executed; nil: whatever programs see.
	Executes *Executables
	Asks     bool     // rlp is asked before another file is executed
	Each     bool     // each time
	Unasked  []string // but for these files
	Learns   bool     // and is told which paths are used

	tty     int          // the program's side of its terminal
	loaders []string     // files that the kernel loads for programs, and that nobody executes
	guards  []guardedDir // made from the mounts where programs will be
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
const planVersion = 12

// errPlan says that a plan is not one.
var errPlan = errors.New("this is no plan of this version of rlp")

// A codec writes a plan, or reads one. Each field is passed once, in one place,
// so that both are the same.
type codec struct {
	data    []byte
	reading bool
	bad     bool
}

func (p *Plan) each(c *codec) {
	version := int64(planVersion)
	if c.number(&version); version != planVersion {
		c.bad = true
		return
	}
	c.flag(&p.Inside)
	c.flag(&p.Proof)
	c.flag(&p.Script)
	c.flag(&p.Links)
	c.flag(&p.Network)
	c.flag(&p.Live)
	c.flag(&p.Terminal)
	c.flag(&p.Apart)
	for _, s := range []*string{&p.Work, &p.File, &p.Dir, &p.SHA256} {
		c.text(s)
	}
	dev, ino := int64(p.Dev), int64(p.Ino)
	for _, n := range []*int64{&dev, &ino, &p.Memory, &p.Pids, &p.Scratch} {
		c.number(n)
	}
	p.Dev, p.Ino = uint64(dev), uint64(ino)
	list(c, &p.Argv, (*codec).text)
	list(c, &p.Env, (*codec).text)
	list(c, &p.Mounts, (*codec).mount)
	list(c, &p.Kept, (*codec).mount)
	list(c, &p.Held, (*codec).mount)
	list(c, &p.Untrusted, (*codec).text)
	list(c, &p.Protected, (*codec).text)
	list(c, &p.Ports, (*codec).port)
	c.flag(&p.Inward)
	list(c, &p.Sockets, (*codec).text)
	list(c, &p.Counts, (*codec).number)
	c.flag(&p.Dials)
	c.flag(&p.Told)
	c.flag(&p.Asks)
	c.flag(&p.Each)
	list(c, &p.Unasked, (*codec).text)
	c.flag(&p.Learns)
	bounded := p.Executes != nil
	if c.flag(&bounded); !bounded {
		return
	}
	if c.reading {
		p.Executes = new(Executables)
	}
	c.flag(&p.Executes.Others)
	list(c, &p.Executes.Files, (*codec).text)
}

func (c *codec) port(p *uint16) {
	n := int64(*p)
	c.number(&n)
	c.bad = c.bad || n != int64(uint16(n))
	*p = uint16(n)
}

func (c *codec) mount(s *Mount) {
	kind, access := int64(s.Kind), int64(s.Access)
	c.text(&s.Path)
	c.number(&kind)
	c.number(&access)
	c.flag(&s.mountedOver)
	c.flag(&s.guarded)
	s.Kind, s.Access = mountKind(kind), Access(access)
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

// Encode is the plan as [Confined] reads it.
func (p *Plan) Encode() []byte {
	var c codec
	p.each(&c)
	return c.data
}

func decodePlan(data []byte) (*Plan, error) {
	c := codec{data: data, reading: true}
	var p Plan
	if p.each(&c); c.bad || len(c.data) > 0 {
		return nil, errPlan
	}
	return &p, nil
}
