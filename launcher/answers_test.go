package launcher_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/launcher"
)

// opened is a launcher for an empty home, and the bundle of an agent that puts one
// value into the knowledge base.
func opened(dir string) (l *launcher.Launcher, bundle string, err error) {
	if bundle, err = putsIn(dir); err == nil {
		l, err = launcher.Open(launcher.Options{Home: filepath.Join(dir, "home")})
	}
	return l, bundle, err
}

func inFolder(do func(ctx context.Context, dir string) error) {
	dir, err := os.MkdirTemp("", "launcher-example")
	if err == nil {
		defer os.RemoveAll(dir)
		err = do(context.Background(), dir)
	}
	if err != nil {
		panic(err)
	}
}

// The log of a tenant, the denials alone.
func ExampleLauncher_Audit() {
	inFolder(func(ctx context.Context, dir string) error {
		l, bundle, err := opened(dir)
		if err != nil {
			return err
		}
		if _, err := l.Launch(ctx, launcher.Request{Bundle: bundle, Deny: []string{"kb:write:*"}}); err != nil {
			return err
		}
		for r, err := range l.Audit(ctx, launcher.Filter{Decision: "deny"}) {
			if err != nil {
				return err
			}
			fmt.Println(r.Decision.Op, r.Decision.Target, r.Decision.Reason)
		}
		v, err := l.Verify(ctx)
		if err == nil {
			fmt.Println("verified:", v.OK)
		}
		return err
	})
	// Output:
	// _start  caps_empty
	// kb_put notes/k cap_missing
	// verified: true
}

// What a denial would have blocked of recorded runs, before it is in force.
func ExampleLauncher_WhatIf() {
	inFolder(func(ctx context.Context, dir string) error {
		l, bundle, err := opened(dir)
		if err != nil {
			return err
		}
		if _, err := l.Launch(ctx, launcher.Request{Bundle: bundle, KeepAllowed: true}); err != nil {
			return err
		}
		f, err := l.WhatIf(ctx, launcher.Filter{}, launcher.Request{Deny: []string{"kb:write:notes"}})
		if err == nil {
			fmt.Println(f.Runs, "run,", f.Decisions.Blocked, "call blocked:", f.Blocked[0].Op, f.Blocked[0].Target)
		}
		return err
	})
	// Output:
	// 1 run, 1 call blocked: kb_put notes/k
}

// The least policy for what recorded runs did.
func ExampleLauncher_Suggest() {
	inFolder(func(ctx context.Context, dir string) error {
		l, bundle, err := opened(dir)
		if err != nil {
			return err
		}
		if _, err := l.Launch(ctx, launcher.Request{Bundle: bundle, KeepAllowed: true}); err != nil {
			return err
		}
		s, err := l.Suggest(ctx, false, bundle)
		if err == nil {
			_, list, _ := strings.Cut(s.Policy, "kb_write = ")
			fmt.Println(strings.Fields(list)[:2])
		}
		return err
	})
	// Output:
	// [[ "notes",]
}

// Mistakes in a policy, by file, line and key.
func ExampleLauncher_Lint() {
	inFolder(func(_ context.Context, dir string) error {
		l, bundle, err := opened(dir)
		if err != nil {
			return err
		}
		path := filepath.Join(bundle, "policy.caps")
		if err := os.WriteFile(path, []byte("[capabilities]\nkb_wriet = [\"notes\"]\n"), 0o600); err != nil {
			return err
		}
		found, err := l.Lint(path)
		for _, f := range found {
			fmt.Println(filepath.Base(f.Path), f.Line, f.Severity, f.Message)
		}
		return err
	})
	// Output:
	// policy.caps 2 error unknown key "kb_wriet" in [capabilities]
}

// A program that stops reading the log in the middle is not told of more.
func TestReadingTheLogMayStop(t *testing.T) {
	l, bundle, err := opened(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Launch(t.Context(), launcher.Request{Bundle: bundle}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range l.Audit(t.Context(), launcher.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d records", n)
	}
	for _, err := range l.Audit(t.Context(), launcher.Filter{Decision: "perhaps"}) {
		if err == nil || !strings.Contains(err.Error(), "allow or deny") {
			t.Errorf("%v", err)
		}
	}
	found, err := l.Scan(bundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Rule == "" || f.Location == "" {
			t.Errorf("%+v", f)
		}
	}
}
