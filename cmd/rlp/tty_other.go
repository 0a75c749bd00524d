//go:build !linux

package main

import "os"

// isTTY takes any character device for a terminal, except the null device.
func isTTY(f *os.File) bool { return f.Name() != os.DevNull }
