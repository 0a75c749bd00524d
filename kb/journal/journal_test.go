package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
)

// records reads a journal from its beginning to where it is.
func records(t testing.TB, dir, run string) []*audit.Record {
	t.Helper()
	r, err := OpenReader(dir, run, State{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	recs, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

func readAll(r *Reader) (recs []*audit.Record, err error) {
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return recs, nil
		}
		if err != nil {
			return recs, err
		}
		recs = append(recs, rec)
	}
}

func decide(t testing.TB, j *Journal, d *audit.Decision) {
	t.Helper()
	if _, err := j.Decide(d); err != nil {
		t.Fatal(err)
	}
}

// A record is readable, by anyone, the moment Decide returns: before the guest
// sees the result of the call.
//
//rlp:holds R70
func TestDecideIsReadableAtOnce(t *testing.T) {
	d := dir(t)
	j := create1(t, Options{Dir: d, Head: testHead("run1")})
	dec := words(t, j)
	var err error
	if dec.Cap, err = j.Intern("kb.write"); err != nil {
		t.Fatal(err)
	}
	if got := records(t, d, "run1"); len(got) != 0 {
		t.Fatalf("%d records before the first decision", len(got))
	}
	args := j.ArgsHash("net_http", []byte("a"), []byte("b"))
	for i := range 3 {
		if i == 2 {
			dec.Args = &args
		}
		decide(t, j, &dec)
		got := records(t, d, "run1")
		if len(got) != i+1 {
			t.Fatalf("after decision %d there are %d records", i+1, len(got))
		}
		want := audit.DecisionRecord{
			Cap: "kb.write", Op: "path_open", Reason: "path_not_permitted", Layer: "override:writer.toml", Deny: true,
			Severity: audit.Warn, Target: dec.Target, ArgsHash: j.ArgsHash("path_open", []byte(dec.Target)),
		}
		if i == 2 {
			want.ArgsHash = args
		}
		r := got[i]
		if *r.Decision != want || r.Head != testHead("run1") || r.RunSeq != uint64(i+1) || !r.Kept ||
			time.Since(r.Time) > time.Minute {
			t.Errorf("record %d is %+v %+v, want %+v", i, r, r.Decision, want)
		}
	}
}

// Two denials that are alike in everything are two records, each with its number.
//
//rlp:holds R72
func TestIdenticalDenials(t *testing.T) {
	d := dir(t)
	j := create1(t, Options{Dir: d, Head: testHead("run1")})
	dec := words(t, j)
	decide(t, j, &dec)
	decide(t, j, &dec)
	got := records(t, d, "run1")
	if len(got) != 2 || *got[0].Decision != *got[1].Decision || got[0].RunSeq != 1 || got[1].RunSeq != 2 {
		t.Fatalf("two identical denials read as %v", got)
	}
}

// What is read is what was written, whatever the mixture: repeated and new
// decisions, kept and not, events and long targets between them.
//
//rlp:holds P19
func TestMixture(t *testing.T) {
	d := dir(t)
	clock := &Clock{stop: make(chan struct{})}
	clock.ms.Store(1767323045678)
	var seen []*audit.Record
	j := create1(t, Options{
		Dir: d, Head: testHead("run1"), Clock: clock,
		Observe: func(r *audit.Record) bool { seen = append(seen, r); return true },
	})
	rnd := seeded(t, 1)
	ops := make([]audit.Name, 5)
	for i := range ops {
		var err error
		if ops[i], err = j.Intern(fmt.Sprintf("op%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	var want []audit.Record
	runSeq := uint64(0)
	add := func(r audit.Record) {
		r.Head, r.Time = testHead("run1"), time.UnixMilli(clock.UnixMilli()).UTC()
		if r.Kept {
			runSeq++
			r.RunSeq = runSeq
		}
		want = append(want, r)
	}
	type marked struct {
		mark audit.Mark
		of   audit.Record
	}
	var marks []marked
	var again [12]int
	targets := []string{"", "a", "/x", strings.Repeat("t", 33), strings.Repeat("u", maxTarget), "\xff/not utf-8"}
	for range 20000 {
		if rnd.IntN(3) == 0 {
			clock.ms.Add(int64(rnd.IntN(700)) - 50)
		}
		if rnd.IntN(200) == 0 {
			e := audit.Event{
				Kind: audit.KindCallDone, Verb: "kb_get", Status: "ok", DurationMS: float64(rnd.IntN(9)),
				ErrorSummary: strings.Repeat("e", rnd.IntN(1000)),
			}
			if err := j.Event(&e); err != nil {
				t.Fatal(err)
			}
			add(audit.Record{Kept: true, Event: &e})
			continue
		}
		op, target := rnd.IntN(2)*rnd.IntN(len(ops)), targets[rnd.IntN(2)*rnd.IntN(len(targets))]
		dec := audit.Decision{
			Op: ops[op], Deny: rnd.IntN(9) == 0, Keep: rnd.IntN(9) > 0,
			Severity: audit.Severity(rnd.IntN(3)), Target: target,
		}
		rec := &audit.DecisionRecord{
			Op: fmt.Sprintf("op%d", op), Deny: dec.Deny, Severity: dec.Severity,
			Target: strings.ToValidUTF8(target, "\uFFFD"),
		}
		rec.ArgsHash = j.ArgsHash(rec.Op, []byte(target))
		if rnd.IntN(10) == 0 {
			rec.ArgsHash = [32]byte{byte(rnd.IntN(256))}
			dec.Args = &rec.ArgsHash
		}
		mark, err := j.Decide(&dec)
		if err != nil {
			t.Fatal(err)
		}
		decided := audit.Record{Kept: dec.Keep, Decision: rec}
		add(decided)
		if marks = append(marks, marked{mark, decided}); rnd.IntN(2) == 0 {
			back := rnd.IntN(min(len(marks), 12))
			if m := marks[len(marks)-1-back]; j.Again(m.mark) {
				add(m.of)
				again[back]++
			}
		}
	}
	if again[1] == 0 || again[3] == 0 || again[11] > again[1] {
		t.Errorf("repeated by how many decisions were made since: %v", again)
	}
	if j.RunSeq() != runSeq {
		t.Fatalf("run_seq is %d after %d kept records", j.RunSeq(), runSeq)
	}
	compare(t, records(t, d, "run1"), want)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	compare(t, records(t, d, "run1"), want)
	compare(t, seen, slices.DeleteFunc(want, func(r audit.Record) bool { return r.Decision == nil }))
}

// Who looks on is told of events too, in order, while the run goes on.
func TestEventsAreObserved(t *testing.T) {
	seen := make(chan *audit.Record, 16)
	d := dir(t)
	j := create1(t, Options{
		Dir: d, Head: testHead("run1"), Events: true,
		Observe: func(r *audit.Record) bool { seen <- r; return true },
	})
	if err := j.Event(&audit.Event{Kind: audit.KindRunStart}); err != nil {
		t.Fatal(err)
	}
	if r := <-seen; r.Kind() != audit.KindRunStart || r.RunSeq != 1 {
		t.Fatalf("first %+v", r)
	}
	dec := words(t, j)
	decide(t, j, &dec)
	for _, kind := range []string{audit.KindCallDone, audit.KindRunComplete} {
		if err := j.Event(&audit.Event{Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	close(seen)
	var got []audit.Record
	for r := range seen {
		got = append(got, *r)
	}
	compare(t, records(t, d, "run1")[1:], got)
	if len(got) != 3 {
		t.Errorf("%d records were told", len(got))
	}
}

func compare(t *testing.T, got []*audit.Record, want []audit.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(*got[i], want[i]) {
			t.Fatalf("record %d is %+v %+v\nwant %+v %+v", i, got[i], got[i].Decision, want[i], want[i].Decision)
		}
	}
}

// A reader that stops and goes on from its State misses nothing and sees nothing twice.
func TestResume(t *testing.T) {
	d := dir(t)
	j := create1(t, Options{Dir: d, Head: testHead("run1")})
	dec := words(t, j)
	rnd := seeded(t, 2)
	var s State
	var got []*audit.Record
	for i := range 200 {
		for range rnd.IntN(5) {
			dec.Target = fmt.Sprint("/t/", i/3)
			decide(t, j, &dec)
		}
		r, err := OpenReader(d, "run1", s)
		if err != nil {
			t.Fatal(err)
		}
		recs, err := readAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, recs...)
		s = r.State()
		r.Close()
	}
	if want := records(t, d, "run1"); !reflect.DeepEqual(got, want) || len(got) == 0 {
		t.Fatalf("%d records in pieces, %d at once", len(got), len(want))
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	j := create1(t, Options{Dir: dir(t), Head: testHead("run1"), Observe: func(*audit.Record) bool { return true }})
	dec := words(t, j)
	args := [32]byte{1}
	i := 0
	n := testing.AllocsPerRun(400, func() {
		i++
		dec.Target = "/home/user/work/notes"[:i%20]
		dec.Args = nil
		if i%5 == 0 {
			dec.Args = &args
		}
		if _, err := j.Decide(&dec); err != nil {
			t.Fatal(err)
		}
	})
	if n >= 1 { // the observer allocates beside, now and then
		t.Errorf("a decision allocates %v times", n)
	}
}

// The file and its directory are for their owner alone, the file appears once,
// and two runs of one id do not mix.
func TestCreate(t *testing.T) {
	d := dir(t)
	j := create1(t, Options{Dir: d, Head: testHead("run1")})
	for path, want := range map[string]fs.FileMode{
		d: fs.ModeDir | 0o700, j.Path(): 0o600,
		filepath.Join(d, secretName): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
	if _, err := Create(Options{Dir: d, Head: testHead("run1")}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second journal of one run: %v", err)
	}
	for _, id := range []string{"", ".", "..", "a/b", "../x", "-a", strings.Repeat("a", 65), "a\x00"} {
		if _, err := Create(Options{Dir: d, Head: testHead(id)}); err == nil {
			t.Errorf("a journal for run %q", id)
		}
	}
	entries, err := os.ReadDir(d)
	if err != nil || len(entries) != 2 {
		t.Errorf("what was refused has left something behind: %v %v", entries, err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(Options{Dir: open, Head: testHead("run1")}); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("a journal in a directory that others can enter: %v", err)
	}
}

// Of many processes that need the key at once one makes it and all have the same.
func TestSecretIsMadeOnce(t *testing.T) {
	d := dir(t)
	if err := os.Mkdir(d, 0o700); err != nil {
		t.Fatal(err)
	}
	keys := make([]secret, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			s, err := loadSecret(d, systemDisk{})
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = *s
		})
	}
	wg.Wait()
	if slices.ContainsFunc(keys, func(k secret) bool { return k != keys[0] || k == secret{} }) {
		t.Error("two keys for one directory")
	}
	if err := os.Chmod(filepath.Join(d, secretName), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadSecret(d, systemDisk{}); err == nil {
		t.Error("a key that others can read was used")
	}
}

// The digest depends on every argument and on where one ends and the next
// begins, and without the key it says nothing.
//
//rlp:holds R69
func TestArgsHash(t *testing.T) {
	j := create1(t, Options{Dir: dir(t), Head: testHead("run1")})
	other := create1(t, Options{Dir: dir(t), Head: testHead("run1")})
	b := func(s ...string) (out [][]byte) {
		for _, x := range s {
			out = append(out, []byte(x))
		}
		return out
	}
	seen := map[[32]byte]string{}
	for name, h := range map[string][32]byte{
		"op a b": j.ArgsHash("op", b("a", "b")...), "op ab": j.ArgsHash("op", b("ab")...), "opa b": j.ArgsHash("opa",
			b("b")...),
		"op ab ''": j.ArgsHash("op", b("ab", "")...), "other home": other.ArgsHash("op", b("a", "b")...),
		"op": j.ArgsHash("op"),
	} {
		if before, ok := seen[h]; ok {
			t.Errorf("%s and %s have one digest", name, before)
		}
		seen[h] = name
	}
	if seen[j.ArgsHash("op", b("a", "b")...)] != "op a b" {
		t.Error("one call, two digests")
	}
}

// After the record that ends a run nothing is recorded, and the file is as long as what it holds.
func TestEnd(t *testing.T) {
	d := dir(t)
	j := create1(t, Options{Dir: d, Head: testHead("run1")})
	dec := words(t, j)
	decide(t, j, &dec)
	if err := j.Event(&audit.Event{Kind: "cap.audit"}); err == nil {
		t.Error("an event pretends to be a decision")
	}
	if err := j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Decide(&dec); !errors.Is(err, ErrEnded) {
		t.Errorf("a decision after the end: %v", err)
	}
	if err := j.Event(&audit.Event{Kind: audit.KindRunFailed}); !errors.Is(err, ErrEnded) {
		t.Errorf("a second end: %v", err)
	}
	if _, err := j.Intern("new"); !errors.Is(err, ErrEnded) {
		t.Errorf("a word after the end: %v", err)
	}
	r, err := OpenReader(d, "run1", State{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if gone, err := r.WriterGone(); gone || err != nil {
		t.Errorf("the writer is gone while it lives: %v %v", gone, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if gone, err := r.WriterGone(); !gone || err != nil {
		t.Errorf("the writer is there after it closed: %v %v", gone, err)
	}
	recs, err := readAll(r)
	if err != nil || len(recs) != 2 || !r.State().Ended {
		t.Fatalf("%d records, %v, state %+v", len(recs), err, r.State())
	}
	if info, err := os.Stat(j.Path()); err != nil || info.Size() > firstChunk {
		t.Errorf("the closed file has %d bytes, %d are used (%v)", info.Size(), r.State().Offset, err)
	}
	if _, err := j.Decide(&dec); !errors.Is(err, ErrEnded) {
		t.Errorf("a decision after closing: %v", err)
	}
}

// What a large journal did not use is given back.
func TestUnusedRoomIsGivenBack(t *testing.T) {
	j := create1(t, Options{Dir: dir(t), Head: testHead("run1")})
	dec := words(t, j)
	for i := range 4 * firstChunk / 64 {
		dec.Target = "/t/" + strconv.Itoa(i)
		decide(t, j, &dec)
	}
	if info, err := os.Stat(j.Path()); err != nil || info.Size() <= j.off {
		t.Fatalf("control: %d bytes are allocated for %d (%v)", info.Size(), j.off, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(j.Path()); err != nil || info.Size() != j.off {
		t.Errorf("the closed file has %d bytes, %d are used (%v)", info.Size(), j.off, err)
	}
}

// The digest of a result is that of its bytes under a key of the home: the same
// in each run of one home, another in another, and not one that can be guessed.
func TestResultsAreDigestedUnderAKey(t *testing.T) {
	home := dir(t)
	one := create1(t, Options{Dir: home, Head: testHead("run1")})
	next := create1(t, Options{Dir: home, Head: testHead("run2")})
	other := create1(t, Options{Dir: dir(t), Head: testHead("run1")})
	sum := one.ResultHash([]byte("result"))
	switch {
	case sum != one.ResultHash([]byte("result")), sum != next.ResultHash([]byte("result")):
		t.Error("the same result has two digests")
	case sum == one.ResultHash([]byte("resul")), sum == other.ResultHash([]byte("result")),
		sum == sha256.Sum256([]byte("result")):
		t.Error("different things have one digest")
	}
}
