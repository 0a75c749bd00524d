//go:build !linux

package main

import (
	"context"
	"errors"
	"os"
)

// isTTY takes any character device for a terminal, except the null device.
func isTTY(f *os.File) bool { return f.Name() != os.DevNull }

// readHidden has no word for this system's terminals: what would be shown is
// not read.
func readHidden(context.Context, *os.File) ([]byte, error) {
	return nil, errors.New("typing cannot be hidden on this system; give the value on stdin")
}

// columnsOf is how wide a terminal is; 0: it does not say.
func columnsOf(*os.File) int { return 0 }
