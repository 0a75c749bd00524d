package probe

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/container"
)

var update = flag.Bool("update", false, "rewrite the table in docs/lanes.md")

// The tests' own program is rlp in all its parts.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == lane.ConfineName:
		os.Exit(lane.Confined())
	case len(os.Args) > 1 && os.Args[1] == Name:
		syscall.Exit(Main(os.Args[2:], os.Stdout)) // in os.Exit the race detector waits a second
	}
	os.Exit(m.Run())
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func lay(t testing.TB) *Bait {
	t.Helper()
	b, err := Lay("/var/tmp") // a lane has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func open(t testing.TB, name string) (lane.Lane, error) {
	t.Helper()
	work := filepath.Join("/var/tmp", fmt.Sprintf("probe-work-%d", time.Now().UnixNano()))
	l, err := lane.Open(t.Context(), name, lane.Config{
		Work: filepath.Join(work, "run"), ID: filepath.Base(work), Self: []string{self(t), "rlp", lane.ConfineName},
		Container: container.Config{},
	})
	if err == nil {
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return l, err
}

// plainly makes the attempts in a program that nothing keeps from anything.
func plainly(t *testing.T, b *Bait) []Finding {
	t.Helper()
	if err := b.Leak(); err != nil {
		t.Fatal(err)
	}
	args, err := b.Args()
	if err != nil {
		t.Fatal(err)
	}
	defer b.tend()()
	out, err := exec.Command(self(t), args...).Output()
	if err != nil {
		t.Fatal(err, string(out))
	}
	found, err := b.Found(out)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Each attempt is one that works where nothing is done about it, and none works
// in a lane that auto takes; no lane says that it enforces a control past which
// an attempt got. What each lane refuses is the table of docs/lanes.md.
//
// An engine of containers judges no links, and says so.
//
//rlp:holds A55 K6 K8 K13 K14 K39 K44 K46 K73
func TestWhatEachLaneRefuses(t *testing.T) {
	b := lay(t)
	tables := map[string][]Finding{"plain": plainly(t, b)}
	for _, f := range tables["plain"] {
		if f.Refused && os.Geteuid() == 0 {
			t.Errorf("control: %s is refused to anybody: %s", f.Name, f.Why)
		}
	}
	names := []string{"native", "ns", "bwrap", "container"}
	if testing.Short() {
		names = names[1:2]
	}
	for _, name := range names {
		l, err := open(t, name)
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		found, err := b.In(t.Context(), l, self(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		tables[name] = found
		for _, f := range found {
			if !f.Refused && name != "native" && (name != "container" || f.Control != lane.Links) {
				t.Errorf("%s: %s got through", name, f.Name)
			}
			if !f.Refused && l.Controls()[f.Control].Level == lane.Enforced {
				t.Errorf("%s says that it enforces %s, and %s got through", name, f.Control, f.Name)
			}
		}
	}
	compare(t, table(tables))
}

// table is what docs/lanes.md shows.
func table(of map[string][]Finding) string {
	names := []string{"plain", "native", "ns", "bwrap", "container"}
	var s strings.Builder
	s.WriteString("| attempt | control | without a lane |")
	for _, n := range names[1:] {
		fmt.Fprintf(&s, " %s |", n)
	}
	s.WriteString("\n|---|---|---|---|---|---|---|\n")
	refused := map[string]int{}
	for i, a := range Attempts() {
		fmt.Fprintf(&s, "| %s | `%s` |", a.What, a.Control)
		for _, n := range names {
			word := "?"
			if of[n] != nil {
				word = "**through**"
				if of[n][i].Refused {
					word = "refused"
					refused[n]++
				}
			}
			fmt.Fprintf(&s, " %s |", word)
		}
		s.WriteString("\n")
	}
	fmt.Fprintf(&s, "| refused of %d | |", len(Attempts()))
	for _, n := range names {
		fmt.Fprintf(&s, " %d |", refused[n])
	}
	return s.String() + "\n"
}

// compare holds the page to what was found, on a machine as the page describes.
func compare(t *testing.T, found string) {
	t.Helper()
	const page, from, to = "../../../../docs/lanes.md", "<!-- table -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), from)
	was, after, ok2 := strings.Cut(rest, to)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+from+found+to+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != found && !strings.Contains(found, " ? |") && os.Geteuid() == 0 {
		t.Errorf("%s says otherwise (go test ./internal/effect/lane/probe -update rewrites it):\n%s", page, found)
	}
}
