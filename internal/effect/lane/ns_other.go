//go:build !linux

package lane

func newNS(Config) (Lane, error) {
	return nil, &UnsupportedError{Lane: "ns", Why: "namespaces need Linux"}
}

func newBwrap(Config) (Lane, error) {
	return nil, &UnsupportedError{Lane: "bwrap", Why: "bubblewrap needs Linux"}
}
