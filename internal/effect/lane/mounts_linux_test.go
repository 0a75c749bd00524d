package lane

import (
	"slices"
	"testing"
)

// Where a path is shown besides: whole, in part, or in another folder; not on another
// file system, and not by its own name.
func TestWhereMountsShowAPath(t *testing.T) {
	table := MountTable{
		{"8:1", "/", "/"},
		{"0:5", "/", "/none/proc"},
		{"8:1", "/none/user", "/none/alias"},
		{"8:1", "/none/user/home/secrets", "/none/only"},
		{"8:1", "/", "/none/all"},
		{"8:2", "/none/user", "/none/other"},
		{"8:1", "/none/username", "/none/beside"},
		{"8:1", "/none/user/home/secrets", "/none/user/home/again"},
		{"8:2", "/vol/data", "/none/data"},
		{"8:2", "/vol", "/none/vol"},
		{"8:1", "/none/user", "/none/covered"},
		{"0:9", "/", "/none/covered"},
	}
	for p, want := range map[string][]string{
		"/none/user/home": {"/none/alias/home", "/none/only", "/none/all/none/user/home", "/none/covered/home"},
		"/none/user/home/secrets/k": {
			"/none/alias/home/secrets/k", "/none/only/k", "/none/all/none/user/home/secrets/k",
			"/none/user/home/again/k", "/none/covered/home/secrets/k",
		},
		"/none/data/k": {"/none/vol/data/k"},
		"/":            nil,
	} {
		if got := table.Elsewhere(p); !slices.Equal(got, want) {
			t.Errorf("%s: %q", p, got)
		}
	}
	if list, err := Mounts(); err != nil || len(list) == 0 {
		t.Errorf("%v %v", list, err)
	}
}
