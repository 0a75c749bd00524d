package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/launcher/program"
)

// builtProgram is bin/rlp as make builds it, with the program that confines beside it.
// Nobody writes to either.
func builtProgram(t *testing.T) string {
	t.Helper()
	return filepath.Join(forAll.programs.get(t, bothPrograms), "rlp")
}

// bothPrograms builds them in a folder, as make does: what was compiled for it is not
// compiled again.
func bothPrograms(dir string) (string, error) {
	for name, of := range map[string]string{"rlp": ".", program.ConfineFile: "../../internal/effect/lane/confined"} {
		c := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), of)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build %s: %w\n%s", of, err, text)
		}
	}
	return dir, nil
}

// ran is what came of one invocation.
type ran struct {
	stdout, stderr string
	code           int
}

func start(t *testing.T, env []string, name string, args ...string) ran {
	t.Helper()
	c := exec.Command(name, args...)
	var out, problems strings.Builder
	c.Env, c.Stdout, c.Stderr, c.Stdin = env, &out, &problems, strings.NewReader(`{"in":1}`)
	err := c.Run()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return ran{out.String(), problems.String(), c.ProcessState.ExitCode()}
}

// smallBundle is a bundle of the probe under a policy.
func smallBundle(t *testing.T, dir, policy string) {
	t.Helper()
	wasm, err := os.ReadFile(buildProbe(t))
	if err != nil {
		t.Fatal(err)
	}
	manifest := "[agent]\nname = \"probe\"\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = " +
		"\"probe.wasm\" }\n[caps]\nfile = \"policy.caps\"\n"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"probe.wasm": wasm, "manifest.toml": []byte(manifest),
		"policy.caps": []byte(policy),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Without a home nothing is made; and no agent writes to the program's file, or to
// the one beside it, which is started to confine others, or puts one there.
func TestProgramKeepsToItself(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	rlp, confine := filepath.Join(dir, "rlp"), filepath.Join(dir, program.ConfineFile)
	data, err := os.ReadFile(builtProgram(t))
	if err == nil {
		err = os.WriteFile(rlp, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := start(t, []string{"HOME=" + work}, rlp, "version"); r.code != 0 {
		t.Errorf("without a home: %+v", r)
	}
	if left, err := os.ReadDir(work); err != nil || len(left) != 0 {
		t.Errorf("left there: %v, %v", left, err)
	}
	beside := filepath.Join(dir, "beside")
	if err := os.WriteFile(beside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(work, "writer")
	smallBundle(t, bundle, "[capabilities]\nfs_rw = [\""+dir+"\"]\n")
	env := []string{"HOME=" + work, "RUNLOOP_HOME=" + work + "/home", "PATH=" + os.Getenv("PATH")}
	for what, there := range map[string]bool{"it is not there": false, "it is": true} {
		if there {
			if err := os.WriteFile(confine, []byte("x"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		r := start(t, env, rlp, "launch", bundle, "--", "write", beside, "y", "write", rlp, "y", "rename", rlp, beside,
			"write", confine, "y")
		if !strings.Contains(r.stdout, "write "+beside+" y: ok") || strings.Count(r.stdout, "ermission denied") != 3 {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// What confines is the program beside this one's, where nobody but the owner of
// both can have put it there; otherwise this program.
func TestConfineProgram(t *testing.T) {
	dir := t.TempDir()
	self, confine := filepath.Join(dir, "rlp"), filepath.Join(dir, program.ConfineFile)
	for _, path := range []string{self, confine} {
		if err := os.WriteFile(path, []byte("x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if !program.OwnConfine(self) {
		t.Fatal("control: nothing is wrong with it")
	}
	away := func() error { return os.Rename(confine, confine+".away") }
	linked := func() error { return os.Symlink(confine+".away", confine) }
	for _, c := range []struct {
		what string
		do   []func() error
	}{
		{"a folder that others write", []func() error{func() error { return os.Chmod(dir, 0o777) }}},
		{"a file that others write", []func() error{func() error { return os.Chmod(dir, 0o755) }, func() error {
			return os.Chmod(confine, 0o775)
		}}},
		{"a file that cannot be started", []func() error{func() error { return os.Chmod(confine, 0o644) }}},
		{"none", []func() error{func() error { return os.Chmod(confine, 0o755) }, away}},
		{"a link", []func() error{linked}},
	} {
		for _, do := range c.do {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		if program.OwnConfine(self) {
			t.Error(c.what)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := errors.Join(os.Remove(confine), os.Rename(confine+".away", confine), os.Chown(confine, 65534,
		-1)); err != nil {
		t.Fatal(err)
	}
	if program.OwnConfine(self) {
		t.Error("another user's")
	}
}
