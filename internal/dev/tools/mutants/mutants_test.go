package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// module is a package whose tests notice some of its mutants.
var module = map[string]string{
	"go.mod": "module example.test/m\n\ngo 1.26\n",
	"m.go": `package m

import "errors"

type Name bool

const limit = 3 + 1

// Allowed is tested at its boundary.
func Allowed(n int) error {
	if n < 0 || n > limit {
		return errors.New("out of range")
	}
	return nil
}

var logged int

func Logged(n int) int {
	logged++
	return n + 1
}

func Named(n int) Name { return n > 5 }

func Unused(n int) bool { return n > 5 }

func Stops() int {
	n := 0
	for n < 3 {
		n++
	}
	return n
}

func Never() int { panic("never") }

// Both is answered by one call of many lines.
func Both() (int, error) {
	return pair(func() int {
		// line 1
		// line 2
		// line 3
		// line 4
		// line 5
		// line 6
		// line 7
		// line 8
		// line 9
		// line 10
		// line 11
		return 11
	})
}

func pair(f func() int) (int, error) { return f(), nil }
`,
	"m_test.go": `package m

import "testing"

func TestAllowed(t *testing.T) {
	for n, want := range map[int]bool{-1: false, 0: true, 4: true, 5: false} {
		if (Allowed(n) == nil) != want {
			t.Errorf("%d", n)
		}
	}
}

func TestBoth(t *testing.T) {
	if n, err := Both(); n != 11 || err != nil {
		t.Error("not 11")
	}
}

func TestStops(t *testing.T) {
	if Stops() != 3 {
		t.Error("not 3")
	}
}

func TestLogged(t *testing.T) {
	if Logged(1) != 2 {
		t.Error("not 2")
	}
}

func TestFails(t *testing.T) { t.Error("without any mutant") }
`,
}

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMutantsAreFoundTriedAndExplained(t *testing.T) {
	dir := write(t, module)
	known := filepath.Join(t.TempDir(), "explained.tsv")
	explain := func(text string) {
		if err := os.WriteFile(known, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(target float64) (string, bool) {
		t.Helper()
		var out strings.Builder
		good, err := hunt(&out, options{root: dir, explained: known, target: target, jobs: 2, most: 20 * time.Second},
			[]string{"."})
		if err != nil {
			t.Fatal(err)
		}
		return out.String(), good
	}
	explain("")
	out, good := run(90)
	for _, want := range []string{
		"survives: m.go:20: Logged: without logged++ [1]\n",
		"not reached: m.go:26: Unused: >= in n > 5 [1]\n",
		"left out, for they fail or take over 20s here: TestFails\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	for _, unwanted := range []string{"Both: no error", "Allowed:", "Stops:", "Never:", "n + 1"} {
		if strings.Contains(out, unwanted) {
			t.Errorf("%q is in:\n%s", unwanted, out)
		}
	}
	if good {
		t.Errorf("90 %% are said to be killed:\n%s", out)
	}
	explain("m.go\tLogged\twithout logged++\t1\tnobody reads it\nm.go\tUnused\t>= in n > 5\t1\tnobody calls " +
		"it\nm.go\tUnused\tnot n > 5\t1\tnobody calls it\n")
	if out, good = run(100); !good || !strings.Contains(out, "3 explained, 0 left: 100.0 % killed") {
		t.Errorf("all survivors are explained, and the answer is %v:\n%s", good, out)
	}
	explain("m.go\tAllowed\talways n < 0 || n > limit\t1\tnot so\n")
	if out, good = run(0); good || !strings.Contains(out, "explained, but killed or gone: m.go Allowed") {
		t.Errorf("an explanation of what is killed is taken:\n%s", out)
	}
}

func TestAnExplanationNeedsAReason(t *testing.T) {
	for _, text := range []string{"a\tb\tc\t1\t\n", "a\tb\tc\n", "a\tb\tc\t1\tr\na\tb\tc\t1\tr\n"} {
		dir := write(t, map[string]string{"e.tsv": text})
		if _, err := readExplanations(filepath.Join(dir, "e.tsv")); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
