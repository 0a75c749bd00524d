// Package wasitest holds an in-memory [wasi.FS] that behaves as a Linux file
// system does, and that fails loudly when it is handed a path which is not
// absolute and clean.
package wasitest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/effect/wasi"
)

const maxLinks = 40 // as MAXSYMLINKS

// FS is a file system in memory. The zero FS is not usable: see [NewFS].
type FS struct {
	root  *node
	inode uint64
	now   int64
	deny  []string

	// Opened counts files that are open; a run must leave none.
	Opened int
	// Calls is every path that was asked for, with the method's name.
	Calls []string
	// Quiet switches Calls off.
	Quiet bool
}

type node struct {
	kind     wasi.FileType
	ino      uint64
	nlink    uint64
	data     []byte
	target   string
	children map[string]*node
	parent   *node
	at, mt   int64
}

// NewFS is an empty file system.
func NewFS() *FS {
	f := &FS{now: 1e18}
	f.root = f.newNode(wasi.TypeDirectory)
	f.root.parent = f.root
	return f
}

func (f *FS) newNode(k wasi.FileType) *node {
	f.inode++
	f.now++
	n := &node{kind: k, ino: f.inode, nlink: 1, at: f.now, mt: f.now}
	if k == wasi.TypeDirectory {
		n.children = map[string]*node{}
	}
	return n
}

// Deny makes everything at p and below EACCES, by whatever links it is reached.
func (f *FS) Deny(p string) { f.deny = append(f.deny, strings.TrimSuffix(p, "/")) }

func (f *FS) denied(components []string) bool {
	p := "/" + strings.Join(components, "/")
	for _, d := range f.deny {
		if p == d || strings.HasPrefix(p, d+"/") {
			return true
		}
	}
	return false
}

// WriteFile puts a file at p, with the directories above it.
func (f *FS) WriteFile(p, text string) {
	dir := f.MkdirAll(path.Dir(p))
	n := f.newNode(wasi.TypeRegular)
	n.data = []byte(text)
	dir.children[path.Base(p)] = n
}

// MkdirAll makes p and the directories above it.
func (f *FS) MkdirAll(p string) *node {
	n := f.root
	for c := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		if c == "" {
			continue
		}
		next := n.children[c]
		if next == nil {
			next = f.newNode(wasi.TypeDirectory)
			next.parent = n
			n.children[c] = next
		}
		n = next
	}
	return n
}

// ReadFile is what stands at p, and false when no file does.
func (f *FS) ReadFile(p string) (string, bool) {
	w, errno := f.walk(p, false)
	if errno != wasi.Success || w.node == nil || w.node.kind != wasi.TypeRegular {
		return "", false
	}
	return string(w.node.data), true
}

// see is what every method begins with: the path must be clean.
func (f *FS) see(method, p string) {
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.IndexByte(p, 0) >= 0 {
		panic(fmt.Sprintf("wasitest: %s of the unclean path %q", method, p))
	}
	if !f.Quiet {
		f.Calls = append(f.Calls, method+" "+strings.Clone(p))
	}
}

// found is where a path leads: node is nil when the last component is missing.
type found struct {
	dir  *node
	name string
	node *node
}

func (f *FS) walk(p string, follow bool) (found, wasi.Errno) {
	rest := strings.Split(strings.Trim(p, "/"), "/")
	if f.denied(rest) {
		return found{}, wasi.EACCES
	}
	var real []string // where the way has led so far
	w := found{dir: f.root, name: ".", node: f.root}
	links := 0
	for len(rest) > 0 {
		c := rest[0]
		rest = rest[1:]
		if c == "" || c == "." {
			continue
		}
		if w.node == nil {
			return w, wasi.ENOENT
		}
		if w.node.kind != wasi.TypeDirectory {
			return w, wasi.ENOTDIR
		}
		if len(c) > 255 {
			return w, wasi.ENAMETOOLONG
		}
		if c == ".." {
			real = real[:max(len(real)-1, 0)]
			w = found{dir: w.node.parent, name: ".", node: w.node.parent}
			continue
		}
		dir := w.node
		w = found{dir: dir, name: strings.Clone(c), node: dir.children[c]}
		if w.node == nil || w.node.kind != wasi.TypeSymlink || len(rest) == 0 && !follow {
			if real = append(real, c); f.denied(real) {
				return found{}, wasi.EACCES
			}
			continue
		}
		if links++; links > maxLinks {
			return w, wasi.ELOOP
		}
		target := w.node.target
		rest = append(strings.Split(target, "/"), rest...)
		w = found{dir: dir, name: ".", node: dir}
		if strings.HasPrefix(target, "/") {
			real, w = nil, found{dir: f.root, name: ".", node: f.root}
		}
	}
	return w, wasi.Success
}

// lookup is walk for what must be there.
func (f *FS) lookup(p string, mustDir, follow bool) (*node, wasi.Errno) {
	w, errno := f.walk(p, follow || mustDir)
	switch {
	case errno != wasi.Success:
		return nil, errno
	case w.node == nil:
		return nil, wasi.ENOENT
	case mustDir && w.node.kind != wasi.TypeDirectory:
		return nil, wasi.ENOTDIR
	}
	return w.node, wasi.Success
}

// Open implements [wasi.FS].
func (f *FS) Open(p string, mustDir bool, o wasi.OpenFlags) (wasi.File, wasi.Errno) {
	f.see("open", p)
	w, errno := f.walk(p, !o.NoFollow && !(o.Create && o.Exclusive))
	if errno != wasi.Success {
		return nil, errno
	}
	if w.node == nil {
		if !o.Create {
			return nil, wasi.ENOENT
		}
		if mustDir {
			return nil, wasi.EISDIR
		}
		w.node = f.newNode(wasi.TypeRegular)
		w.dir.children[w.name] = w.node
	} else if errno := f.mayOpen(w.node, mustDir, o); errno != wasi.Success {
		return nil, errno
	}
	if o.Trunc {
		w.node.data = nil
	}
	f.Opened++
	return &file{fs: f, node: w.node, flags: o}, wasi.Success
}

func (f *FS) mayOpen(n *node, mustDir bool, o wasi.OpenFlags) wasi.Errno {
	isDir := n.kind == wasi.TypeDirectory
	switch {
	case o.Create && o.Exclusive:
		return wasi.EEXIST
	case n.kind == wasi.TypeSymlink && (o.Directory || mustDir):
		return wasi.ENOTDIR
	case n.kind == wasi.TypeSymlink:
		return wasi.ELOOP
	case !isDir && (mustDir || o.Directory):
		return wasi.ENOTDIR
	case isDir && (o.Write || o.Trunc || o.Create):
		return wasi.EISDIR
	}
	return wasi.Success
}

// Stat implements [wasi.FS].
func (f *FS) Stat(p string, mustDir, follow bool) (wasi.Stat, wasi.Errno) {
	f.see("stat", p)
	n, errno := f.lookup(p, mustDir, follow)
	if errno != wasi.Success {
		return wasi.Stat{}, errno
	}
	return n.stat(), wasi.Success
}

// SetTimes implements [wasi.FS].
func (f *FS) SetTimes(p string, mustDir, follow bool, t wasi.Times) wasi.Errno {
	f.see("settimes", p)
	n, errno := f.lookup(p, mustDir, follow)
	if errno != wasi.Success {
		return errno
	}
	return f.setTimes(n, t)
}

func (f *FS) setTimes(n *node, t wasi.Times) wasi.Errno {
	f.now++
	set := func(at *int64, to int64, omit, now bool) {
		switch {
		case now:
			*at = f.now
		case !omit:
			*at = to
		}
	}
	set(&n.at, t.Atim, t.OmitAtim, t.NowAtim)
	set(&n.mt, t.Mtim, t.OmitMtim, t.NowMtim)
	return wasi.Success
}

func (n *node) stat() wasi.Stat {
	st := wasi.Stat{
		Dev: 1, Ino: n.ino, Nlink: n.nlink, Type: n.kind, Size: uint64(len(n.data)), Atim: n.at, Mtim: n.mt,
		Ctim: n.mt,
	}
	if n.kind == wasi.TypeSymlink {
		st.Size = uint64(len(n.target))
	}
	return st
}

func (n *node) names() []string {
	out := make([]string, 0, len(n.children))
	for name := range n.children {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
