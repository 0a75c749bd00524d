package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// counting counts what is fetched.
type counting struct {
	memory
	gets int
}

func (c *counting) Get(ctx context.Context, id ID) ([]byte, error) {
	c.gets++
	return c.memory.Get(ctx, id)
}

func permit(string) error { return nil }

// A guest holds handles: of one form, one a secret, not to be guessed, and of
// no use in another run.
//
//rlp:holds R82
func TestHandles(t *testing.T) {
	p := &counting{memory: memory{idOf(t, "runloop/a/b"): "correct-horse", idOf(t, "runloop/a/c"): "battery-staple"}}
	opened := 0
	r := NewRun(func() (Provider, error) { opened++; return p, nil })
	if opened != 0 || p.gets != 0 {
		t.Error("something was opened before a handle was asked for")
	}
	one, err := r.Handle(t.Context(), "runloop/a/b")
	if err != nil || !regexp.MustCompile(`^rlsec_[a-z2-7]{32}$`).MatchString(one) {
		t.Fatalf("Handle = %q, %v", one, err)
	}
	again, _ := r.Handle(t.Context(), "runloop/a/b")
	two, _ := r.Handle(t.Context(), "runloop/a/c")
	if one != again || one == two || opened != 1 || p.gets != 2 {
		t.Errorf("%q %q %q, opened %d, fetched %d", one, again, two, opened, p.gets)
	}
	other := NewRun(func() (Provider, error) { return p, nil })
	if theirs, _ := other.Handle(t.Context(), "runloop/a/b"); theirs == one {
		t.Error("two runs have one handle")
	}
	if _, err := other.Fill("Bearer "+one, permit); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another run's handle: %v", err)
	}
	for _, id := range []string{"runloop/a/none", "a/b", ""} {
		if _, err := r.Handle(t.Context(), id); err == nil {
			t.Errorf("%q has a handle", id)
		}
	}
}

func TestFill(t *testing.T) {
	r := runWith(t, "correct-horse", "battery-staple")
	a, _ := r.Handle(t.Context(), "runloop/test/s0")
	b, _ := r.Handle(t.Context(), "runloop/test/s1")
	var asked []string
	admit := func(id string) error { asked = append(asked, id); return nil }
	for in, want := range map[string]string{
		"":                    "",
		"plain":               "plain",
		a:                     "correct-horse",
		"Bearer " + a:         "Bearer correct-horse",
		a + ":" + b + a + "x": "correct-horse:battery-staplecorrect-horsex",
	} {
		if got, err := r.Fill(in, admit); err != nil || got != want {
			t.Errorf("Fill(%q) = %q, %v", in, got, err)
		}
	}
	if strings.Join(asked, " ") == "" {
		t.Error("nobody was asked")
	}
	refused := errors.New("refused")
	if got, err := r.Fill("x "+a, func(string) error { return refused }); !errors.Is(err, refused) || got != "" {
		t.Errorf("refused: %q, %v", got, err)
	}
	for _, in := range []string{"rlsec_", "rlsec_abc", "x rlsec_" + strings.Repeat("a", 32), strings.ToUpper(a) +
		"rlsec_x", a[:len(a)-1]} {
		if got, err := r.Fill(in, permit); !errors.Is(err, fs.ErrNotExist) || got != "" {
			t.Errorf("Fill(%q) = %q, %v", in, got, err)
		}
	}
	if words := r.Named(a + b + a + " rlsec_x"); len(words) != 3 {
		t.Errorf("Named = %q", words)
	}
}

// What was put in and comes back is taken out.
//
//rlp:holds R82 K11
func TestWhatIsFilledInIsScrubbed(t *testing.T) {
	r := runWith(t, "correct-horse")
	h, _ := r.Handle(t.Context(), "runloop/test/s0")
	sent, err := r.Fill("Authorization: Bearer "+h, permit)
	if err != nil || !strings.Contains(sent, "correct-horse") {
		t.Fatalf("control: %q, %v", sent, err)
	}
	for name, echo := range encodings(sent) {
		back := string(r.Scrub([]byte(echo), ignore))
		for how, text := range encodings("correct-horse") {
			if strings.Contains(back, core(how, text, len("correct-horse"))) {
				t.Errorf("echoed as %s: %q", name, back)
			}
		}
	}
}

// Whatever a text is made of, filling it puts in the values of its handles and
// nothing else, and scrubbing takes them out again.
func TestFillThenScrubNeverLeaks(t *testing.T) {
	values := []string{"correct-horse", "k9/+p=w&d \"q\"\\x"}
	r := runWith(t, values...)
	handles := make([]string, len(values))
	for i := range values {
		handles[i], _ = r.Handle(t.Context(), fmt.Sprintf("runloop/test/s%d", i))
	}
	rapid.Check(t, func(t *rapid.T) {
		var text, want, marked strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "parts") {
			if i := rapid.IntRange(0, 4).Draw(t, "part"); i < len(values) {
				text.WriteString(handles[i])
				want.WriteString(values[i])
				fmt.Fprintf(&marked, "[secret runloop/test/s%d]", i)
			} else {
				part := rapid.StringMatching(`[ -$&-.0-Z^-z\n]{0,20}`).Draw(t, "text")
				text.WriteString(part)
				want.WriteString(part)
				marked.WriteString(part)
			}
		}
		got, err := r.Fill(text.String(), permit)
		if err != nil || got != want.String() {
			t.Fatalf("Fill(%q) = %q, %v", text.String(), got, err)
		}
		if back := string(r.Scrub([]byte(got), ignore)); back != marked.String() {
			t.Fatalf("%q became %q", got, back)
		}
	})
}

// A key that the host uses itself is known like any other.
func TestRevealedValuesAreScrubbed(t *testing.T) {
	p := memory{idOf(t, "runloop/model/key"): "sk-model-key-1"}
	r := NewRun(func() (Provider, error) { return p, nil })
	if got := string(r.Scrub([]byte("sk-model-key-1"), ignore)); got != "sk-model-key-1" {
		t.Fatalf("control: %q", got)
	}
	if v, err := r.Reveal(t.Context(), "runloop/model/key"); err != nil || v != "sk-model-key-1" {
		t.Fatalf("Reveal = %q, %v", v, err)
	}
	var told []string
	got := string(r.Scrub([]byte("key sk-model-key-1"), func(id string) { told = append(told, id) }))
	if got != "key [secret runloop/model/key]" || len(told) != 1 || told[0] != "runloop/model/key" {
		t.Errorf("%q, told %q", got, told)
	}
}

func TestValuesThatCannotBeKeptOut(t *testing.T) {
	p := memory{idOf(t, "runloop/a/short"): "12345", idOf(t, "runloop/a/long"): strings.Repeat("x", MaxValue+1)}
	r := NewRun(func() (Provider, error) { return p, nil })
	if h, err := r.Handle(t.Context(), "runloop/a/short"); !errors.Is(err, ErrShort) {
		t.Errorf("%q, %v", h, err)
	}
	if h, err := r.Handle(t.Context(), "runloop/a/long"); !errors.Is(err, ErrLong) {
		t.Errorf("%q, %v", h, err)
	}
}

func TestCloseForgets(t *testing.T) {
	r := runWith(t, "correct-horse")
	h, _ := r.Handle(t.Context(), "runloop/test/s0")
	value := r.byHandle[h].value
	r.Close()
	if strings.Trim(string(value), "\x00") != "" {
		t.Errorf("the value is still there: %q", value)
	}
	if _, err := r.Handle(t.Context(), "runloop/test/s0"); err == nil {
		t.Error("a run that has ended fetches values")
	}
	if _, err := r.Fill(h, permit); err == nil {
		t.Error("a run that has ended fills handles")
	}
}

func TestWithoutValuesNothingIsCopied(t *testing.T) {
	r := NewRun(nil)
	text := []byte("some output")
	write := r.Stream(ignore)
	if n := testing.AllocsPerRun(100, func() {
		if &r.Scrub(text, ignore)[0] != &text[0] || &write(text, false)[0] != &text[0] {
			t.Error("copied")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
