package program

import (
	"path"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/connect"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/run"
)

// Folders are what a run may do with the operator's files, as far as a program
// can be given it: a folder where it may write is one where it may read, write
// and delete. What a lease leaves a number of uses of, a program is not given:
// nobody counts what it does. closed are [Closed] of the run's layers.
func Folders(set caps.Set, closed []lane.Folder) []lane.Folder {
	counted := set.Counted(caps.FS)
	list := make([]lane.Folder, 0, set.NumScopes(caps.FS))
	for id := range int32(set.NumScopes(caps.FS)) {
		f := lane.Folder{Path: set.Scope(caps.FS, id)}
		has := func(m caps.Mode) bool { return set.Holds(id, caps.FS, m) && !counted(id, m) }
		if has(caps.Read) {
			f.Access = lane.ReadOnly
			if has(caps.Write) && has(caps.Delete) {
				f.Access = lane.ReadWrite
			}
		}
		list = append(list, f)
	}
	return append(list, closed...)
}

// Closed is what layers deny by name among what programs are shown of the system
// without a grant, for no set holds that; and a folder of the system that they deny as
// a whole, "" for none: no program starts without it.
func Closed(layers []*caps.Layer) (list []lane.Folder, whole string) {
	for _, l := range layers {
		for _, e := range l.Deny {
			p := e.Grant.Scope
			switch {
			case e.Grant.Family != caps.FS || !e.Grant.Modes.Has(caps.Read) || !lane.IsSystem(p):
			case !lane.IsSystem(path.Dir(p)):
				whole = p
			default:
				list = append(list, lane.Folder{Path: p})
			}
		}
	}
	return list, whole
}

// Elsewhere denies by their other paths what other mounts show of what a layer denies.
func Elsewhere(l *caps.Layer) error {
	mounts, err := lane.Mounts()
	if err != nil {
		return err
	}
	for _, e := range slices.Clone(l.Deny) {
		for _, other := range mounts.Elsewhere(e.Grant.Scope) {
			if !slices.ContainsFunc(l.Spare, func(s caps.Entry) bool { return isWithin(other, s.Grant.Scope) }) {
				e.Grant.Scope = other
				l.Deny = append(l.Deny, e)
			}
		}
	}
	return nil
}

// Executables are the programs that a run may start beside itself; nil: whatever it
// sees. What a lease leaves a number of uses of is none of them, as with files.
func Executables(set caps.Set) *lane.Executables {
	if !connect.MayExecute(set) {
		return &lane.Executables{}
	}
	counted := set.Counted(caps.Exec)
	var holds, not []string
	all := false
	for id := range int32(set.NumScopes(caps.Exec)) {
		name, held := set.Scope(caps.Exec, id), set.Holds(id, caps.Exec, 0) && !counted(id, 0)
		switch {
		case name == "*":
			all = held
		case held:
			holds = append(holds, name)
		default:
			not = append(not, name)
		}
	}
	switch {
	case !all:
		return &lane.Executables{Files: holds}
	case len(not) > 0:
		return &lane.Executables{Others: true, Files: not}
	}
	return nil
}

// Leased are the paths of files that a lease bounds.
func Leased(set caps.Set) []string {
	var list []string
	for _, l := range set.Leases() {
		if l.Grant.Family == caps.FS {
			list = append(list, l.Grant.Scope)
		}
	}
	return list
}

// LaneReport is what a report says of a lane: the word for each control.
func LaneReport(name string, controls lane.Controls) *run.Lane {
	r := &run.Lane{Name: name, Controls: make(map[string]string, len(controls))}
	for i, label := range controls {
		r.Controls[lane.Control(i).String()] = label.Level.String()
	}
	return r
}
