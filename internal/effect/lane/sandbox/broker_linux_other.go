//go:build linux && !amd64 && !arm64

package sandbox

import "golang.org/x/sys/unix"

const (
	sysMkdir     = unix.SYS_MKDIRAT
	sysFutimesat = -1
)

// movingCallsOfArchitecture is empty where there is no filter.
func movingCallsOfArchitecture() []brokeredCall { return nil }

// changingCallsOfArchitecture is empty where there is no filter.
func changingCallsOfArchitecture() []brokeredCall { return nil }
