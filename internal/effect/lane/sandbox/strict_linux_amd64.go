package sandbox

import "golang.org/x/sys/unix"

func ofArchitecture() []uint32 {
	return []uint32{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL,
		unix.SYS_KEXEC_FILE_LOAD,
	}
}

func modeCallsOfArchitecture() []modeCall {
	return []modeCall{
		{"chmod", unix.SYS_CHMOD, 1, -1},
		{"creat", unix.SYS_CREAT, 1, -1},
		{"mknod", unix.SYS_MKNOD, 1, -1},
		{"open", unix.SYS_OPEN, 2, 1},
	}
}
