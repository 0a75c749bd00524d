package program

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"runloop.dev/rlp/internal/effect/lane"
)

// What is looked for below a folder that a program may write: so many folders down, in
// so many of them, each with so many entries.
const (
	searchDepth   = 3
	searchFolders = 256
	searchEntries = 4096
)

// Leads is how it is found what a path leads to.
type Leads struct {
	// Resolve is where an absolute path leads, and the links on the way.
	Resolve func(path string) (end string, links []string, err error)
	// Home is the operator's.
	Home string
}

// Settled are the folders with what protected names lead to in them, read-only: by
// links that are there, and in git by the files and settings that say where its folder,
// its hooks and its further settings lie. It is looked for in what may be written, in
// the folders above that, and as far below as the bounds go.
func (by Leads) Settled(folders []lane.Folder) []lane.Folder {
	s := search{Leads: by, folders: slices.Clone(folders), read: map[string]bool{}}
	for _, name := range Protected() {
		if !strings.Contains(name, "*") { // those of git's worktrees are seen to there
			s.names = append(s.names, strings.Split(name, "/"))
		}
	}
	for _, f := range folders {
		if f.Access != lane.ReadWrite || f.Own {
			continue
		}
		for dir := filepath.Dir(f.Path); !s.read[dir]; dir = filepath.Dir(dir) {
			s.read[dir] = true
			s.look(dir, nil)
		}
		s.below(f.Path)
	}
	return s.folders
}

// A search looks for what protected names lead to.
type search struct {
	Leads
	folders []lane.Folder
	names   [][]string // in parts
	read    map[string]bool
}

// below looks in a folder and in those below it, the nearest first.
func (s *search) below(top string) {
	level, left := []string{top}, searchFolders
	for range searchDepth + 1 {
		var next []string
		for _, dir := range level {
			if left--; left < 0 {
				return
			}
			has := map[string]bool{}
			for _, e := range entries(dir) {
				has[e.Name()] = true
				if e.IsDir() && e.Name() != ".git" && e.Name() != "node_modules" {
					next = append(next, filepath.Join(dir, e.Name()))
				}
			}
			s.look(dir, has)
		}
		level = next
	}
}

// entries are those of a folder, as far as they are looked at.
func entries(dir string) []fs.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.ReadDir(searchEntries)
	return list
}

// look finds what the protected names in a folder lead to; has are its entries, nil
// where they are not known.
func (s *search) look(dir string, has map[string]bool) {
	for _, parts := range s.names {
		if has == nil || has[parts[0]] {
			at := filepath.Join(dir, filepath.Join(parts...))
			if end, links, err := s.Resolve(at); err == nil && end != at {
				s.keep(append(links, end)...)
			}
		}
	}
	if has == nil || has[".git"] {
		s.git(dir)
	}
}

// git finds what the files of a worktree's git name.
func (s *search) git(tree string) {
	at := filepath.Join(tree, ".git")
	info, err := os.Lstat(at)
	if err != nil {
		return
	}
	if to, ok := strings.CutPrefix(text(at), "gitdir:"); ok {
		at = s.gitFolder(tree, to)
	} else if info.Mode()&fs.ModeSymlink != 0 {
		at = s.gitFolder(tree, ".git")
	}
	common := at
	if to := text(filepath.Join(at, "commondir")); to != "" {
		common = s.gitFolder(at, to)
	}
	for _, file := range []string{
		filepath.Join(common, "config"), filepath.Join(at, "config.worktree"), filepath.Join(s.Home, ".gitconfig"),
		filepath.Join(s.Home, ".config", "git", "config"),
	} {
		s.settings(file, tree)
	}
}

// gitFolder keeps what git runs in a folder that is named in another one.
func (s *search) gitFolder(from, named string) string {
	at := s.within(from, named)
	for _, name := range ofGit() {
		s.lead(filepath.Join(at, name))
	}
	for _, e := range entries(filepath.Join(at, "worktrees")) {
		for _, name := range append(ofGit(), "gitdir") {
			s.lead(filepath.Join(at, "worktrees", e.Name(), name))
		}
	}
	return at
}

// settings keeps what a file of git's settings says that is read or run beside it.
func (s *search) settings(file, tree string) {
	if s.read[tree+"\x00"+file] {
		return
	}
	s.read[tree+"\x00"+file] = true
	section := ""
	for line := range strings.Lines(text(file)) {
		line = strings.TrimSpace(line)
		if head, ok := strings.CutPrefix(line, "["); ok {
			head, line, _ = strings.Cut(head, "]")
			section, _, _ = strings.Cut(head, " ")
		}
		key, value, _ := strings.Cut(line, "=")
		value = setting(value)
		switch strings.ToLower(section + "." + strings.TrimSpace(key)) {
		case "include.path", "includeif.path":
			at := s.within(filepath.Dir(file), value)
			s.lead(at)
			s.settings(at, tree)
		case "core.hookspath":
			s.lead(s.within(tree, value))
		}
	}
}

// setting is a value as git reads it, but for what a path seldom has.
func setting(value string) string {
	value = strings.TrimSpace(value)
	if quoted, ok := strings.CutPrefix(value, `"`); ok {
		value, _, _ = strings.Cut(quoted, `"`)
		return value
	}
	if end := strings.IndexAny(value, "#;"); end >= 0 {
		value = value[:end]
	}
	return strings.TrimSpace(value)
}

// within is a path as it is meant in a folder.
func (s *search) within(dir, named string) string {
	named = strings.TrimSpace(named)
	if rest, ok := strings.CutPrefix(named, "~/"); ok {
		dir, named = s.Home, rest
	}
	if filepath.IsAbs(named) {
		return filepath.Clean(named)
	}
	return filepath.Join(dir, named)
}

// lead keeps what is at a path, and the links on the way.
func (s *search) lead(at string) {
	if end, links, err := s.Resolve(at); err == nil {
		s.keep(append(links, end)...)
	}
}

// keep makes these read-only, where they may be written.
func (s *search) keep(paths ...string) {
	for _, p := range paths {
		holds := -1
		for i, f := range s.folders {
			if isWithin(p, f.Path) && (holds < 0 || len(f.Path) >= len(s.folders[holds].Path)) {
				holds = i
			}
			if f.Access == lane.ReadWrite && !f.Own && isWithin(f.Path, p) {
				s.folders[i].Access = lane.ReadOnly
			}
		}
		if holds >= 0 && s.folders[holds].Access == lane.ReadWrite && !s.folders[holds].Own {
			s.folders = append(s.folders, lane.Folder{Path: p, Access: lane.ReadOnly})
		}
	}
}

// text is what a regular file begins with; "" of anything else.
func text(path string) string {
	const most = 1 << 20
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO is not waited for
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, _ := io.ReadAll(io.LimitReader(f, most))
	return string(data)
}
