package journal

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
)

// seeded returns a generator whose seed is printed when the test fails.
func seeded(t testing.TB, seed uint64) *rand.Rand {
	if s, err := strconv.ParseUint(os.Getenv("RLP_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("RLP_SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, seed))
}

// A run that cannot record any more is told so, nothing is recorded twice or
// half, and there is always room for the record that ends it.
//
//rlp:holds R71
func TestFull(t *testing.T) {
	d := dir(t)
	j := create1(t, Options{Dir: d, Head: testHead("run1"), MaxBytes: 256 << 10})
	dec := words(t, j)
	var err error
	n := 0
	for ; n < 10000; n++ {
		dec.Target = "/t/" + strconv.Itoa(n)
		if _, err = j.Decide(&dec); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("after %d decisions: %v", n, err)
	}
	if _, err := j.Decide(&dec); !errors.Is(err, ErrFull) {
		t.Errorf("once more: %v", err)
	}
	if err := j.Event(&audit.Event{Kind: audit.KindRunFailed, Outcome: "audit_failed", ExitCode: 74}); err != nil {
		t.Errorf("the end: %v", err)
	}
	if got := records(t, d, "run1"); len(got) != n+1 || got[n].Kind() != audit.KindRunFailed {
		t.Errorf("%d decisions were acknowledged, %d records are there", n, len(got))
	}
}

// A file that is cut under its writer is an error of the next decision, not
// the end of the process, and it stays one.
//
//rlp:holds R71
func TestTruncatedUnderWriter(t *testing.T) {
	for _, size := range []int64{0, 100, 40 << 10} {
		d := dir(t)
		j := create1(t, Options{Dir: d, Head: testHead("run1")})
		dec := words(t, j)
		decide(t, j, &dec) // the control: it works until the file is cut
		if err := os.Truncate(j.Path(), size); err != nil {
			t.Fatal(err)
		}
		var err error
		for i := 0; i < 20000 && err == nil; i++ {
			dec.Target = "/t/" + strconv.Itoa(i)
			_, err = j.Decide(&dec)
		}
		if !errors.Is(err, ErrBroken) {
			t.Fatalf("cut to %d: %v", size, err)
		}
		if _, err := j.Decide(&dec); !errors.Is(err, ErrBroken) {
			t.Errorf("cut to %d, once more: %v", size, err)
		}
		if err := j.Event(&audit.Event{Kind: audit.KindRunFailed}); !errors.Is(err, ErrBroken) {
			t.Errorf("cut to %d, the end: %v", size, err)
		}
		if err := j.Close(); !errors.Is(err, ErrBroken) {
			t.Errorf("cut to %d, closing: %v", size, err)
		}
	}
}

// A panic that is not the mapping's goes on.
func TestFaultPassesOtherPanics(t *testing.T) {
	j := create1(t, Options{Dir: dir(t), Head: testHead("run1")})
	defer func() {
		if recover() == nil {
			t.Error("a nil decision was swallowed")
		}
	}()
	j.fault(errors.New("something else"))
}

// closedJournal writes a journal of n decisions and an end, and returns its bytes.
func closedJournal(t testing.TB, d string, n int) []byte {
	t.Helper()
	j := create1(t, Options{Dir: d, Head: testHead("run1")})
	dec := words(t, j)
	for i := range n {
		dec.Target = "/t/" + strconv.Itoa(i/2) // every other one is a repetition
		decide(t, j, &dec)
	}
	if err := j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	return p[:j.off] // what follows is room that was not used
}

// verdict reads the bytes as a journal whose writer is gone.
func verdict(t testing.TB, d string, p []byte) (n int, torn bool, err error) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(d, "run1"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(p, 0)
	if err := errors.Join(err, f.Truncate(int64(len(p))), f.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(d, "run1", State{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	recs, err := readAll(r)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return len(recs), false, err
	}
	torn, err = r.Tail()
	return len(recs), torn, err
}

// Every flipped bit is found: in the last frame it loses that frame and says
// so, before that it is an error.
func TestFlippedBits(t *testing.T) {
	d := dir(t)
	p := closedJournal(t, d, 20)
	want, torn, err := verdict(t, d, p)
	if want != 21 || torn || err != nil { // the control
		t.Fatalf("untouched: %d records, torn %v, %v", want, torn, err)
	}
	last := len(p) - 8
	for ; ; last -= 8 { // where the last frame begins
		if w := binary.LittleEndian.Uint64(p[last:]); int(uint32(w)) == len(p)-last && w>>32 > 20 {
			break
		}
	}
	for bit := range len(p) * 8 {
		q := append([]byte(nil), p...)
		q[bit/8] ^= 1 << (bit % 8)
		n, torn, err := verdict(t, d, q)
		switch {
		case bit/8 < last && !errors.Is(err, ErrDamaged):
			t.Fatalf("bit %d flipped: %d records, torn %v, %v", bit, n, torn, err)
		case bit/8 >= last && (n != want-1 || !torn && err == nil):
			t.Fatalf("bit %d of the last frame flipped: %d records, torn %v, %v", bit, n, torn, err)
		}
	}
}

// A frame that was taken out, put in, moved or blanked is found.
func TestEditedJournal(t *testing.T) {
	d := dir(t)
	p := closedJournal(t, d, 20)
	key, err := readSecret(filepath.Join(d, secretName))
	if err != nil {
		t.Fatal(err)
	}
	var at []int
	for off := 0; off < len(p); {
		at = append(at, off)
		_, n, _, err := parseFrame(p[off:], key.seed("run1"))
		if err != nil {
			t.Fatal(err)
		}
		off += n
	}
	join := func(parts ...[]byte) (out []byte) {
		for _, x := range parts {
			out = append(out, x...)
		}
		return out
	}
	for i := 1; i+2 < len(at); i++ {
		a, b, c := at[i], at[i+1], at[i+2]
		for name, q := range map[string][]byte{
			"taken out": join(p[:a], p[b:]),
			"twice":     join(p[:b], p[a:]),
			"exchanged": join(p[:a], p[b:c], p[a:b], p[c:]),
			"blanked":   join(p[:a], make([]byte, b-a), p[b:]),
		} {
			if n, _, err := verdict(t, d, q); !errors.Is(err, ErrDamaged) {
				t.Errorf("frame %d %s: %d records, %v", i+1, name, n, err)
			}
		}
	}
	other := dir(t)
	closedJournal(t, other, 20)
	if n, _, err := verdict(t, other, p); n != 0 {
		t.Errorf("the journal of another home reads as %d records, %v", n, err)
	}
}

// A journal that ends anywhere reads as what is whole before that place.
func TestTornAnywhere(t *testing.T) {
	d := dir(t)
	p := closedJournal(t, d, 20)
	for _, tail := range []int{0, 4096} { // cut, and cut within what was allocated
		before := 0
		for cut := range len(p) {
			n, _, err := verdict(t, d, append(append([]byte(nil), p[:cut]...), make([]byte, tail)...))
			if err != nil || n < before || n > before+1 {
				t.Fatalf("cut at %d of %d: %d records after %d, %v", cut, len(p), n, before, err)
			}
			before = n
		}
	}
}

// FuzzReader: no bytes make a reader panic, loop, or return more than they hold.
func FuzzReader(f *testing.F) {
	d := dir(f)
	p := closedJournal(f, d, 6)
	key, err := readSecret(filepath.Join(d, secretName))
	if err != nil {
		f.Fatal(err)
	}
	codec, err := audit.NewCodec()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p, false)
	f.Add(p[:len(p)/2], true)
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 0}, true)
	file, err := os.CreateTemp(f.TempDir(), "j")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { file.Close() })
	f.Fuzz(func(t *testing.T, p []byte, reseal bool) {
		if reseal {
			p = sealed(p, key.seed("run1"))
		}
		_, err := file.WriteAt(p, 0)
		if err := errors.Join(err, file.Truncate(int64(len(p)))); err != nil {
			t.Fatal(err)
		}
		r := newReader(file, "run1", key, codec, key.seed("run1"))
		for i := 0; ; i++ {
			rec, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
				break
			}
			if _, err := codec.Encode(rec); err != nil || i > len(p)/8 {
				t.Fatalf("record %d of %d bytes: %+v %v", i, len(p), rec, err)
			}
		}
		if _, err := r.Tail(); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
}

// sealed gives every frame of p, as far as it has any shape, a right sum and
// index, so that fuzzing gets behind them.
func sealed(p []byte, seed uint64) []byte {
	p = append([]byte(nil), p...)
	index := uint32(0)
	for off := 0; off+headerLen <= len(p); {
		index++
		w := binary.LittleEndian.Uint64(p[off:])
		if which := w & 7; which != 0 && which <= repeatable {
			binary.LittleEndian.PutUint64(p[off:], repeatWord(seed, index, which, w&repeatBits>>3))
			off += repeatLen
			continue
		}
		n := int(uint32(w))
		if n < headerLen || n%8 != 0 || n > len(p)-off {
			break
		}
		w = uint64(n) | uint64(index)<<32
		binary.LittleEndian.PutUint64(p[off:], w)
		head := binary.LittleEndian.Uint64(p[off+8:]) &^ 0xffffffff
		binary.LittleEndian.PutUint64(p[off+8:], head|uint64(sum(seed, w, head, p[off+headerLen:off+n])))
		off += n
	}
	return p
}

// A run may record so many decisions and no more; its end is recorded all the same.
func TestDecisionsAreBounded(t *testing.T) {
	d := dir(t)
	j := create1(t, Options{Dir: d, Head: testHead("run1"), MaxDecisions: 100})
	dec := words(t, j)
	n := 0
	for ; n < 1000; n++ {
		if _, err := j.Decide(&dec); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			break
		}
	}
	if n == 0 || n > 100 {
		t.Errorf("%d decisions of 100", n)
	}
	if err := j.Event(&audit.Event{Kind: audit.KindRunFailed, Outcome: "audit_failed"}); err != nil {
		t.Errorf("the end cannot be recorded: %v", err)
	}
}

// A journal that is removed under its writer is noticed at the end.
func TestRemovedJournalIsAnError(t *testing.T) {
	j := create1(t, Options{Dir: dir(t), Head: testHead("run1")})
	if err := os.Remove(j.Path()); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); !errors.Is(err, ErrBroken) {
		t.Errorf("Close() = %v", err)
	}
}

// Frames of any size are read back whole.
func TestLargeFramesAreRead(t *testing.T) {
	for _, size := range []int{60 << 10, 64 << 10, 66 << 10, 200 << 10, 700 << 10} {
		d := dir(t)
		j := create1(t, Options{Dir: d, Head: testHead("run1")})
		message := strings.Repeat("m", size)
		if err := j.Event(&audit.Event{Kind: audit.KindRunFailed, Message: message}); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := OpenReader(d, "run1", State{})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := r.Next()
		if err != nil || rec.Event == nil || rec.Event.Message != message {
			t.Errorf("%d bytes: %v", size, err)
		}
		r.Close()
	}
}
