package main

import "syscall"

const procMagic = 0x9fa0 // PROC_SUPER_MAGIC

// ofProcesses reports whether a folder is the kernel's own account of processes.
func ofProcesses(dir string) bool {
	var st syscall.Statfs_t
	return syscall.Statfs(dir, &st) == nil && st.Type == procMagic
}
