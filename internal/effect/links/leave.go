package links

import "strings"

// Leaves reports whether what lies at from, with all below it, would leave the
// bound path at when it lay at to, or had that name too: what lies within at stays
// there, and what holds at, or comes to hold it, lies where it is.
func Leaves(at, from, to string) bool {
	return Within(from, at) && !Within(to, at) || beneath(at, from) || beneath(at, to)
}

// Within reports whether a clean path is dir or lies below it.
func Within(p, dir string) bool {
	rest, ok := strings.CutPrefix(p, dir)
	return ok && (rest == "" || rest[0] == '/' || dir == "/")
}

func beneath(p, dir string) bool { return p != dir && Within(p, dir) }
