// Package places says how what lies on the host is named to somebody who does not
// operate it: a file of the home by where it is in it, the value of a placeholder by
// its {name}, and what a link leads to as it was written.
//
// Its law: a path is a value until it is known who reads it. What is said of runs
// keeps paths, capabilities and places in files apart from the words around them, and
// [Names] renders each by what it is. No text is rewritten.
package places

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// Names are how places of one host are named. Nil names each by its path, as to who
// operates.
type Names struct {
	home  []string
	known []known // the longest path first
	// written says that paths of the home are told as they are.
	written bool
	// hidden says that it is not known what placeholders stand for: no path is told
	// but those of the home.
	hidden bool
}

type known struct{ path, name string }

// mostKnown is how many values of placeholders are remembered. Beyond them it is not
// known what is one, and none is told.
const mostKnown = 1024

// Of names the files of a home, whose path may be written in several ways.
func Of(home ...string) *Names { return &Names{home: home} }

// With is n that names path, and what lies below it, by name, unless it names it
// otherwise already.
func (n *Names) With(path, name string) *Names {
	if n == nil || path == "" {
		return n
	}
	k := known{path, name}
	at, is := slices.BinarySearchFunc(n.known, k, func(a, b known) int {
		return cmp.Or(len(b.path)-len(a.path), strings.Compare(a.path, b.path))
	})
	if is {
		return n
	}
	if len(n.known) >= mostKnown {
		return n.Hide()
	}
	with := *n
	with.known = slices.Insert(slices.Clone(n.known), at, k)
	return &with
}

// AsWritten is n for what is said of a bundle that somebody sent who does not operate:
// its paths may be guesses, of which it is not told whether they are in the home.
func (n *Names) AsWritten() *Names {
	written := *n
	written.written = true
	return &written
}

// Hide is n when it is not known what placeholders stand for.
func (n *Names) Hide() *Names {
	hidden := *n
	hidden.hidden = true
	return &hidden
}

// Param is n that names the value of a placeholder by its name.
func (n *Names) Param(name, value string) *Names { return n.With(value, "{"+name+"}") }

// Home is the folder of the home; "" where n tells all.
func (n *Names) Home() string {
	if n == nil || len(n.home) == 0 {
		return ""
	}
	return n.home[0]
}

// Path is the path of something of the host.
func (n *Names) Path(path string) string {
	if n == nil || !strings.HasPrefix(path, "/") {
		return path
	}
	for _, k := range n.known {
		if rest, is := Below(path, k.path); is {
			return k.name + rest
		}
	}
	if name, is := n.inHome(path); is && !n.written {
		return name
	}
	if n.hidden && path != "/" {
		return "{?}"
	}
	return path
}

func (n *Names) inHome(path string) (name string, is bool) {
	for _, dir := range n.home {
		if rest, is := Below(path, dir); is {
			return cmp.Or(strings.TrimPrefix(rest, "/"), "."), true
		}
	}
	return "", false
}

// File is the name of a file that operators or authors of bundles write, or of a flag.
// Of one outside of the home the last element is told.
func (n *Names) File(file string) string {
	if n == nil {
		return file
	}
	if flag, text, is := strings.Cut(file, " "); is && strings.HasPrefix(flag, "--") {
		return flag + " " + n.Capability(text)
	}
	if name, is := n.inHome(file); is || !filepath.IsAbs(file) {
		return cmp.Or(name, file)
	}
	return filepath.Base(file)
}

// Pos is a place in such a file.
func (n *Names) Pos(p caps.Pos) caps.Pos {
	p.File = n.File(p.File)
	return p
}

// Capability is a capability string, whose scope may be a path.
func (n *Names) Capability(text string) string {
	if at := strings.IndexByte(text, '/'); n != nil && at >= 0 {
		return text[:at] + n.Path(text[at:])
	}
	return text
}

// Capabilities are capability strings.
func (n *Names) Capabilities(list []string) []string {
	if n == nil || list == nil {
		return list
	}
	told := make([]string, len(list))
	for i := range list {
		told[i] = n.Capability(list[i])
	}
	return told
}

// Holds reports whether a text, such as that of a file, names a place that n does not
// tell.
func (n *Names) Holds(text string) bool {
	in := func(path string) bool { return strings.Contains(text, path) }
	return n != nil && (slices.ContainsFunc(n.home, in) ||
		slices.ContainsFunc(n.known, func(k known) bool { return in(k.path) }))
}

// Layer is a layer whose entries name their files so. Its scopes are as they are, for
// it still decides.
func (n *Names) Layer(l *caps.Layer) *caps.Layer {
	if n == nil {
		return l
	}
	c := *l
	c.Allow, c.Deny, c.Spare = n.Entries(l.Allow), n.Entries(l.Deny), n.Entries(l.Spare)
	c.Bounds, c.Leases = slices.Clone(l.Bounds), slices.Clone(l.Leases)
	for i := range c.Bounds {
		c.Bounds[i].Pos = n.Pos(c.Bounds[i].Pos)
	}
	for i := range c.Leases {
		c.Leases[i].Pos = n.Pos(c.Leases[i].Pos)
	}
	return &c
}

// Entries are entries that name their files so.
func (n *Names) Entries(list []caps.Entry) []caps.Entry {
	if n == nil {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Pos = n.Pos(list[i].Pos)
	}
	return list
}

// Below is what comes behind dir in a path that is dir or lies below it.
func Below(path, dir string) (rest string, is bool) {
	rest, is = strings.CutPrefix(path, dir)
	return rest, is && (rest == "" || rest[0] == '/')
}
