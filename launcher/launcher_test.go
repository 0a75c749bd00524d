package launcher_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/launcher"
)

// noHelper is what Open says before Main was called.
var noHelper error

func TestMain(m *testing.M) {
	_, noHelper = launcher.Open(launcher.Options{Home: filepath.Join(os.TempDir(), "launcher-no-helper")})
	launcher.Main()
	os.Exit(m.Run())
}

// Nothing that a launch starts in a process of its own falls back to this one: with
// neither Main nor a helper there is no launcher.
func TestALauncherNeedsChildProcesses(t *testing.T) {
	if !errors.Is(noHelper, launcher.ErrNoHelper) {
		t.Errorf("without Main: %v", noHelper)
	}
	folder := t.TempDir()
	for _, helper := range []string{filepath.Join(folder, "none"), folder} {
		if l, err := launcher.Open(launcher.Options{Home: folder, Helper: helper}); err == nil || l != nil {
			t.Errorf("%s is a helper: %v", helper, err)
		}
	}
	if l, err := launcher.Open(launcher.Options{Home: filepath.Join(folder, "home")}); err != nil || l == nil { // control
		t.Error(err)
	}
}

// What is launched is what is explained, and an empty deny takes nothing.
func TestLaunchAndExplainAgree(t *testing.T) {
	work := t.TempDir()
	bundle := puts(t, work)
	l, err := launcher.Open(launcher.Options{Home: filepath.Join(work, "home"), Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	for deny, denied := range map[string]int64{"kb:write:*": 1, "kb:read:*": 0} {
		q := launcher.Request{Bundle: bundle, Deny: []string{deny}}
		report, err := l.Launch(t.Context(), q)
		if err != nil || report.Usage.Denied != denied {
			t.Fatalf("%s: %v, %+v", deny, err, report)
		}
		why, err := l.Explain(t.Context(), q, launcher.Query{Text: "kb:write:notes"})
		if err != nil || (why.Decision == "deny") != (denied > 0) {
			t.Errorf("%s: %v, %+v", deny, err, why)
		}
	}
	if _, err := l.Launch(t.Context(), launcher.Request{Bundle: filepath.Join(work, "none")}); err == nil {
		t.Error("a bundle that is not there was launched")
	}
}
