package analysis

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A file is a path and the modes in which it was used.
type file struct {
	path    string
	modes   caps.ModeSet
	uses    []*tally
	members int // files that it was made of, when it is a folder by choice
}

func (f *file) changed() bool { return f.modes.Has(caps.Write) || f.modes.Has(caps.Delete) }

// files writes fs and fs_rw. A path grants what lies below it, so that a path
// below another one is left out; a folder is written only where the folder
// itself was used, or by choice.
func (b *builder) files() {
	all := b.paths()
	kept := widest(all)
	if b.opt.Folders > 0 {
		all = append(all, b.gathered(kept, all)...)
		kept = widest(all)
	}
	lists := map[bool][]line{}
	for _, f := range kept {
		for _, name := range b.written(caps.FS, f.path) {
			lists[f.changed()] = append(lists[f.changed()], line{quote(name), b.aboutFile(f, all)})
		}
		b.modes(f, all)
	}
	b.list("fs", lists[false])
	if len(kept) > 0 {
		b.list("fs_rw", lists[true])
	}
}

// paths are the files that were used, each once, in order.
func (b *builder) paths() []*file {
	var list []*file
	for _, t := range b.uses[caps.FS] {
		if clean, _, err := caps.CleanPath(t.name); err != nil || clean != t.name || strings.HasPrefix(t.name, "{") {
			b.cannot(t, t.name)
			continue
		}
		if n := len(list); n == 0 || list[n-1].path != t.name {
			list = append(list, &file{path: t.name})
		}
		f := list[len(list)-1]
		f.modes |= 1 << t.mode
		f.uses = append(f.uses, t)
	}
	return list
}

// gathered makes folders of so many files and more that lie directly in them, and
// never the widest one. A folder that was itself used is no file of the one
// above it, whose other folders nobody looked into.
func (b *builder) gathered(list, all []*file) []*file {
	in := map[string]*file{}
	for _, f := range list {
		dir := path.Dir(f.path)
		if _, _, err := caps.CleanPath(dir); err != nil || dir == "/" || b.isFolder(f, all) {
			continue
		}
		if in[dir] == nil {
			in[dir] = &file{path: dir}
		}
		folder := in[dir]
		folder.members++
		folder.modes |= f.modes
		folder.uses = append(folder.uses, f.uses...)
	}
	var out []*file
	for _, dir := range slices.Sorted(maps.Keys(in)) {
		if in[dir].members >= b.opt.Folders {
			out = append(out, in[dir])
		}
	}
	return out
}

// widest are those whose needs no other one grants: one above, or the same
// path, made of files, where that changes more.
func widest(all []*file) []*file {
	var kept []*file
	for i, f := range all {
		covered := false
		for j, up := range all {
			grants := up.changed() || !f.changed()
			same := up.path == f.path && (up.changed() && !f.changed() || up.changed() == f.changed() && i > j)
			covered = covered || i != j && (below(f.path, up.path) && grants || same)
		}
		if !covered {
			kept = append(kept, f)
		}
	}
	return kept
}

func below(p, dir string) bool {
	return dir == "/" && p != "/" || strings.HasPrefix(p, dir+"/")
}

// modes says, or takes away, what the key of f grants and was not used.
func (b *builder) modes(f *file, all []*file) {
	granted := caps.Modes(caps.Read)
	if f.changed() {
		granted = caps.AllModes(caps.FS)
	}
	inside := f.modes
	for _, other := range all {
		if below(other.path, f.path) {
			inside |= other.modes
		}
	}
	g := caps.Grant{Family: caps.FS, Scope: f.path}
	if g.Modes = granted &^ inside; g.Modes != 0 {
		b.take(g, "never used there; fs_rw alone would grant it")
	}
	if g.Modes = granted & inside &^ f.modes; g.Modes != 0 {
		b.wider(g, "used only below it")
	}
	if f.members > 0 || b.isFolder(f, all) {
		g.Modes = f.modes
		b.wider(g, "a folder: all that lies below it")
	}
}

func (b *builder) isFolder(f *file, all []*file) bool {
	for _, other := range all {
		if below(other.path, f.path) {
			return true
		}
	}
	return b.opt.IsFolder != nil && b.opt.IsFolder(f.path)
}

func (b *builder) aboutFile(f *file, all []*file) string {
	about := b.about(f.uses...)
	if b.opt.Missing != nil && b.opt.Missing(f.path) {
		b.s.Missing = append(b.s.Missing, f.path)
		about = "is not there now; " + about
	}
	switch {
	case f.members > 0:
		return fmt.Sprintf("a folder in place of %d files; %s", f.members, about)
	case b.isFolder(f, all):
		return "a folder that was itself used, with all below it; " + about
	}
	return about
}
