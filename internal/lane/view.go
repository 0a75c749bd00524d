package lane

import (
	"path"
	"slices"
	"strings"
)

// A spot is one place of what a program sees, and where that comes from.
type spot struct {
	path   string
	kind   spotKind
	access Access
	named  bool // what the agent holds there is said of this very path
	mount  bool // something is mounted there
	must   bool // without it the program would get more than the agent has: refuse
}

type spotKind uint8

const (
	bind    spotKind = iota // the operator's own folder or file, at the same path
	system                  // the same, of the system: programs need it, where it is there
	nothing                 // an empty folder or file over what is there
	private                 // an empty folder that can be written to, gone at the end
	devices                 // null, zero, full, random
	procs                   // the processes of the lane
)

// systemPaths are what programs need of the machine. Of /etc only what is
// public everywhere is there, and never keys.
func systemPaths() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
		"/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
	}
}

// A scene is what a program is to see.
type scene struct {
	folders []Folder // what the agent holds
	mounts  []string // places where something else is mounted: no grant enters them
	work    string   // "" where there is none
	program string   // "" where it is visible anyhow
}

// spots are a scene's in the order in which they are made, parents first. The
// deepest folder that holds a path decides; system programs can be read
// whatever holds them, but not what was denied below them.
func (s *scene) spots() []spot {
	b := builder{decided: map[string]Access{}, held: map[string]bool{}}
	for _, c := range s.candidates() {
		b.place(c)
	}
	return b.made
}

// candidates are one spot for each path, by path.
func (s *scene) candidates() []spot {
	of := map[string]spot{}
	for _, p := range systemPaths() {
		of[p] = spot{path: p, kind: system, access: ReadOnly}
	}
	of["/tmp"] = spot{path: "/tmp", kind: private, access: ReadWrite}
	for _, m := range s.mounts {
		if _, taken := of[m]; !taken {
			of[m] = spot{path: m, kind: nothing, mount: true}
		}
	}
	if s.program != "" {
		of[s.program] = spot{path: s.program, kind: bind, access: ReadOnly}
	}
	for _, f := range s.folders {
		was, taken := of[f.Path]
		switch {
		case taken && f.Access <= ReadOnly && was.kind != nothing: // hidden or not, it is needed
			if was.kind == private && f.Access == ReadOnly {
				was = spot{path: f.Path, kind: bind, access: ReadOnly}
			}
			was.named = true
			of[f.Path] = was
		case f.Access == Hidden:
			of[f.Path] = spot{path: f.Path, kind: nothing}
		default:
			of[f.Path] = spot{path: f.Path, kind: bind, access: f.Access}
		}
	}
	if s.work != "" {
		of[s.work] = spot{path: s.work, kind: bind, access: ReadWrite}
	}
	of["/dev"] = spot{path: "/dev", kind: devices}
	of["/proc"] = spot{path: "/proc", kind: procs}
	list := make([]spot, 0, len(of))
	for _, c := range of {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b spot) int { return strings.Compare(a.path, b.path) })
	return list
}

// A builder goes through candidates, parents first.
type builder struct {
	decided map[string]Access
	held    map[string]bool // what is a spot of its own: nobody moves it
	made    []spot
}

// place makes one spot, unless it is what is there already.
func (b *builder) place(c spot) {
	inherited := b.above(c.path)
	if c.kind == system && !c.named {
		c.access = max(c.access, inherited)
	}
	b.decided[c.path] = c.access
	switch {
	case c.kind == private: // what is below it is not what is below it outside
		b.decided[c.path] = Hidden
	case c.kind == devices, c.kind == procs:
	case c.access == inherited:
		return
	case inherited == ReadWrite && !c.mount: // what is mounted there stays so, wherever it is moved
		c.must = true
		b.pin(c.path)
	}
	b.add(c)
}

func (b *builder) add(c spot) {
	b.held[c.path] = true
	b.made = append(b.made, c)
}

// above is the access of the deepest place above p that was decided.
func (b *builder) above(p string) Access {
	for p != "/" {
		p = path.Dir(p)
		if a, ok := b.decided[p]; ok {
			return a
		}
	}
	return Hidden
}

// pin holds the folders above p where they are, up to one that is: who could
// move one of them would move what is below out from under its spot.
func (b *builder) pin(p string) {
	var dirs []string
	for at := path.Dir(p); at != "/" && !b.held[at]; at = path.Dir(at) {
		dirs = append(dirs, at)
	}
	for _, at := range slices.Backward(dirs) {
		b.add(spot{path: at, kind: bind, access: ReadWrite, must: true})
	}
}

// unkept are the spots which a lane cannot keep because they are not there yet:
// an agent's program could make them itself, and be in them.
func (s *scene) unkept(exists func(path string) bool) []string {
	var list []string
	for _, c := range s.spots() {
		if c.must && !exists(c.path) {
			list = append(list, c.path)
		}
	}
	return list
}
