//go:build !linux

package lane

// Lane implements [Maker]. Containers are started on Linux: elsewhere they run in a
// machine of their own, which does not have the agent's files.
func (ContainerConfig) Lane(Config) (Lane, error) {
	return nil, &UnsupportedError{Lane: "container", Why: "it needs Linux"}
}

// CanonicalBelow has no roots of containers to look into here.
func CanonicalBelow(_, written string) (canonical string, missing bool, err error) {
	return written, true, nil
}
