package program

import (
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/lane"
)

// A Use is a path that a program used, and how.
type Use struct {
	Path   string
	How    string // in a word or two
	Write  bool   // it changed what is there, or what lies in the folder
	Denied bool
}

// A Learnt gathers what a program does that no record says. It decides nothing: what it
// is told has happened, or was refused, by the policy of the run alone.
type Learnt struct {
	Home string // of rlp, in which the program's own folders are
	File string // what is learnt is written there, and not by the program

	mu    sync.Mutex
	holds caps.Set
	uses  []Use
	known map[Use]bool
	made  map[string]int // names, by folder
	wrote string         // a file that it wrote and executed
}

// mostNames bounds the names that are told of what was made in one folder.
const mostNames = 3

// Kept are the files that the program cannot write.
func (l *Learnt) Kept() []string {
	if l == nil {
		return nil
	}
	return []string{l.File}
}

// begin says what the run holds.
func (l *Learnt) begin(holds caps.Set) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds, l.known, l.made = holds, map[Use]bool{}, map[string]int{}
}

// use takes in one use of a path; there says that the program sees such a thing.
func (l *Learnt) use(how byte, there bool, p string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p = path.Clean(p); !path.IsAbs(p) || p == "/" || lane.IsSystem(p) || isWithin(p, l.Home) ||
		slices.ContainsFunc([]string{"/proc", "/dev", "/sys"}, func(dir string) bool { return isWithin(p, dir) }) {
		return
	}
	u := Use{Path: p, Write: how == lane.Writes || how == lane.Makes}
	mode := caps.Read
	if u.Write {
		mode = caps.Write
	}
	if u.Denied = !l.holds.Check(caps.Request{Family: caps.FS, Mode: mode, Name: p}).Allow; u.Denied {
		if _, err := os.Lstat(p); err != nil || there && !u.Write || isWithin(p, "/tmp") {
			return // of nobody's files
		}
	}
	switch how {
	case lane.Makes:
		if u.Path = path.Dir(p); u.Path == "/" {
			return
		}
		u.How = "made or removed " + path.Base(p)
		if l.made[u.Path]++; l.made[u.Path] > mostNames {
			u.How = "made or removed others"
		}
	case lane.Writes:
		u.How = "wrote"
	case lane.Lists:
		u.How = "listed"
	default:
		u.How = "read"
	}
	if !l.known[u] && len(l.uses) < mostUses {
		l.known[u] = true
		l.uses = append(l.uses, u)
	}
}

const mostUses = 1 << 16

// asked is what decides about files that are executed; which of them the program may
// have written is kept.
func (l *Learnt) asked(decide func(file string, written bool) bool) func(file string, written bool) bool {
	return func(file string, written bool) bool {
		may := decide(file, written)
		if may && written {
			l.mu.Lock()
			l.wrote = file
			l.mu.Unlock()
		}
		return may
	}
}

// Wrote is a file that the program wrote and executed, "" if there was none.
func (l *Learnt) Wrote() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrote
}

// Uses are the uses, without those of what is not there any more: no policy can grant
// it by itself.
func (l *Learnt) Uses() []Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.uses), func(u Use) bool {
		_, err := os.Lstat(u.Path)
		return err != nil
	})
}

// leadsTo reports whether a set grants something that is there below a folder, so that a
// program is shown the folder, and nothing of it but that.
func leadsTo(holds caps.Set, dir string) bool {
	for id := range int32(holds.NumScopes(caps.FS)) {
		scope := holds.Scope(caps.FS, id)
		if !strings.HasPrefix(scope, dir+"/") || !holds.Holds(id, caps.FS, caps.Read) {
			continue
		}
		if info, err := os.Lstat(scope); err == nil && (info.IsDir() || info.Mode().IsRegular()) {
			return true
		}
	}
	return false
}
