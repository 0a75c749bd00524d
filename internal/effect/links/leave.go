package links

import (
	"slices"
	"strings"
)

// Leaves reports whether what lies at from, with all below it, would leave the
// bound path at when it lay at to, or had that name too: what lies within at stays
// there, and what holds at, or comes to hold it, lies where it is.
func Leaves(at, from, to string) bool {
	return Within(from, at) && !Within(to, at) || beneath(at, from) || beneath(at, to)
}

// Crosses reports whether what lies at from, with all below it, would lie outside of
// the folders when it lay at to, and came from one of them; or, where it is linked,
// whether one file would have a name in them and one outside.
func Crosses(folders []string, from, to string, linked bool) bool {
	leaves := slices.ContainsFunc(folders, func(dir string) bool { return Within(from, dir) || Within(dir, from) })
	enters := slices.ContainsFunc(folders, func(dir string) bool { return Within(to, dir) })
	return leaves && !enters || linked && enters && !leaves
}

// Within reports whether a clean path is dir or lies below it.
func Within(p, dir string) bool {
	rest, ok := strings.CutPrefix(p, dir)
	return ok && (rest == "" || rest[0] == '/' || dir == "/")
}

func beneath(p, dir string) bool { return p != dir && Within(p, dir) }
