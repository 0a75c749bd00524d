package evidence

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// Every record of every size is proved, and so is every size of every later one.
func TestProofsHold(t *testing.T) {
	const most = 20
	f := grow(t, most)
	key := f.key.Public()
	for size := 1; size <= most; size++ {
		for i := range size {
			fact, err := Check(f.inclusion(i, size).AppendText(nil), key)
			if err != nil || fact.Record.Seq != uint64(i+1) || fact.New.Size != uint64(size) {
				t.Fatalf("record %d of %d: %+v, %v", i, size, fact, err)
			}
		}
		for from := range size + 1 {
			fact, err := Check(f.consistency(from, size).AppendText(nil), key)
			if err != nil || fact.Old.Size != uint64(from) || fact.New.Size != uint64(size) {
				t.Fatalf("%d to %d: %+v, %v", from, size, fact, err)
			}
		}
	}
}

// No byte of a proof can be another: it is not read any more, or not true.
func TestProofsBreak(t *testing.T) {
	f := grow(t, 11)
	key := f.key.Public()
	inclusion, consistency := f.inclusion(4, 11).AppendText(nil), f.consistency(3, 11).AppendText(nil)
	rapid.Check(t, func(t *rapid.T) {
		text := bytes.Clone(rapid.SampledFrom([][]byte{inclusion, consistency}).Draw(t, "proof"))
		at, to := rapid.IntRange(0, len(text)-1).Draw(t, "at"), rapid.Byte().Draw(t, "to")
		if text[at] == to {
			return
		}
		text[at] = to
		if fact, err := Check(text, key); err == nil {
			t.Errorf("byte %d may be %q: %+v", at, to, fact)
		}
	})
}

// What is whole and not true is a mismatch, which is another thing than a file
// that cannot be read.
func TestMismatches(t *testing.T) {
	f, g := grow(t, 9), grow(t, 9)
	key := f.key.Public()
	moved := f.inclusion(3, 9)
	moved.Index = 4
	lied := f.inclusion(3, 9)
	lied.Record = bytes.Replace(lied.Record, []byte("cap.audit"), []byte("call.done"), 1)
	back := f.consistency(3, 9)
	back.Old, back.New = back.New, back.Old
	forged := f.inclusion(3, 9)
	forged.Checkpoint = bytes.Replace(g.checkpoint(9), []byte(g.key.Public().Origin()), []byte(key.Origin()), 2)
	beyond := f.inclusion(3, 9)
	beyond.Index = 9
	for name, c := range map[string]struct {
		text []byte
		want error
	}{
		"moved":         {moved.AppendText(nil), ErrMismatch},
		"beyond":        {beyond.AppendText(nil), ErrMismatch},
		"another text":  {lied.AppendText(nil), ErrMismatch},
		"backwards":     {back.AppendText(nil), ErrMismatch},
		"forged":        {forged.AppendText(nil), ErrMismatch},
		"of a stranger": {g.inclusion(3, 9).AppendText(nil), ErrOther},
	} {
		if _, err := Check(c.text, key); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := Check([]byte("hello\n"), key); err == nil || errors.Is(err, ErrMismatch) {
		t.Errorf("no proof at all: %v", err)
	}
}

// A record that stands at another place than its seq says is found, though the
// tree has it there.
func TestSeqIsThePlace(t *testing.T) {
	twice := grow(t, 2)
	h, err := tlog.StoredHashes(2, twice.records[1], twice)
	if err != nil {
		t.Fatal(err)
	}
	twice.records, twice.hashes = append(twice.records, twice.records[1]), append(twice.hashes, h...)
	if _, err := Check(twice.inclusion(2, 3).AppendText(nil), twice.key.Public()); !errors.Is(err, ErrMismatch) ||
		!strings.Contains(err.Error(), "seq") {
		t.Errorf("a record twice: %v", err)
	}
}

// What is read is written in one way, so that no two files say the same.
func TestOneSpelling(t *testing.T) {
	f := grow(t, 5)
	text := string(f.inclusion(2, 5).AppendText(nil))
	extra := "extra " + base64.StdEncoding.EncodeToString(f.records[2])
	for name, bad := range map[string]string{
		"CR":           strings.ReplaceAll(text, "\n", "\r\n"),
		"leading zero": strings.Replace(text, "index 2", "index 02", 1),
		"sign":         strings.Replace(text, "index 2", "index +2", 1),
		"no extra":     strings.Replace(text, extra+"\n", "", 1),
		"extra twice":  strings.Replace(text, extra, extra+"\n"+extra, 1),
		"space":        strings.Replace(text, extra, extra+" ", 1),
		"a hash more":  strings.Replace(text, "index 2\n", "index 2\n"+strings.Repeat("A", 43)+"=\n", 1),
		"hashes": strings.Replace(text, "index 2\n", "index 2\n"+strings.Repeat(strings.Repeat("A", 43)+"=\n",
			maxHashes+1), 1),
		"no last line end": strings.TrimSuffix(text, "\n"),
		"text behind":      text + "\nhello\n",
		"extension line":   strings.Replace(text, "\n5\n", "\n5\nmore\n", 1),
		"nothing":          "",
		"header alone":     inclusionHeader + "\n",
	} {
		if bad == text {
			t.Fatalf("%s: changes nothing", name)
		}
		if _, err := Check([]byte(bad), f.key.Public()); err == nil {
			t.Errorf("%s: taken:\n%s", name, bad)
		}
	}
}

// A file of several proofs is those proofs, of both kinds.
func TestSeveralProofs(t *testing.T) {
	f := grow(t, 7)
	want := [][]byte{
		f.inclusion(2, 7).AppendText(nil), f.consistency(3, 7).AppendText(nil),
		f.inclusion(0, 1).AppendText(nil), f.consistency(7, 7).AppendText(nil),
	}
	got := SplitProofs(bytes.Join(want, []byte("\n")))
	if len(got) != len(want) {
		t.Fatalf("%d proofs, want %d", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("proof %d is %q", i, got[i])
		}
		if _, err := Check(got[i], f.key.Public()); err != nil {
			t.Error(err)
		}
	}
}

// A witness may sign below the log: its line is no harm.
func TestWitnesses(t *testing.T) {
	f, w := grow(t, 3), grow(t, 1)
	note := f.checkpoint(3)
	sig, err := w.key.signer.Sign([]byte("whatever"))
	if err != nil {
		t.Fatal(err)
	}
	note = append(note, "— witness.example/w1 "+base64.StdEncoding.EncodeToString(append([]byte{1, 2, 3, 4}, sig...))+
		"\n"...)
	if c, err := f.key.Public().Open(note); err != nil || c.Size != 3 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A file of checkpoints is read whatever was interrupted in it.
func TestNotes(t *testing.T) {
	f := grow(t, 9)
	a, b, c := f.checkpoint(2), f.checkpoint(5), f.checkpoint(9)
	torn := string(b[:len(b)-20])
	for name, tt := range map[string]struct {
		text  string
		whole int
		torn  int
	}{
		"one":             {string(a), 1, 0},
		"three":           {string(JoinNotes([][]byte{a, b, c})), 3, 0},
		"many lines":      {"\n\n" + string(a) + "\n\n\n" + string(b), 2, 0},
		"torn in the end": {string(a) + "\n" + torn, 1, 1},
		"torn, mended":    {torn + "\n\n" + string(b) + "\n" + string(c), 2, 1},
		"torn early":      {string(b[:30]) + "\n\n" + string(b), 1, 1},
		"text":            {"hello\n", 0, 1},
		"nothing":         {"", 0, 0},
		"signatures":      {"— x y\n\n" + string(a), 1, 1},
	} {
		whole, bad := 0, 0
		for _, n := range SplitNotes([]byte(tt.text)) {
			if n.Torn != "" {
				bad++
				continue
			}
			if _, err := f.key.Public().Open(n.Text); err != nil {
				bad++
				continue
			}
			whole++
		}
		if whole != tt.whole || bad != tt.torn {
			t.Errorf("%s: %d whole, %d torn, want %d and %d", name, whole, bad, tt.whole, tt.torn)
		}
	}
}

// FuzzCheck holds that nothing that is read has two spellings, whatever it is.
func FuzzCheck(f *testing.F) {
	w := grow(f, 6)
	f.Add(w.inclusion(3, 6).AppendText(nil))
	f.Add(w.inclusion(0, 1).AppendText(nil))
	f.Add(w.consistency(3, 6).AppendText(nil))
	f.Add(w.consistency(6, 6).AppendText(nil))
	f.Add(JoinNotes([][]byte{w.checkpoint(3), w.checkpoint(6)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := ParseInclusion(data); err == nil && !bytes.Equal(p.AppendText(nil), data) {
			t.Errorf("two spellings of %q", data)
		}
		if p, err := ParseConsistency(data); err == nil && !bytes.Equal(p.AppendText(nil), data) {
			t.Errorf("two spellings of %q", data)
		}
		for _, p := range SplitProofs(data) {
			if fact, err := Check(p, w.key.Public()); err == nil && fact == nil {
				t.Error("neither a fact nor an error")
			}
		}
		for _, n := range SplitNotes(data) {
			_, err := w.key.Public().Open(n.Text)
			if n.Torn != "" && err == nil {
				t.Errorf("%q is whole", n.Text)
			}
		}
	})
}

// A mark is signed like a checkpoint, and is never taken for one.
func TestMarks(t *testing.T) {
	f := grow(t, 3)
	key := f.key.Public()
	c, err := key.Open(f.checkpoint(3))
	if err != nil {
		t.Fatal(err)
	}
	mark, err := f.key.SealMark(3, c.Root, []string{"pruned 2"})
	if err != nil {
		t.Fatal(err)
	}
	if got, lines, err := key.OpenNote(mark); err != nil || got != c || len(lines) != 1 || lines[0] != "pruned 2" {
		t.Errorf("%+v, %q, %v", got, lines, err)
	}
	if _, err := key.Open(mark); err == nil {
		t.Error("a mark is taken for a checkpoint")
	}
	if got, lines, err := key.OpenNote(f.checkpoint(3)); err != nil || got != c || len(lines) != 0 {
		t.Errorf("a checkpoint: %+v, %q, %v", got, lines, err)
	}
	if _, _, err := key.OpenNote(bytes.Replace(mark, []byte("pruned 2"), []byte("pruned 3"), 1)); !errors.Is(err,
		ErrMismatch) {
		t.Errorf("a mark that was changed: %v", err)
	}
	for _, lines := range [][]string{nil, {""}, {"a\nb"}} {
		if _, err := f.key.SealMark(3, c.Root, lines); err == nil {
			t.Errorf("%q: signed", lines)
		}
	}
}
