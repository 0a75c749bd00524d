package main

import (
	"fmt"
	"os"
)

// selfPath is the file of this program, for what it starts itself again as.
func selfPath() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding rlp's own file: %w", err)
	}
	if _, err := os.Stat(path); err != nil { // it was removed, or never had a name
		path = "/proc/self/exe"
	}
	return path, nil
}
