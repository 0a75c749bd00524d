//go:build !linux

package container

import "runloop.dev/rlp/internal/effect/lane"

// Lane implements [lane.Maker]. Containers are started on Linux: elsewhere they run in a
// machine of their own, which does not have the agent's files.
func (Config) Lane(lane.Config) (lane.Lane, error) {
	return nil, &lane.UnsupportedError{Lane: "container", Why: "it needs Linux"}
}

// CanonicalBelow has no roots of containers to look into here.
func CanonicalBelow(_, written string) (canonical string, missing bool, err error) {
	return written, true, nil
}
