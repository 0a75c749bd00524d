package compose

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// watch is a watcher over the overrides of a home, as a launch would have it.
func watch(t testing.TB, home string, files map[string]string) *watcher {
	t.Helper()
	overridesOf(t, home, files)
	a := readerOf(home)
	c, err := a.Compose(agentAt(t, t.TempDir(), "bomb", "time = true\n"), Flags{})
	if err != nil {
		t.Fatal(err)
	}
	return newWatcher(c)
}

const (
	narrow   = "[capabilities]\ntime = false\n"
	narrower = "[capabilities]\ntime = false\n[limits]\nhostcalls_max = 1\n"
	loose    = "[capabilities]\ntime = true\n"
)

// What the operator writes between turns is read whole, judged by the parser of
// the launch, and taken as a whole or not at all. What was there at the launch
// may not go; what came later may.
//
//rlp:holds Y55 Y57 Y60
func TestEditsAreTakenWholeOrNotAtAll(t *testing.T) {
	both := map[string]string{"bomb.toml": narrow, "_default.toml": loose}
	for name, c := range map[string]struct {
		at, edit map[string]string
		perm     os.FileMode
		want     []string // layers that are edited; nil: nothing is
		why      string   // it is rejected for
	}{
		"nothing":              {at: both},
		"the same words again": {at: both, edit: map[string]string{"bomb.toml": narrow}},
		"narrower": {
			at: both, edit: map[string]string{"bomb.toml": narrower},
			want: []string{"override:bomb.toml"},
		},
		"looser": {
			at: both, edit: map[string]string{"bomb.toml": loose},
			want: []string{"override:bomb.toml"},
		},
		"both": {
			at: both, edit: map[string]string{"bomb.toml": narrower, "_default.toml": narrow},
			want: []string{"override:_default.toml", "override:bomb.toml"},
		},
		"one that was not there":    {edit: map[string]string{"bomb.toml": narrow}, want: []string{"override:bomb.toml"}},
		"an empty one that was not": {edit: map[string]string{"bomb.toml": ""}, want: []string{"override:bomb.toml"}},
		"of another agent":          {at: both, edit: map[string]string{"other.toml": "what is this"}},
		"malformed":                 {at: both, edit: map[string]string{"bomb.toml": "[capabilities\n"}, why: "bomb.toml:1:"},
		"an unknown key": {
			at: both, edit: map[string]string{"bomb.toml": "[capabilities]\nfss = []\n"},
			why: "fss",
		},
		"one right and one wrong": {
			at: both, edit: map[string]string{"_default.toml": narrow, "bomb.toml": "fs = 1"},
			why: "bomb.toml",
		},
		"emptied to the last byte": {
			at: both, edit: map[string]string{"bomb.toml": ""},
			want: []string{"override:bomb.toml"},
		},
		"gone": {at: both, edit: map[string]string{"bomb.toml": removed}, why: "is gone"},
		"one gone and one narrower": {
			at: both, edit: map[string]string{"bomb.toml": removed, "_default.toml": narrow},
			why: "is gone",
		},
		"others may write it": {
			at: both, edit: map[string]string{"bomb.toml": narrower}, perm: 0o666,
			why: "written by others",
		},
		"a name that nothing reads": {
			at: both, edit: map[string]string{"Bomb.toml": narrower},
			why: `Bomb.toml" is not read by anything`,
		},
		"too large": {
			at: both, edit: map[string]string{"bomb.toml": narrow + strings.Repeat("#", 64<<10)},
			why: "larger than",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := watch(t, dir, c.at)
			if look, edited, err := w.look(); edited || err != nil {
				t.Fatalf("control: before the edit: %v, %v, %v", look, edited, err)
			}
			overridesOf(t, dir, c.edit)
			if c.perm != 0 {
				if err := os.Chmod(filepath.Join(dir, "caps/overrides/bomb.toml"), c.perm); err != nil {
					t.Fatal(err)
				}
			}
			before := slices.Clone(w.now)
			look, edited, err := w.look()
			switch {
			case c.why != "":
				if err == nil || edited || !strings.Contains(err.Error(), c.why) {
					t.Errorf("%v, %v, want it rejected for %q", edited, err, c.why)
				}
				for i := range before {
					if w.now[i].layer != before[i].layer {
						t.Error("a part of it was taken")
					}
				}
				if _, edited, again := w.look(); again == nil || edited || again.Error() != err.Error() {
					t.Errorf("looked at again: %v, %v", edited, again)
				}
				return
			case err != nil || edited != (c.want != nil) || !slices.Equal(look.Components, c.want):
				t.Errorf("%v, edited %v, %v", look, edited, err)
			}
			if _, edited, err := w.look(); edited || err != nil {
				t.Errorf("looked at again: %v, %v", edited, err)
			}
		})
	}
}

// What comes into being during a run may go again, and a file that was wrong is
// taken once it is right: even with the size and the times that it had before.
//
//rlp:holds Y55 Y62
func TestEditsOneAfterTheOther(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir, nil)
	for i, step := range []struct {
		edit   map[string]string
		layers int // of the look; -1: nothing is edited, -2: rejected
	}{
		{map[string]string{"bomb.toml": narrow}, 1},
		{map[string]string{"bomb.toml": removed}, 0},
		{map[string]string{"bomb.toml": narrow, "_default.toml": loose}, 2},
		{map[string]string{"bomb.toml": "["}, -2},
		{map[string]string{"bomb.toml": narrow}, -1}, // as it was when it was last right
		{map[string]string{"bomb.toml": "[capabilities]\ntime = [    ]\n"}, -2},
		{map[string]string{"bomb.toml": strings.ReplaceAll(narrow, "false", "true ")}, 2},
	} {
		overridesOf(t, dir, step.edit)
		look, edited, err := w.look()
		got := len(look.Layers)
		switch {
		case err != nil:
			got = -2
		case !edited:
			got = -1
		}
		if got != step.layers {
			t.Fatalf("step %d: %d layers, want %d: %v", i, got, step.layers, err)
		}
	}
	path := filepath.Join(dir, "caps/overrides/bomb.toml")
	old := time.Now().Add(-time.Hour)
	for _, text := range []string{"time = true ", "time = false"} { // one size, one time, one file
		if err := os.WriteFile(path, []byte("[capabilities]\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		if _, edited, err := w.look(); err != nil || !edited && text == "time = false" {
			t.Errorf("%s: edited %v, %v", text, edited, err)
		}
	}
}

// The operator's floor is read between turns like all else that narrows; it is
// met with the floor of the launch, and is no layer of the run itself.
//
//rlp:holds Y57 Y34
func TestTheFloorIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	a := readerOf(dir)
	c, err := a.Compose(agentAt(t, t.TempDir(), "bomb", "time = true\n"), Flags{})
	if err != nil {
		t.Fatal(err)
	}
	c.NarrowedBy(a.floorAgain(c)) // where there is no folder of profiles yet
	w := newWatcher(c)
	if _, edited, err := w.look(); edited || err != nil {
		t.Fatalf("control: %v, %v", edited, err)
	}
	floor := filepath.Join(dir, "caps", "profiles", "_untrusted.toml")
	if err := os.MkdirAll(filepath.Dir(floor), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text  string
		taken bool
	}{
		{"schema_version = \"1.0\"\nname = \"_untrusted\"\n[deny]\ncapabilities = [\"time:read:*\"]\n", true},
		{"schema_version = \"1.0\"\nname = \"_untrusted\"\n[denny]\n", false},
		{"", false},
	} {
		if err := os.WriteFile(floor, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		look, edited, err := w.look()
		if edited != step.taken || (err == nil) != step.taken || step.taken && (len(look.Floor) != 1 ||
			len(look.Layers) != 0 || look.Floor[0].Because == 0) {
			t.Errorf("%q: %+v, %v, %v", step.text, look, edited, err)
		}
	}
}

// What the end of a turn costs: where nothing was edited, and where one of two
// overrides says another thing each time.
func BenchmarkEndOfTurn(b *testing.B) {
	for name, texts := range map[string][]string{"nothing edited": {narrow}, "edited": {narrower, narrow}} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			w := watch(b, dir, map[string]string{"bomb.toml": narrow, "_default.toml": loose})
			w.clock = func() time.Time { return time.Now().Add(time.Hour) } // all of it is old
			for i := 0; b.Loop(); i++ {
				if len(texts) > 1 {
					overridesOf(b, dir, map[string]string{"bomb.toml": texts[i%2]})
				}
				if _, edited, err := w.look(); err != nil || edited != (len(texts) > 1) {
					b.Fatal(edited, err)
				}
			}
		})
	}
}

// Nothing that an agent puts in the way of a path keeps the operator from
// narrowing by it: the path is taken as it is written, and no link is followed.
func TestNoLinkKeepsAnEditFromBeingTaken(t *testing.T) {
	for name, plant := range map[string]func(sub string) error{
		"nothing":      func(string) error { return nil },
		"a link":       func(sub string) error { return os.Symlink("/etc", sub) },
		"a circle":     func(sub string) error { return os.Symlink("sub", sub) },
		"a file above": func(sub string) error { return os.WriteFile(sub, nil, 0o600) },
	} {
		data, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		dir, sub := t.TempDir(), filepath.Join(data, "sub")
		w := watch(t, dir, map[string]string{"bomb.toml": loose})
		if err := plant(sub); err != nil {
			t.Fatal(err)
		}
		overridesOf(t, dir, map[string]string{"bomb.toml": "[capabilities]\nfs = [\"" + sub + "/x\"]\n"})
		look, edited, err := w.look()
		if err != nil || !edited || len(look.Layers) != 1 || look.Layers[0].Allow[0].Grant.Scope != sub+"/x" {
			t.Errorf("%s: %v, %v, %+v", name, edited, err, look.Layers)
		}
	}
}
