package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/effect/links"
)

// A Mount is one path that a program sees, and where its content comes from.
type Mount struct {
	Path        string
	Kind        mountKind
	Access      Access
	named       bool // what the agent holds there is said of this very path
	mountedOver bool // something is mounted there
	Parted      bool // the folder of the mounts below it, which are what is shown of it
	// guarded says that programs may write here but for what is kept below it: the
	// mount is read-only, and a broker makes the changes, by name.
	guarded bool
}

type mountKind uint8

const (
	bind    mountKind = iota // the operator's own folder or file, at the same path
	beside                   // the same, of an entry of a parted folder: a link is made again
	System                   // the same, of the system: programs need it, where it is there
	Nothing                  // an empty folder or file over what is there
	Private                  // an empty folder that can be written to, gone at the end
	Devices                  // null, zero, full, random
	Procs                    // the processes of the lane
)

// SystemPaths are what programs need of the machine. Of /etc only what is
// public everywhere is there, and never keys.
func SystemPaths() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
		"/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
	}
}

// A ViewSpec says what a program may see.
type ViewSpec struct {
	Folders []Folder // what the agent holds
	Leased  []string // what stays where it is, with all that holds it
	Mounts  []string // places where something else is mounted: no grant enters them
	Work    string   // "" where there is none
	Program string   // "" where it is visible anyhow
	// Programs are others that are shown, and stay as they are whatever is granted: what
	// is executed is not what a program wrote.
	Programs []string
	// Protected are names that programs leave as they are, in whatever they write but
	// what is theirs alone.
	Protected []string
	Entries   func(dir string) []string
}

// A View is a viewSpec in the order in which it is made, parents first.
type View struct {
	Mounts []Mount
	// kept are the places that programs are kept from within guarded mounts. They
	// are names: what lies there may come and go while a program runs. What they may
	// write there is leased: it is neither moved nor linked out of its place.
	Kept []Mount
}

// View is how a viewSpec is made. The deepest folder that holds a path decides;
// system programs can be read whatever holds them, but not what was denied below
// them.
//
// A mount over a name goes when the host replaces what the name leads to. So
// nothing is kept from programs by a mount alone: a folder that they may read is
// parted, which shows the entries that they may see and has no others; a folder
// that they may write is guarded.
func (s *ViewSpec) View() (View, error) {
	list := s.candidates()
	b := placed(list)
	if len(b.parted) > 0 {
		b = placed(s.part(list, b.parted))
	}
	for _, p := range s.Leased {
		b.bind(p)
	}
	if len(b.made) > maxMounts {
		return View{}, fmt.Errorf("%s: %w: the folders above it have more than %d entries", b.deniedIn, ErrNotKept, maxMounts)
	}
	v := View{Mounts: b.made, Kept: b.kept}
	s.protect(v.Mounts)
	for _, m := range v.Mounts {
		if m.guarded && m.Path == "/" {
			what := append(s.Protected, "/")[0]
			if len(v.Kept) > 0 {
				what = v.Kept[0].Path
			}
			return View{}, fmt.Errorf("%s: %w: / is a folder that they may write", what, ErrNotKept)
		}
	}
	return v, nil
}

// protect guards what programs write that is not theirs alone.
func (s *ViewSpec) protect(mounts []Mount) {
	if len(s.Protected) == 0 {
		return
	}
	own := map[string]bool{s.Work: true}
	for _, f := range s.Folders {
		own[f.Path] = own[f.Path] || f.Own
	}
	for i, m := range mounts {
		if m.Kind == bind && m.Access == ReadWrite && !own[m.Path] {
			mounts[i].guarded = true
		}
	}
}

// IsGuarded reports whether a broker makes changes in any of the mounts.
func (v View) IsGuarded() bool {
	return slices.ContainsFunc(v.Mounts, func(m Mount) bool { return m.guarded })
}

// maxMounts bounds what is mounted for one program.
const maxMounts = 16384

// ErrNotKept says that something which a program must be kept from cannot be kept.
var ErrNotKept = errors.New("cannot be kept from programs")

// part shows each entry of parted folders as a mount of its own.
func (s *ViewSpec) part(list []Mount, parted map[string]bool) []Mount {
	known := map[string]bool{}
	for _, c := range list {
		known[c.Path] = true
	}
	list = slices.DeleteFunc(list, func(c Mount) bool { return parted[c.Path] })
	for _, dir := range slices.Sorted(maps.Keys(parted)) {
		list = append(list, Mount{Path: dir, Kind: Nothing, Access: ReadOnly, Parted: true})
		for _, name := range s.Entries(dir) {
			if p := path.Join(dir, name); !known[p] && !parted[p] {
				list = append(list, Mount{Path: p, Kind: beside, Access: ReadOnly})
			}
		}
	}
	slices.SortFunc(list, func(a, b Mount) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// Entries are the names of the folders, files and links in a folder. What is
// something else is not shown, as the agent is not shown it.
func Entries(dir string) []string {
	list, _ := os.ReadDir(dir)
	names := make([]string, 0, len(list))
	for _, e := range list {
		if t := e.Type(); t.IsDir() || t.IsRegular() || t == fs.ModeSymlink {
			names = append(names, e.Name())
		}
	}
	return names
}

// Held is what the agent holds by name: what is mounted below that it does not.
// What stays for another reason is among it, held as what it lies in.
func (s *ViewSpec) Held(stays []string) []Mount {
	list := make([]Mount, 0, len(s.Folders)+len(s.Mounts)+len(stays))
	for _, m := range s.Mounts {
		list = append(list, Mount{Path: m})
	}
	for _, f := range s.Folders { // the last of one path is the one that counts
		list = append(list, Mount{Path: f.Path, Access: f.Access})
	}
	for _, p := range stays {
		in, access := "", Hidden
		for _, h := range list {
			if links.Within(p, h.Path) && len(h.Path) >= len(in) {
				in, access = h.Path, h.Access
			}
		}
		list = append(list, Mount{Path: p, Access: access})
	}
	return list
}

// candidates are one mount for each path, by path.
func (s *ViewSpec) candidates() []Mount {
	of := map[string]Mount{}
	for _, p := range SystemPaths() {
		of[p] = Mount{Path: p, Kind: System, Access: ReadOnly}
	}
	of["/tmp"] = Mount{Path: "/tmp", Kind: Private, Access: ReadWrite}
	for _, m := range s.Mounts {
		if _, taken := of[m]; !taken {
			of[m] = Mount{Path: m, Kind: Nothing, mountedOver: true}
		}
	}
	if s.Program != "" {
		of[s.Program] = Mount{Path: s.Program, Kind: bind, Access: ReadOnly}
	}
	for _, f := range s.Folders {
		was, taken := of[f.Path]
		switch {
		case taken && f.Access <= ReadOnly && was.Kind != Nothing: // hidden or not, it is needed
			if was.Kind == Private && f.Access == ReadOnly {
				was = Mount{Path: f.Path, Kind: bind, Access: ReadOnly}
			}
			was.named = true
			of[f.Path] = was
		case f.Access == Hidden:
			of[f.Path] = Mount{Path: f.Path, Kind: Nothing}
		default:
			of[f.Path] = Mount{Path: f.Path, Kind: bind, Access: f.Access}
		}
	}
	for _, p := range s.Programs {
		if is, taken := of[p]; !taken || is.Access == ReadWrite {
			of[p] = Mount{Path: p, Kind: bind, Access: ReadOnly}
		}
	}
	if s.Work != "" {
		of[s.Work] = Mount{Path: s.Work, Kind: bind, Access: ReadWrite}
	}
	of["/dev"] = Mount{Path: "/dev", Kind: Devices}
	of["/proc"] = Mount{Path: "/proc", Kind: Procs}
	list := make([]Mount, 0, len(of))
	for _, c := range of {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Mount) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// A builder goes through candidates, parents first.
type builder struct {
	decided  map[string]Access
	at       map[string]int // mounts in made, by path
	made     []Mount
	kept     []Mount
	parted   map[string]bool // folders that may be read, above what may not
	deniedIn string          // one of the latter
}

func placed(list []Mount) *builder {
	b := &builder{decided: map[string]Access{}, at: map[string]int{}, parted: map[string]bool{}}
	for _, c := range list {
		b.place(c)
	}
	return b
}

// place makes one mount, unless it is what is there already.
func (b *builder) place(c Mount) {
	inherited := b.above(c.Path)
	if c.Kind == System && !c.named {
		c.Access = max(c.Access, inherited)
	}
	b.decided[c.Path] = c.Access
	switch {
	case c.Kind == Private, c.Parted: // what is below it is not what is below it outside
		b.decided[c.Path] = Hidden
	case c.Kind == Devices, c.Kind == Procs:
	case c.Access == inherited:
		return
	case c.Access < inherited && !c.mountedOver: // what is mounted there stays so, wherever it is moved
		if !b.keep(c) {
			return
		}
	}
	b.at[c.Path] = len(b.made)
	b.made = append(b.made, c)
}

// keep takes c away from what is above it. It reports whether c is a mount all the
// same: what was denied in a guarded one is covered as well, so that its names
// do not show as long as it is not replaced.
func (b *builder) keep(c Mount) bool {
	top := b.top(path.Dir(c.Path))
	owner := &b.made[b.at[top]]
	if owner.Access == ReadWrite {
		owner.guarded = true
		b.kept = append(b.kept, Mount{Path: c.Path, Access: c.Access})
		return c.Access == Hidden
	}
	b.deniedIn = c.Path
	for dir := path.Dir(c.Path); ; dir = path.Dir(dir) {
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
		b.kept = append(b.kept, Mount{Path: p, Access: ReadWrite})
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
