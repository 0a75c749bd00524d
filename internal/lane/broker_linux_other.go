//go:build linux && !amd64 && !arm64

package lane

import "golang.org/x/sys/unix"

const (
	sysMkdir     = unix.SYS_MKDIRAT
	sysFutimesat = -1
)

// brokeredCallsOfArchitecture is empty where there is no filter.
func brokeredCallsOfArchitecture() []brokeredCall { return nil }
