package sandbox

import "golang.org/x/sys/unix"

// ofArchitecture are the calls that this architecture alone has.
func ofArchitecture() []uint32 { return []uint32{unix.SYS_KEXEC_FILE_LOAD} }

// modeCallsOfArchitecture are those that it alone has: none.
func modeCallsOfArchitecture() []modeCall { return nil }
