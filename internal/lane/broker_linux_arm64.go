package lane

import "golang.org/x/sys/unix"

const (
	sysMkdir     = unix.SYS_MKDIRAT
	sysFutimesat = -1
)

// brokeredCallsOfArchitecture are the older names of the same calls.
func brokeredCallsOfArchitecture() []brokeredCall {
	return []brokeredCall{{unix.SYS_RENAMEAT, nil, moves([4]int{0, 1, 2, 3}, nofollow, func(_ *notice, from int, name string, to int, other string) error {
		return unix.Renameat2(from, name, to, other, 0)
	})}}
}
