package lane

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/links"
)

// A mount is one path that a program sees, and where its content comes from.
type mount struct {
	path        string
	kind        mountKind
	access      Access
	named       bool // what the agent holds there is said of this very path
	mountedOver bool // something is mounted there
	parted      bool // the folder of the mounts below it, which are what is shown of it
	// guarded says that programs may write here but for what is kept below it: the
	// mount is read-only, and a broker makes the changes, by name.
	guarded bool
}

type mountKind uint8

const (
	bind    mountKind = iota // the operator's own folder or file, at the same path
	beside                   // the same, of an entry of a parted folder: a link is made again
	system                   // the same, of the system: programs need it, where it is there
	nothing                  // an empty folder or file over what is there
	private                  // an empty folder that can be written to, gone at the end
	devices                  // null, zero, full, random
	procs                    // the processes of the lane
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

// A viewSpec says what a program may see.
type viewSpec struct {
	folders []Folder // what the agent holds
	leased  []string // what stays where it is, with all that holds it
	mounts  []string // places where something else is mounted: no grant enters them
	work    string   // "" where there is none
	program string   // "" where it is visible anyhow
	entries func(dir string) []string
}

// A view is a viewSpec in the order in which it is made, parents first.
type view struct {
	mounts []mount
	// kept are the places that programs are kept from within guarded mounts. They
	// are names: what lies there may come and go while a program runs. What they may
	// write there is leased: it is neither moved nor linked out of its place.
	kept []mount
}

// view is how a viewSpec is made. The deepest folder that holds a path decides;
// system programs can be read whatever holds them, but not what was denied below
// them.
//
// A mount over a name goes when the host replaces what the name leads to. So
// nothing is kept from programs by a mount alone: a folder that they may read is
// parted, which shows the entries that they may see and has no others; a folder
// that they may write is guarded.
func (s *viewSpec) view() (view, error) {
	list := s.candidates()
	b := placed(list)
	if len(b.parted) > 0 {
		b = placed(s.part(list, b.parted))
	}
	for _, p := range s.leased {
		b.bind(p)
	}
	if len(b.made) > maxMounts {
		return view{}, fmt.Errorf("%s: %w: the folders above it have more than %d entries", b.deniedIn, errNotKept, maxMounts)
	}
	v := view{mounts: b.made, kept: b.kept}
	for _, s := range v.mounts {
		if s.guarded && s.path == "/" {
			return view{}, fmt.Errorf("%s: %w: / is a folder that they may write", v.kept[0].path, errNotKept)
		}
	}
	return v, nil
}

// maxMounts bounds what is mounted for one program.
const maxMounts = 16384

// errNotKept says that something which a program must be kept from cannot be kept.
var errNotKept = errors.New("cannot be kept from programs")

// part shows each entry of parted folders as a mount of its own.
func (s *viewSpec) part(list []mount, parted map[string]bool) []mount {
	known := map[string]bool{}
	for _, c := range list {
		known[c.path] = true
	}
	list = slices.DeleteFunc(list, func(c mount) bool { return parted[c.path] })
	for _, dir := range slices.Sorted(maps.Keys(parted)) {
		list = append(list, mount{path: dir, kind: nothing, access: ReadOnly, parted: true})
		for _, name := range s.entries(dir) {
			if p := path.Join(dir, name); !known[p] && !parted[p] {
				list = append(list, mount{path: p, kind: beside, access: ReadOnly})
			}
		}
	}
	slices.SortFunc(list, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	return list
}

// entries are the names of the folders, files and links in a folder. What is
// something else is not shown, as the agent is not shown it.
func entries(dir string) []string {
	list, _ := os.ReadDir(dir)
	names := make([]string, 0, len(list))
	for _, e := range list {
		if t := e.Type(); t.IsDir() || t.IsRegular() || t == fs.ModeSymlink {
			names = append(names, e.Name())
		}
	}
	return names
}

// held is what the agent holds by name: what is mounted below that it does not.
// What stays for another reason is among it, held as what it lies in.
func (s *viewSpec) held(stays []string) []mount {
	list := make([]mount, 0, len(s.folders)+len(s.mounts)+len(stays))
	for _, m := range s.mounts {
		list = append(list, mount{path: m})
	}
	for _, f := range s.folders { // the last of one path is the one that counts
		list = append(list, mount{path: f.Path, access: f.Access})
	}
	for _, p := range stays {
		in, access := "", Hidden
		for _, h := range list {
			if links.Within(p, h.path) && len(h.path) >= len(in) {
				in, access = h.path, h.access
			}
		}
		list = append(list, mount{path: p, access: access})
	}
	return list
}

// candidates are one mount for each path, by path.
func (s *viewSpec) candidates() []mount {
	of := map[string]mount{}
	for _, p := range systemPaths() {
		of[p] = mount{path: p, kind: system, access: ReadOnly}
	}
	of["/tmp"] = mount{path: "/tmp", kind: private, access: ReadWrite}
	for _, m := range s.mounts {
		if _, taken := of[m]; !taken {
			of[m] = mount{path: m, kind: nothing, mountedOver: true}
		}
	}
	if s.program != "" {
		of[s.program] = mount{path: s.program, kind: bind, access: ReadOnly}
	}
	for _, f := range s.folders {
		was, taken := of[f.Path]
		switch {
		case taken && f.Access <= ReadOnly && was.kind != nothing: // hidden or not, it is needed
			if was.kind == private && f.Access == ReadOnly {
				was = mount{path: f.Path, kind: bind, access: ReadOnly}
			}
			was.named = true
			of[f.Path] = was
		case f.Access == Hidden:
			of[f.Path] = mount{path: f.Path, kind: nothing}
		default:
			of[f.Path] = mount{path: f.Path, kind: bind, access: f.Access}
		}
	}
	if s.work != "" {
		of[s.work] = mount{path: s.work, kind: bind, access: ReadWrite}
	}
	of["/dev"] = mount{path: "/dev", kind: devices}
	of["/proc"] = mount{path: "/proc", kind: procs}
	list := make([]mount, 0, len(of))
	for _, c := range of {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	return list
}

// A builder goes through candidates, parents first.
type builder struct {
	decided  map[string]Access
	at       map[string]int // mounts in made, by path
	made     []mount
	kept     []mount
	parted   map[string]bool // folders that may be read, above what may not
	deniedIn string          // one of the latter
}

func placed(list []mount) *builder {
	b := &builder{decided: map[string]Access{}, at: map[string]int{}, parted: map[string]bool{}}
	for _, c := range list {
		b.place(c)
	}
	return b
}

// place makes one mount, unless it is what is there already.
func (b *builder) place(c mount) {
	inherited := b.above(c.path)
	if c.kind == system && !c.named {
		c.access = max(c.access, inherited)
	}
	b.decided[c.path] = c.access
	switch {
	case c.kind == private, c.parted: // what is below it is not what is below it outside
		b.decided[c.path] = Hidden
	case c.kind == devices, c.kind == procs:
	case c.access == inherited:
		return
	case c.access < inherited && !c.mountedOver: // what is mounted there stays so, wherever it is moved
		if !b.keep(c) {
			return
		}
	}
	b.at[c.path] = len(b.made)
	b.made = append(b.made, c)
}

// keep takes c away from what is above it. It reports whether c is a mount all the
// same: what was denied in a guarded one is covered as well, so that its names
// do not show as long as it is not replaced.
func (b *builder) keep(c mount) bool {
	top := b.top(path.Dir(c.path))
	owner := &b.made[b.at[top]]
	if owner.access == ReadWrite {
		owner.guarded = true
		b.kept = append(b.kept, mount{path: c.path, access: c.access})
		return c.access == Hidden
	}
	b.deniedIn = c.path
	for dir := path.Dir(c.path); ; dir = path.Dir(dir) {
		b.parted[dir] = true
		if dir == top {
			return false
		}
	}
}

// top is the deepest mount at or above p.
func (b *builder) top(p string) string {
	for ; p != "/"; p = path.Dir(p) {
		if _, ok := b.at[p]; ok {
			break
		}
	}
	return p
}

// bind guards the mount that holds a leased path which programs may write: the
// kernel would move a file within its folder for them, or give it another name.
// What is a mount itself is a mount, which nothing leaves.
func (b *builder) bind(p string) {
	access, ok := b.decided[p]
	if !ok {
		access = b.above(p)
	}
	if top := b.top(p); access == ReadWrite && top != p {
		b.made[b.at[top]].guarded = true
		b.kept = append(b.kept, mount{path: p, access: ReadWrite})
	}
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
