package program

import (
	"fmt"
	"path/filepath"
	"strings"

	"runloop.dev/rlp/internal/effect/lane"
)

// Find finds the program that a command names, in the current folder or where PATH
// has it: its file, without links. What lies in the closed folder is none.
func Find(name, dir, path, closed string) (file string, err error) {
	tries := []string{name}
	if !strings.Contains(name, "/") {
		tries, err = nil, fmt.Errorf("no folder of PATH has such a program")
		for _, at := range filepath.SplitList(path) {
			if filepath.IsAbs(at) {
				tries = append(tries, filepath.Join(at, name))
			}
		}
	}
	for _, at := range tries {
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		found, why := lane.Find(filepath.Clean(at), closed)
		if why == nil {
			return found.File, nil
		}
		if strings.Contains(name, "/") {
			err = why
		}
	}
	return "", fmt.Errorf("%s: %w", name, err)
}
