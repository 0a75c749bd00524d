package api

import "syscall"

// Bounds of connections: of each listener, of all together in descriptors of this
// process, and what is left beside them at least for the store, journals and runs.
const (
	mostConnections  = 4096
	fewestPlaces     = 8
	partOfFiles      = 2 // one in so many descriptors
	otherDescriptors = 64
	partOfSocket     = 4 // of all places, that of the socket
)

// Places are how many connections there may be at a time, at the socket and at
// the address. The descriptors of the process are what there is of; the runtime
// has raised their soft limit to the hard one.
func Places(descriptors uint64) (socket, address int) {
	all := min(descriptors/partOfFiles, descriptors-min(otherDescriptors, descriptors), partOfSocket*mostConnections)
	all = max(all, fewestPlaces)
	return int(all / partOfSocket), min(int(all-all/partOfSocket), mostConnections)
}

// Descriptors are how many this process may have open.
func Descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // signed on some systems
}
