package runlog

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Agents are the agents that the logs of a folder tell of, sorted. What cannot be
// read tells of none.
func Agents(dir string) []string {
	found := map[string]bool{}
	names, _ := Files(dir) // none is nothing
	for _, name := range names {
		agentsOf(filepath.Join(dir, name), found)
	}
	return slices.Sorted(maps.Keys(found))
}

func agentsOf(path string, found map[string]bool) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"msg":"run_start"`)) {
			continue
		}
		// Within a string of the line the quotes would be escaped.
		if _, rest, is := bytes.Cut(lines.Bytes(), []byte(`"agent":"`)); is {
			name, _, _ := bytes.Cut(rest, []byte(`"`))
			found[string(name)] = true
		}
	}
}
