package mcpclient

import "bytes"

// A Change is one tool that a server says something else of.
type Change struct {
	Kind   string `json:"kind"` // "added", "removed" or "changed"
	Tool   string `json:"tool"`
	Before *Tool  `json:"before,omitempty"`
	After  *Tool  `json:"after,omitempty"`
}

// Diff is what makes the sorted list after out of before, by name.
func Diff(before, after []Tool) []Change {
	list := []Change{}
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].Name < after[0].Name:
			list = append(list, Change{"removed", before[0].Name, &before[0], nil})
			before = before[1:]
		case len(before) == 0 || after[0].Name < before[0].Name:
			list = append(list, Change{"added", after[0].Name, nil, &after[0]})
			after = after[1:]
		default:
			if b, a := before[0], after[0]; b.Description != a.Description || !bytes.Equal(b.Schema, a.Schema) {
				list = append(list, Change{"changed", a.Name, &before[0], &after[0]})
			}
			before, after = before[1:], after[1:]
		}
	}
	return list
}
