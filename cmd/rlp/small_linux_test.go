package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program is bin/rlp as make builds it, the small program with the whole one behind
// it; the whole one is beside it. Nobody writes to either.
func program(t *testing.T) string {
	t.Helper()
	return filepath.Join(forAll.programs.get(t, bothPrograms), "rlp")
}

// bothPrograms builds them in a folder, as make does: what was compiled for it is not
// compiled again.
func bothPrograms(dir string) (string, error) {
	const pack = "../../internal/companion/pack"
	in := func(name string) string { return filepath.Join(dir, name) }
	build := func(out string, of ...string) []string {
		return append([]string{"build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", in(out)}, of...)
	}
	for _, args := range [][]string{
		build("alone", "."), build("confine", "../../internal/lane/confined"), build("small", "-tags", "slim", "."),
		{"run", pack, in("alone"), in("confine"), in("whole")},
		{"run", pack, in("small"), in("whole"), in("rlp")},
	} {
		c := exec.Command("go", args...)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", args[0], err, text)
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

// Whichever of the two programs does an invocation, what comes of it is the same.
func TestTwoProgramsAreOne(t *testing.T) {
	rlp, work := program(t), t.TempDir()
	whole := filepath.Join(filepath.Dir(rlp), "whole")
	home := filepath.Join(work, "home")
	files, store, programs := filepath.Join(work, "files"), filepath.Join(work, "store"), filepath.Join(work, "programs")
	smallBundle(t, programs, "[capabilities]\nexec = true\n")
	smallBundle(t, files, "[capabilities]\nfs = [\""+work+"\"]\n")
	smallBundle(t, store, "[capabilities]\nkb_write = [\"notes\"]\nkb_read = [\"notes\"]\n")
	env := []string{"HOME=" + work, "RUNLOOP_HOME=" + home, "PATH=" + os.Getenv("PATH")}
	for name, args := range map[string][]string{
		"files":       {"launch", files, "--json", "--", "read", work + "/none", "write", work + "/x", "y", "read", "/etc/passwd", "stderr", "said"},
		"input":       {"launch", files, "--input", "-", "--", "stdin"},
		"exit":        {"launch", files, "--", "exit", "42"},
		"trap":        {"launch", files, "--", "panic"},
		"timeout":     {"launch", files, "--limit", "wall_time_ms=50", "--", "spin"},
		"usage":       {"launch"},
		"bad flag":    {"launch", files, "--nope"},
		"no bundle":   {"launch", work + "/none"},
		"dry run":     {"launch", files, "--dry-run", "--input", "-"},
		"store":       {"launch", store, "--", "put", "notes", "k", "v", "get", "notes", "k"},
		"programs":    {"launch", programs, "--", "exec", "/bin/true"},
		"store input": {"launch", store, "--input", "-", "--", "stdin"},
		"version":     {"version"},
		"help":        {"--help"},
		"launch help": {"launch", "--help"},
		"nothing":     {},
		"mistake":     {"lunch"},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := start(t, env, rlp, args...), start(t, env, whole, args...)
			if one.code != other.code || plain(one.stdout) != plain(other.stdout) || plain(one.stderr) != plain(other.stderr) {
				t.Errorf("as two programs:\n%+v\nas one:\n%+v", one, other)
			}
			if name == "store" && !strings.Contains(one.stdout, "get notes k: v") {
				t.Errorf("control: %+v", one)
			}
		})
	}
	if third, err := filepath.Glob(home + "/cache/bin/confine/rlp-*"); err != nil || len(third) != 1 {
		t.Errorf("the program that confines: %v, %v", third, err)
	}
	list := start(t, env, rlp, "audit", "list", "--json")
	if list.code != 0 || strings.Count(list.stdout, `"run.complete"`) < 6 {
		t.Errorf("the log of both: %+v", list)
	}
}

// plain is a text without what differs from run to run.
func plain(text string) string {
	var report map[string]any
	if json.Unmarshal([]byte(text), &report) != nil {
		return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r >= '0' && r <= '9' }), "#")
	}
	for _, key := range []string{"run_id", "trace_id", "usage"} {
		delete(report, key)
	}
	out, err := json.Marshal(report)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// smallBundle is a bundle of the probe under a policy.
func smallBundle(t *testing.T, dir, policy string) {
	t.Helper()
	wasm, err := os.ReadFile(buildProbe(t))
	if err != nil {
		t.Fatal(err)
	}
	manifest := "[agent]\nname = \"probe\"\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = \"probe.wasm\" }\n[caps]\nfile = \"policy.caps\"\n"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"probe.wasm": wasm, "manifest.toml": []byte(manifest), "policy.caps": []byte(policy)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Without a home nothing is made; and neither the file of both programs nor what
// came out of it can be written by an agent, whichever program launches it.
func TestTwoProgramsKeepToThemselves(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	rlp := filepath.Join(dir, "rlp")
	both, err := os.ReadFile(program(t))
	if err == nil {
		err = os.WriteFile(rlp, both, 0o755)
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
	for name, more := range map[string]string{"small": "", "whole": "kb_read = [\"notes\"]\n"} {
		bundle := filepath.Join(work, name)
		smallBundle(t, bundle, "[capabilities]\nfs_rw = [\""+dir+"\"]\n"+more)
		env := []string{"HOME=" + work, "RUNLOOP_HOME=" + work + "/home", "PATH=" + os.Getenv("PATH")}
		r := start(t, env, rlp, "launch", bundle, "--", "write", beside, "y", "write", rlp, "y", "rename", rlp, beside)
		if !strings.Contains(r.stdout, "write "+beside+" y: ok") || strings.Count(r.stdout, "ermission denied") != 2 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
