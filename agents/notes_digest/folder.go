package main

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// followMax bounds how many included files one run reads.
const followMax = 64

// depthMax bounds how deep folders are walked.
const depthMax = 32

// A collector gathers a digest from a folder of notes.
type collector struct {
	disk   disk
	root   string // the folder of notes
	out    string // not read, though it may lie inside root
	digest *digest
	known  []string        // paths of the notes in the folder
	seen   map[string]bool // what is read anyway or was tried
	tried  int             // how many includes were
}

// collect reads every note beneath root, in the order of their names, and what
// they include.
func collect(d disk, root, out string) *digest {
	c := collector{
		disk: d, root: path.Clean(root), out: path.Clean(out), digest: &digest{byMail: map[string]int{}},
		seen: map[string]bool{},
	}
	c.walk(c.root, 0)
	for _, p := range c.known {
		if text, ok := c.read(p); ok {
			c.digest.notes++
			c.add(c.name(p), path.Dir(p), text)
		}
	}
	c.digest.sort()
	return c.digest
}

func (c *collector) walk(dir string, depth int) {
	entries, err := c.disk.ReadDir(dir)
	if err != nil {
		c.digest.problem("list", c.name(dir), err)
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."), p == c.out, p == path.Join(c.out, "digest.md"):
		case e.IsDir() && depth == depthMax:
			c.digest.problem("list", c.name(p), errors.New("too deep"))
		case e.IsDir():
			c.walk(p, depth+1)
		case e.Type()&^fs.ModeSymlink != 0: // a pipe, a socket, a device
		case isNote(e.Name()):
			c.known = append(c.known, p)
			c.seen[p] = true
		}
	}
}

func isNote(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".md" || ext == ".markdown"
}

// read reads and decodes one note; what goes wrong is in the digest.
func (c *collector) read(p string) (string, bool) {
	content, err := c.disk.ReadFile(p)
	if err != nil {
		c.digest.problem("read", c.name(p), err)
		return "", false
	}
	text, remark := decode(content)
	if remark != "" {
		c.digest.remarks = append(c.digest.remarks, c.name(p)+": "+remark)
	}
	return text, true
}

// name is how the digest calls a file: relative to the folder if it is in it.
func (c *collector) name(p string) string {
	if rel, ok := strings.CutPrefix(p, c.root+"/"); ok {
		return clean(rel)
	}
	return clean(p)
}

// add takes one text apart and follows what it includes.
func (c *collector) add(name, dir, text string) {
	n := parse(name, text)
	c.digest.add(n)
	for _, inc := range n.includes {
		c.follow(name, dir, inc)
	}
}

// follow reads an included file as a part of the note that names it. The name
// comes from the note, so from whoever wrote into it: it may be any path at all,
// and it is the host's policy, not this function, that keeps the agent from
// reading what it was not granted.
func (c *collector) follow(from, dir string, inc include) {
	p := inc.target
	if !path.IsAbs(p) {
		p = path.Join(dir, p)
	}
	p = path.Clean(p)
	if c.seen[p] || c.seen[p+".md"] || c.tried == followMax {
		return
	}
	c.seen[p] = true
	c.tried++
	content, err := c.disk.ReadFile(p)
	if err != nil {
		c.digest.problem("include", clean(p)+" (named in "+place(from, inc.line)+")", err)
		return
	}
	c.digest.included = append(c.digest.included, clean(p))
	text, _ := decode(content)
	c.add(c.name(p), path.Dir(p), text)
}
