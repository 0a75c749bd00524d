package sandbox

import "golang.org/x/sys/unix"

func ofArchitecture() []uint32 { return []uint32{unix.SYS_KEXEC_FILE_LOAD} }

func modeCallsOfArchitecture() []modeCall { return nil }
