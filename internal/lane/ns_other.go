//go:build !linux

package lane

// ConfineName is the argument by which rlp is told to be [Confined].
const ConfineName = "confine"

// Confined is for Linux.
func Confined() int { return 125 }

func newNS(Config) (Lane, error) {
	return nil, &UnsupportedError{Lane: "ns", Why: "namespaces need Linux"}
}

func newBwrap(Config) (Lane, error) {
	return nil, &UnsupportedError{Lane: "bwrap", Why: "bubblewrap needs Linux"}
}
