package wasi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
)

// pathArgs are the arguments of each function that take a path, by the place of
// the pointer; the length stands behind it.
var pathArgs = map[string][]int{
	"path_create_directory": {1}, "path_filestat_get": {2}, "path_filestat_set_times": {2}, "path_link": {2, 5},
	"path_open":     {2},
	"path_readlink": {1}, "path_remove_directory": {1}, "path_rename": {1, 4}, "path_symlink": {0, 3},
	"path_unlink_file": {1},
}

// A call that names what can be no path is told, once, by its function and its
// text, whichever of its paths that is; one that names a path is not.
func TestPathsThatCanBeNoneAreTold(t *testing.T) {
	for name, places := range pathArgs {
		for _, place := range places {
			for _, text := range []string{"", "a\x00b", "a\xff", strings.Repeat("a", 4096), "../x", "x"} {
				var told []string
				g := newGuest(t, wasi.Config{OnReject: func(op string, text []byte) { told = append(told, op+" "+string(text)) }})
				args := make([]uint64, len(g.funcs[name].Params))
				for i, at := range places {
					args[at], args[at+1] = g.put(atPath+uint64(i)*16, "x")
				}
				args[place], args[place+1] = g.put(page-8192, text)
				for _, dir := range map[string][]int{"path_symlink": {2}, "path_link": {0, 4}, "path_rename": {0, 3}}[name] {
					args[dir] = 3
				}
				if name != "path_symlink" {
					args[0] = 3
				}
				args[len(args)-1] += map[string]uint64{"path_open": atOut, "path_filestat_get": atOut, "path_readlink": atOut}[name]
				errno := g.call(name, args...)
				var want []string
				if text != "x" && (text != "../x" || name != "path_symlink" || place != 0) { // a link's text may climb
					want = []string{name + " " + text}
				}
				if !slices.Equal(told, want) || want != nil && errno == wasi.Success {
					t.Errorf("%s with %.8q at %d: %v, told %.40q", name, text, place, errno, told)
				}
			}
		}
	}
	g := newGuest(t, wasi.Config{})
	for name := range maps.Keys(g.funcs) {
		if _, known := pathArgs[name]; strings.HasPrefix(name, "path_") && !known {
			t.Errorf("%s is not tried", name)
		}
	}
}
