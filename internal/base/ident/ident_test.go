package ident

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

//rlp:holds R4
func TestParseAgent(t *testing.T) {
	for _, s := range []string{"a", "writer", "a-b", "a_b", "a0", "z" + strings.Repeat("9", 63)} {
		a, err := ParseAgent(s)
		if err != nil || a.String() != s || a.IsZero() {
			t.Errorf("ParseAgent(%q) = %q, %v", s, a, err)
		}
	}
	refused := []string{
		"", ".", "..", "../x", "../../etc/cron.d/x", "a/b", `a\b`, "/a", "a/", "a\x00", "a\n", "a.toml", "Writer", "wRiter",
		"0a", "-a", "_a", "é", "a\u0301", "a b", "a:b", "~", "%2e%2e", "a" + strings.Repeat("b", 64),
		strings.Repeat("x", 1<<20), "\xff", "a\xff",
	}
	for _, s := range refused {
		a, err := ParseAgent(s)
		if err == nil || !a.IsZero() || a.String() != "" {
			t.Errorf("ParseAgent(%.80q) = %q, want it refused", s, a)
			continue
		}
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "write ") || len(err.Error()) > 600 {
			t.Errorf("ParseAgent(%.80q): %v does not say what to write", s, err)
		}
	}
}

// Control: a name that is not checked leaves the folder it is put into.
func TestUncheckedAgentLeavesItsFolder(t *testing.T) {
	home := t.TempDir()
	victim := filepath.Join(home, "victim.toml")
	if err := os.WriteFile(victim, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const hostile = "../victim"
	if _, err := os.ReadFile(filepath.Join(home, "overrides", hostile+".toml")); err != nil {
		t.Errorf("control: %v", err)
	}
	if _, err := ParseAgent(hostile); err == nil {
		t.Error("the hostile id was parsed")
	}
}

// No two ids share a file: nothing is mapped, so a-b is not a_b and a
// difference in case is refused.
//
//rlp:holds R4
func TestAgentIsNeverMapped(t *testing.T) {
	a, _ := ParseAgent("a-b")
	b, _ := ParseAgent("a_b")
	if a == b || a.String() == b.String() {
		t.Error("a-b and a_b are one")
	}
	var e *Error
	if _, err := ParseAgent("Writer"); !errors.As(err, &e) || e.Hint != "writer" {
		t.Errorf("hint %+v, want writer", e)
	}
}

func TestSuggestionsAreIds(t *testing.T) {
	for in, want := range map[string]string{
		"My Agent": "my-agent", "9lives": "lives", "v1.0": "v1-0", "a/b": "", "..": "", "": "", "Ünder": "",
	} {
		if got := suggest(in); got != want {
			t.Errorf("suggest(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseTenant(t *testing.T) {
	for _, s := range []string{"default", "A", "0", "_", "-", "Acme-1_x", strings.Repeat("T", 64)} {
		if got, err := ParseTenant(s); err != nil || got.String() != s || got.IsZero() {
			t.Errorf("ParseTenant(%q) = %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", ".", "..", "a/b", "a.b", "a b", "a\x00", "é", strings.Repeat("T", 65), "a\n"} {
		if got, err := ParseTenant(s); !errors.Is(err, ErrInvalid) || !got.IsZero() {
			t.Errorf("ParseTenant(%q) = %q, %v", s, got, err)
		}
	}
}

func TestRun(t *testing.T) {
	last := ""
	for range 1000 {
		r, err := NewRun()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseRun(r.String())
		if err != nil || back != r {
			t.Fatalf("ParseRun(%s) = %v, %v", r, back, err)
		}
		if r.String() <= last {
			t.Fatalf("%s does not sort after %s", r, last)
		}
		last = r.String()
	}
	if (Run{}).String() != "" || !(Run{}).IsZero() {
		t.Error("the zero Run has a name")
	}
	for _, s := range []string{
		"", "x", uuid.NewString(), strings.ToUpper(last), "{" + last + "}", "urn:uuid:" + last,
		strings.ReplaceAll(last, "-", ""), uuid.Nil.String(), last + "/..", "../" + last,
	} {
		if r, err := ParseRun(s); !errors.Is(err, ErrInvalid) || !r.IsZero() {
			t.Errorf("ParseRun(%q) = %v, %v", s, r, err)
		}
	}
}

// What is parsed matches the pattern of the contract and is one component of a
// path that stays where it is put; what is refused does not match.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"writer", "../x", "A_b-9", "", "a\x00", "a\n", "0190b9b0-0000-7000-8000-000000000000"} {
		f.Add(s)
	}
	agent := regexp.MustCompile(`\A[a-z][a-z0-9_-]{0,63}\z`)
	tenant := regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)
	run := regexp.MustCompile(`\A[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		a, errA := ParseAgent(s)
		n, errT := ParseTenant(s)
		r, errR := ParseRun(s)
		for _, c := range []struct {
			ok   bool
			re   *regexp.Regexp
			text string
		}{{errA == nil, agent, a.String()}, {errT == nil, tenant, n.String()}, {errR == nil, run, r.String()}} {
			if c.ok != c.re.MatchString(s) {
				t.Fatalf("%q: parsed %v, pattern %v says %v", s, c.ok, c.re, !c.ok)
			}
			if !c.ok && c.text != "" || c.ok && c.text != s {
				t.Fatalf("%q became %q", s, c.text)
			}
			if c.ok && (filepath.Base(s) != s || !filepath.IsLocal(s)) {
				t.Fatalf("%q is more than one component", s)
			}
		}
		for _, err := range []error{errA, errT, errR} {
			var e *Error
			if errors.As(err, &e) && e.Hint != "" && !agent.MatchString(e.Hint) {
				t.Fatalf("%q: hint %q is no id", s, e.Hint)
			}
		}
	})
}

// A file without a bundle is named by rule, and never as nothing.
func TestAgentOfAFile(t *testing.T) {
	for file, want := range map[string]string{
		"notes.wasm": "notes", "Notes.WASM": "notes", "Data Reader.wasm": "data_reader", "2048": "m_2048",
		"_default.wasm": "m__default",
		"-x.wasm":       "m_-x", ".wasm": "m_", "a.b.wasm": "a_b", "Ü\xff.wasm": "m___", "../x": "m____x", "a:b\n": "a_b_",
		"K":                               "k",
		strings.Repeat("a", 64) + ".wasm": strings.Repeat("a", 64),
	} {
		a, err := AgentOf(file)
		if err != nil || a.String() != want {
			t.Errorf("%q is %q, %v; want %s", file, a, err, want)
		}
	}
	if a, err := AgentOf(strings.Repeat("a", 65)); !errors.Is(err, ErrInvalid) || !a.IsZero() {
		t.Errorf("%q, %v", a, err)
	}
}
