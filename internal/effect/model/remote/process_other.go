//go:build !linux

package remote

import "syscall"

// attributes keep the signals of a terminal from the child. It ends when its
// standard input does.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func inheritNothing() {}
