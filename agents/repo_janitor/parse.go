package main

import (
	"strconv"
	"strings"
)

// A branch is a local branch.
type branch struct {
	name      string
	committed int64 // when its last commit was made, seconds since 1970
	days      int64 // older than the newest of all branches
	current   bool
	merged    bool // into HEAD
}

// parseBranches reads lines of name, tab, seconds, tab and "*" or a blank.
func parseBranches(text string) []branch {
	var list []branch
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || fields[0] == "" {
			continue
		}
		seconds, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		list = append(list, branch{name: fields[0], committed: seconds, current: fields[2] == "*"})
	}
	return list
}

// A change is a path that differs from what is committed.
type change struct{ kind, path string }

// parseStatus reads `git status --porcelain=v1 -z`: two letters, a blank and a
// path; a path that was renamed is followed by the one it had.
func parseStatus(text string) []change {
	var list []change
	entries := strings.Split(text, "\x00")
	for i := 0; i < len(entries); i++ {
		e := entries[i]
		if len(e) < 4 || e[2] != ' ' {
			continue
		}
		list = append(list, change{kindOf(e[0], e[1]), e[3:]})
		if e[0] == 'R' || e[0] == 'C' {
			i++
		}
	}
	return list
}

// kindOf says what the letters for index and work tree mean together.
func kindOf(index, tree byte) string {
	switch {
	case index == '?':
		return "untracked"
	case index == 'U', tree == 'U', index == 'A' && tree == 'A', index == 'D' && tree == 'D':
		return "conflict"
	case tree == ' ':
		return "staged"
	case tree == 'D':
		return "deleted"
	}
	return "changed"
}

// A sized file is one that is committed.
type sized struct {
	path  string
	bytes int64
}

// parseTree reads `git ls-tree -r -l -z`: mode, type, object and size by
// blanks, a tab, a path. What has no size is a submodule.
func parseTree(text string) []sized {
	var list []sized
	for e := range strings.SplitSeq(text, "\x00") {
		head, path, ok := strings.Cut(e, "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 4 || fields[1] != "blob" {
			continue
		}
		if n, err := strconv.ParseInt(fields[3], 10, 64); err == nil && n >= 0 {
			list = append(list, sized{path, n})
		}
	}
	return list
}

// A marked file is one in which something was left for later.
type marked struct {
	path   string // relative to the checkout
	counts map[string]int
}

// parseMarks reads lines of path, NUL, word.
func parseMarks(text, repo string) []marked {
	var list []marked
	at := map[string]int{}
	for text != "" {
		path, rest, ok := strings.Cut(text, "\x00") // a path may have a line's end in it
		if !ok {
			break
		}
		var word string
		word, text, _ = strings.Cut(rest, "\n")
		path = strings.TrimPrefix(strings.TrimPrefix(path, repo), "/")
		i, known := at[path]
		if !known {
			i = len(list)
			at[path], list = i, append(list, marked{path, map[string]int{}})
		}
		list[i].counts[word]++
	}
	return list
}
