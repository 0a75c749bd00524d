//go:build linux || darwin

package jail

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/effect/wasi"
)

// swapping exchanges grant/d, a directory, and grant/l, a link to what lies
// outside, as fast as it can while f runs.
func swapping(t *testing.T, p place, f func()) {
	t.Helper()
	must(t, os.Mkdir(p.grant+"/d", 0o755))
	put(t, p.grant+"/d/secret.txt", "inside")
	must(t, os.Symlink("../out", p.grant+"/l"))
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			for _, move := range [][2]string{{"d", "tmp"}, {"l", "d"}, {"d", "l"}, {"tmp", "d"}} {
				if err := os.Rename(p.grant+"/"+move[0], p.grant+"/"+move[1]); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	defer func() {
		stop.Store(true)
		wg.Wait()
	}()
	f()
}

// attempts is how often a race is tried.
func attempts() int {
	if testing.Short() {
		return 5_000
	}
	return 50_000
}

// TestRaces: a directory that turns into a link out between any two moments of
// an operation gives away nothing.
func TestRaces(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		p := newPlace(t)
		j, g := open(t, walk, rule{p.grant, all})
		g.quiet = true
		before := p.outside(t)
		inside, refused := 0, 0
		swapping(t, p, func() {
			for i := range attempts() {
				text, e := slurp(j, p.grant+"/d/secret.txt")
				switch {
				case strings.Contains(text, "CANARY"):
					t.Fatal("a leak")
				case e == 0 && text == "inside":
					inside++
				case slices.Contains([]wasi.Errno{wasi.EACCES, wasi.ENOENT, wasi.ELOOP, wasi.ENOTDIR}, e):
					refused++
				default:
					t.Fatalf("%q, errno %d", text, e)
				}
				if i%10 == 0 {
					spill(j, p.grant+"/d/planted", "pwned", wasi.OpenFlags{Create: true})
					spill(j, p.grant+"/d/victim.txt", "pwned", wasi.OpenFlags{Trunc: true})
					j.Unlink(p.grant+"/d/victim.txt", false)
					j.SetTimes(p.grant+"/d/victim.txt", false, true, wasi.Times{})
					j.Mkdir(p.grant + "/d/sub2")
					j.Rmdir(p.grant + "/d/sub2")
				}
			}
		})
		if p.outside(t) != before {
			t.Error("something outside has changed")
		}
		if inside == 0 || refused == 0 {
			t.Errorf("no race: %d inside, %d refused", inside, refused)
		}
	})
}

// TestRacesControl: to resolve and check a path, and then to open it, leaks in
// the same race.
func TestRacesControl(t *testing.T) {
	p := newPlace(t)
	swapping(t, p, func() {
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
			real, err := filepath.EvalSymlinks(p.grant + "/d/secret.txt")
			if err != nil || !links.Within(real, p.grant) {
				continue
			}
			if text, _ := os.ReadFile(p.grant + "/d/secret.txt"); string(text) == "CANARY" {
				return
			}
		}
		t.Error("checking before opening did not leak: the race shows nothing")
	})
}
