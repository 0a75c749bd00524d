package guest_test

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/engine/guest/hostiletest"
)

// allocated is how many bytes f asks for.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What is claimed and not there is refused before anyone makes room for it, in
// memory that is of the order of the bytes that are there.
//
//rlp:holds K73
func TestClaimsAreRefusedBeforeTheEngine(t *testing.T) {
	for _, a := range hostiletest.Claims() {
		wasm := a.Bytes()
		var err error
		n := allocated(func() { err = guest.Check(guest.Config{Module: wasm, Name: "agent", Compiler: os.Executable}) })
		if !errors.Is(err, guest.ErrModule) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s (%s): %v", a.Name, a.What, err)
		}
		if n > 1<<20 {
			t.Errorf("%s: %d bytes were asked for", a.Name, n)
		}
	}
}

// A module that has too much of something is refused and told what, in memory
// that is linear in its bytes.
func TestBombsAreMeasuredBeforeTheEngine(t *testing.T) {
	want := map[string]string{
		"bomb_types":             "1000001 types, at most 100000 are allowed",
		"bomb_type_params":       "parameters and results in all types, at most 100000",
		"bomb_imports":           "100000 imports, at most 10000",
		"bomb_functions":         "500001 functions, at most 300000",
		"bomb_locals":            "locals in all functions, at most 4000000",
		"bomb_globals":           "1000000 globals, at most 100000",
		"bomb_exports":           "300001 exports, at most 100000",
		"bomb_tables":            "100000 tables, at most 8",
		"bomb_elements":          "500000 element segments, at most 100000",
		"bomb_element_items":     "elements in all segments, at most 1000000",
		"bomb_data":              "1000000 data segments, at most 100000",
		"bomb_names":             "5000000 names, at most 1000000",
		"bomb_names_locals":      "names, at most 1000000",
		"bomb_size":              "bytes, at most 67108864",
		"bomb_dead_blocks":       "more than 10000 blocks within each other",
		"bomb_nested_blocks_60k": "more than 10000 blocks within each other",
		"bomb_nested_loops_60k":  "more than 10000 blocks within each other",
		"bomb_nested_ifs_60k":    "more than 10000 blocks within each other",
	}
	for _, a := range hostiletest.Bombs() {
		if testing.Short() && want[a.Name] == "" {
			continue
		}
		wasm := a.Bytes()
		var err error
		n := allocated(func() { err = guest.Check(guest.Config{Module: wasm, Name: "agent", Compiler: os.Executable}) })
		if text := want[a.Name]; text != "" && (!errors.Is(err, guest.ErrModule) || !strings.Contains(err.Error(), text)) {
			t.Errorf("%s (%s): %v, want %q", a.Name, a.What, err, text)
		}
		if most := 32*uint64(len(wasm)) + 8<<20; n > most {
			t.Errorf("%s: %d bytes were asked for, of a module of %d", a.Name, n, len(wasm))
		}
	}
}
