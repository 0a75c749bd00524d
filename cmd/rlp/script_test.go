package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/container"
	"runloop.dev/rlp/internal/effect/lane/probe"
	"runloop.dev/rlp/internal/effect/mcpclient/mcptest"
)

var update = flag.Bool("update", false, "rewrite the wanted outputs in testdata/script")

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == lane.ConfineName { // by a descriptor, which is not called rlp
		os.Exit(lane.Confined())
	}
	if len(os.Args) > 1 && os.Args[1] == probe.Name { // by /proc/self/exe
		syscall.Exit(probe.Main(os.Args[2:], os.Stdout)) // in os.Exit the race detector waits a second
	}
	testscript.Main(tests{m}, map[string]func(){
		"rlp":     func() { os.Exit(Main()) },
		"nousers": noUsers,
		"mcptool": func() { syscall.Exit(mcptest.Main(os.Args[1])) },
		"tamper": func() {
			if err := tamper(os.Args[1:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

// The scripts are the specification of the command line. Each gets an empty
// home and a bundle "probe": an agent that does what its arguments say, under
// the policy.caps that the script writes.
func TestScripts(t *testing.T) {
	t.Parallel()
	dir, files := "testdata/script", []string(nil)
	if testing.Short() {
		dir, files = "", several()
	}
	runScripts(t, dir, files, func(*testscript.Env) error { return nil })
}

// runScripts runs the scripts of dir, or files, once more is done for each.
func runScripts(t *testing.T, dir string, files []string, more func(*testscript.Env) error) {
	probe := buildProbe(t)
	cache := compiledProbe(t, probe)
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, Files: files, UpdateScripts: *update, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			env.Values[conversations{}] = map[string]*os.File{}
			env.Setenv("HOME", home)
			env.Setenv("RUNLOOP_HOME", "")
			env.Setenv("OVERRIDES", filepath.Join(home, ".runloop", "caps", "overrides"))
			env.Setenv("PROBE", probe)
			env.Setenv("REPO", repository(t))
			env.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
			env.Setenv("GORACE", os.Getenv("GORACE")) // under the race detector each program waits a second before it ends
			if err := warm(env.WorkDir, home, cache); err != nil {
				return err
			}
			return more(env)
		},
		Condition: condition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"asked":       asked,
			"await":       await,
			"bundle":      makeBundle,
			"nowhere":     nowhere,
			"echoserver":  echoServer,
			"seen":        seen,
			"webserver":   webServer,
			"pages":       servePages,
			"status":      status,
			"warm":        warmHome(t, probe),
			"witness":     witnessServer,
			"modelserver": modelServer,
			"mcpserver":   mcpServerCommand,
			"private":     private,
			"say":         say,
		},
	})
}

// condition is [ns], [bwrap] or [podman]: whether this machine has the lane, by its own try.
func condition(cond string) (bool, error) {
	name, known := map[string]string{"ns": "ns", "bwrap": "bwrap", "podman": "container"}[cond]
	if !known {
		return false, fmt.Errorf("unknown condition")
	}
	l, err := lane.Open(context.Background(), name, lane.Config{
		Self: []string{"/proc/self/exe", "rlp", lane.ConfineName}, Container: container.Config{},
	})
	if err != nil {
		return false, adoptNobody() // the error is the answer
	}
	return true, errors.Join(l.Close(), adoptNobody())
}

// noUsers becomes a command where nobody can make a user namespace: in one that
// allows none.
func noUsers() {
	args := append([]string{
		"unshare", "--user", "--map-root-user", "--", "sh", "-c",
		`echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"`, "sh",
	}, os.Args[1:]...)
	path, err := exec.LookPath(args[0])
	if err == nil {
		err = syscall.Exec(path, args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// several are the scripts in which a process does several things at once: what
// the race detector looks at, which compiles each guest twenty times slower.
func several() []string {
	var list []string
	for _, name := range []string{
		"audit_tail", "exec_run", "kb_live", "kb_search", "launch_ends", "launch_together", "model_openai", "net_http",
		"secrets_run",
	} {
		list = append(list, filepath.Join("testdata", "script", name+".txtar"))
	}
	return list
}

func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// makeBundle makes a folder a bundle around the probe: bundle DIR [NAME]. A
// policy.caps or manifest.toml that is there already stays.
func makeBundle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: bundle DIR [NAME]")
	}
	dir, name := ts.MkAbs(args[0]), "probe"
	if len(args) == 2 {
		name = args[1]
	}
	ts.Check(os.MkdirAll(dir, 0o700))
	wasm, err := os.ReadFile(ts.Getenv("PROBE"))
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(dir, "probe.wasm"), wasm, 0o600))
	manifest := fmt.Sprintf("[agent]\nname = %q\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = "+
		"\"probe.wasm\" }\n", name)
	if _, err := os.Stat(filepath.Join(dir, "policy.caps")); err == nil {
		manifest += "[caps]\nfile = \"policy.caps\"\n"
		private(ts, false, []string{filepath.Join(dir, "policy.caps")})
	}
	if _, err := os.Stat(filepath.Join(dir, "manifest.toml")); err != nil {
		ts.Check(os.WriteFile(filepath.Join(dir, "manifest.toml"), []byte(manifest), 0o600))
	}
}

// status runs a command and wants its exit status: status N COMMAND ARGS...
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

// private makes files readable and writable by their owner alone, as rlp
// wants an operator's files to be, and puts the script's folder for $WORK.
func private(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		path := ts.MkAbs(name)
		text, err := os.ReadFile(path)
		ts.Check(err)
		text = bytes.ReplaceAll(text, []byte("$WORK"), []byte(ts.Getenv("WORK")))
		ts.Check(os.WriteFile(path, text, 0o600))
		ts.Check(os.Chmod(path, 0o600))
	}
}

// await waits until a file holds something, or the text that is given: what a
// background command is known by. A file that a shell has only opened is empty.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: await FILE [TEXT]")
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-tick.C {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && len(text) > 0 && (len(args) == 1 || bytes.Contains(text, []byte(args[1]))) {
			return
		}
	}
	ts.Fatalf("%s never came", args[0])
}
