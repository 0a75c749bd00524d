package main

import (
	"fmt"
	"os"
	"strings"
)

// Explanations are lines of: file, function, what the mutant does, which of
// those that do the same (from 1), and why no test can tell it from the source.
type explanations map[string]string

func readExplanations(path string) (explanations, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	e := explanations{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 5 || f[4] == "" {
			return nil, fmt.Errorf("%s:%d: %d fields, not file, function, mutant, number, reason", path, n, len(f))
		}
		key := strings.Join(f[:4], "\t")
		if _, ok := e[key]; ok {
			return nil, fmt.Errorf("%s:%d: explained twice", path, n)
		}
		e[key] = f[4]
	}
	return e, nil
}
