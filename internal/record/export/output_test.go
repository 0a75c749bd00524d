package export

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
)

var errKilled = errors.New("killed")

// A mortal output ends after some steps, in the middle of one, as a process
// does that is killed.
type mortal struct {
	*File
	steps int
}

func (m *mortal) dies() bool {
	m.steps--
	return m.steps < 0
}

func (m *mortal) Put(ctx context.Context, p []byte) error {
	if m.dies() {
		m.File.f.Write(p[:len(p)/2])
		return errKilled
	}
	return m.File.Put(ctx, p)
}

func (m *mortal) Mark() (*Place, error) {
	place, err := m.File.Mark()
	if m.dies() {
		return nil, errKilled
	}
	return place, err
}

// session is one life of an export to a file: it goes on from the cursor, in a
// pass for each of the heads, and dies after steps.
func session(dir string, f Format, list []*audit.Glance, heads []int, steps int) error {
	cursor, err := OpenCursor(filepath.Join(dir, "cursor"), Cursor{Format: f, Tenant: "default"})
	if err != nil {
		return err
	}
	defer cursor.Close()
	file, err := ResumeFile(filepath.Join(dir, "out"), cursor.Output)
	if err != nil {
		return err
	}
	defer file.Close(false)
	enc, err := New(f, Options{Past: pastOf(list)})
	if err != nil {
		return err
	}
	e := &Export{Encoder: enc, Output: &mortal{file, steps}, Cursor: cursor, Gapless: true, Every: 1000, batch: 300}
	if err := e.Begin(context.Background()); err != nil {
		return err
	}
	for _, n := range heads {
		if uint64(n) <= e.Last() {
			continue
		}
		if err := e.Pass(context.Background(), Head{Size: uint64(n)}, sequence(list[e.Last():])); err != nil {
			return err
		}
	}
	return nil
}

// A file holds each record once, in order, whenever and however often its
// export was killed.
func TestFileHoldsEachRecordOnce(t *testing.T) {
	list := glances(t, example())
	whole := map[Format][]byte{}
	for _, f := range Formats() {
		whole[f] = encode(t, f, Options{}, list)
	}
	lives := 6
	switch {
	case os.Getenv("RLP_SOAK") != "":
		lives = 400
	case testing.Short():
		lives = 2
	}
	for seed := range lives {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		dir := t.TempDir()
		f := Formats()[seed%len(Formats())]
		kills := 0
		for {
			steps := 1 << 20
			if kills < 8 {
				steps = r.IntN(10)
			}
			err := session(dir, f, list, []int{1 + r.IntN(len(list)), len(list)}, steps)
			if err == nil {
				break
			}
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			kills++
		}
		got, err := os.ReadFile(filepath.Join(dir, "out"))
		if err != nil {
			t.Fatal(err)
		}
		if f == OTLP { // how many spans are in a request depends on the passes
			got, want := len(spansOf(readLines(t, got))), len(spansOf(readLines(t, whole[f])))
			if got != want {
				t.Fatalf("seed %d: %d spans, not %d, after %d kills", seed, got, want, kills)
			}
			continue
		}
		if !bytes.Equal(got, whole[f]) {
			t.Fatalf("seed %d: after %d kills the file of %s holds %d bytes, not %d", seed, kills, f, len(got), len(whole[f]))
		}
	}
}

// Without the cursor the same kills lose or repeat records: the control.
func TestWithoutCursorRecordsRepeat(t *testing.T) {
	list := glances(t, example())
	var out bytes.Buffer
	for range 2 {
		e := &Export{Encoder: newEncoder(t, JSONL, Options{}), Output: NewStream(&out, false), batch: 300}
		records := func(yield func(*audit.Glance, error) bool) {
			for _, g := range list[:10] {
				if !yield(g, nil) {
					return
				}
			}
		}
		if err := e.Pass(t.Context(), Head{Size: uint64(len(list))}, records); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), `"seq":1,`); n != 2 {
		t.Errorf("record 1 is there %d times", n)
	}
}

// A cursor goes on with what it was made for and nothing else, one export at a
// time, and its file with its own.
func TestCursorIsForOneExport(t *testing.T) {
	list := glances(t, example())
	dir := t.TempDir()
	if err := session(dir, JSONL, list, []int{5}, 1<<20); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "cursor")
	want := Cursor{Format: JSONL, Tenant: "default"}
	for _, other := range []Cursor{
		{Format: CSV, Tenant: "default"},
		{Format: JSONL, Tenant: "acme"},
		{Format: JSONL, Tenant: "default", Filter: Filter{Agent: "writer"}},
		{Format: JSONL, Tenant: "default", Filter: Filter{Since: "24h"}},
	} {
		if _, err := OpenCursor(path, other); !errors.Is(err, ErrCursor) {
			t.Errorf("%+v: %v", other, err)
		}
	}
	c, err := OpenCursor(path, want)
	if err != nil || c.Seq != 5 || c.Fresh {
		t.Fatal(c, err)
	}
	if _, err := OpenCursor(path, want); err == nil || !strings.Contains(err.Error(), "another export") {
		t.Errorf("two exports of one cursor: %v", err)
	}
	root := [32]byte(c.Root)
	other := root
	other[0] ^= 1
	if err := c.Check(&root); err != nil {
		t.Error(err)
	}
	for _, bad := range []*[32]byte{nil, &other} {
		if err := c.Check(bad); err == nil || !strings.Contains(err.Error(), "not the one that was exported") {
			t.Errorf("another log: %v", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", "{}", "[]", string(good) + "{}", strings.Replace(string(good), `"seq"`, `"sec"`, 1),
		strings.Replace(string(good), `"seq": 5`, `"seq": 6`, 1), string(good) + strings.Repeat(" ", maxCursor),
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenCursor(path, want); !errors.Is(err, ErrCursor) {
			t.Errorf("%.30q is a cursor: %v", bad, err)
		}
	}
}

// Nothing that this export did not write is ever cut off or written over.
func TestFileIsTheOneThatWasWritten(t *testing.T) {
	list := glances(t, example())
	for name, damage := range map[string]func(t *testing.T, out string){
		"shorter": func(t *testing.T, out string) {
			if err := os.Truncate(out, 100); err != nil {
				t.Fatal(err)
			}
		},
		"another of the same length": func(t *testing.T, out string) {
			p, _ := os.ReadFile(out)
			if err := os.WriteFile(out, bytes.ToUpper(p), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"without its cursor": func(t *testing.T, out string) {
			if err := os.Remove(filepath.Join(filepath.Dir(out), "cursor")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			if err := session(dir, JSONL, list, []int{5}, 1<<20); err != nil {
				t.Fatal(err)
			}
			damage(t, out)
			before, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if err := session(dir, JSONL, list, []int{9}, 1<<20); !errors.Is(err, ErrOutput) {
				t.Errorf("it goes on: %v", err)
			}
			if after, err := os.ReadFile(out); err != nil || !bytes.Equal(before, after) {
				t.Errorf("it was changed: %v", err)
			}
		})
	}
}

// A file that was moved away, to be kept, is followed by a new one with a head
// of its own, and together they hold each record once.
func TestFileIsRotated(t *testing.T) {
	list := glances(t, example())
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	if err := session(dir, CSV, list, []int{5}, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(out, out+".1"); err != nil {
		t.Fatal(err)
	}
	if err := session(dir, CSV, list, []int{len(list)}, 1<<20); err != nil {
		t.Fatal(err)
	}
	first, _ := os.ReadFile(out + ".1")
	second, _ := os.ReadFile(out)
	head := (&table{}).Head()
	if !bytes.HasPrefix(second, head) {
		t.Errorf("the new file begins with %.40q", second)
	}
	if got := append(first, bytes.TrimPrefix(second, head)...); !bytes.Equal(got, encode(t, CSV, Options{}, list)) {
		t.Error("the two are not the whole")
	}
}

// A file without a cursor appears whole or not at all.
func TestFileAppearsWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	for _, done := range []bool{false, true} {
		f, err := NewFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Put(t.Context(), []byte("all")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("half of it is there")
		}
		if err := f.Close(done); err != nil {
			t.Fatal(err)
		}
		names, err := os.ReadDir(dir)
		if err != nil || len(names) != map[bool]int{true: 1}[done] {
			t.Errorf("done %v: %v %v", done, names, err)
		}
	}
	if p, err := os.ReadFile(path); string(p) != "all" {
		t.Errorf("%q %v", p, err)
	}
}

// A record that is not there any more is an error, not a gap that nobody sees.
func TestGapsAreErrors(t *testing.T) {
	list := glances(t, example())
	e := &Export{Encoder: newEncoder(t, JSONL, Options{}), Output: NewStream(io.Discard, false), Gapless: true}
	var gap *GapError
	if err := e.Pass(t.Context(), Head{Size: 9}, sequence(append(list[:3:3], list[5:]...))); !errors.As(err, &gap) ||
		gap.After != 3 || gap.Next != 6 {
		t.Errorf("%v", err)
	}
}
