package sandbox

import "golang.org/x/sys/unix"

const (
	sysMkdir     = unix.SYS_MKDIRAT
	sysFutimesat = -1
)

// movingCallsOfArchitecture are the older names of the same calls.
func movingCallsOfArchitecture() []brokeredCall {
	return []brokeredCall{{call: unix.SYS_RENAMEAT, do: moves([4]int{0, 1, 2, 3}, nofollow, renames)}}
}

func changingCallsOfArchitecture() []brokeredCall { return nil }
