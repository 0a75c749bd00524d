package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/daemon"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// getwd is where relative paths begin.
func (a *app) getwd() (string, error) {
	if a.invoker == nil {
		return os.Getwd()
	}
	return a.invoker.dir, nil
}

// here does what opens a relative path.
func (a *app) here(do func()) error {
	s := a.invoker
	if s == nil {
		do()
		return nil
	}
	return s.call.Here(func(dir string) {
		s.dir = asWritten(a.getenv("PWD"), dir)
		do()
	})
}

// asWritten is a folder as the client's shell writes it, if that is where the
// client is: links that lead there are kept, as [os.Getwd] keeps them.
func asWritten(pwd, dir string) string {
	if filepath.IsAbs(pwd) && isFile(pwd, dir) {
		return pwd
	}
	return dir
}

// self is the file of this program, for what it starts itself again as. A helper
// may be older than what lies under its name.
func (a *app) self() (string, error) {
	if a.invoker == nil {
		return selfPath()
	}
	return "/proc/self/exe", nil
}

// beginDaemon starts a daemon behind a launch that found none, where
// the operator asked for that. It has nothing of this invocation but the home
// and what the process itself reads; that it cannot be started is no error of
// the run.
func beginDaemon(a *app, c *compose.Composition, f launchFlags) {
	if c.Config.Daemon.Start != "auto" || a.invoker != nil || f.noDaemon || f.dryRun || a.getenv(daemonVariable) == "off" {
		return
	}
	client, err := daemon.Dial(filepath.Join(c.Home.Dir(), "run", daemon.SocketName))
	if err == nil {
		client.Close()
	}
	if !errors.Is(err, daemon.ErrNobody) {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	if p, err := daemonProcess(a, c.Home, null, "--quiet"); err == nil {
		_ = p.Release() // it outlives this process
	}
}

// daemonProcess starts a daemon of the home, which prints on out. It has nothing of
// this invocation but the home and what the process itself reads.
func daemonProcess(a *app, h home.Home, out *os.File, flags ...string) (*os.Process, error) {
	self, err := selfPath()
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	var env []string
	for _, name := range append(processVariables(), "HOME", "RUNLOOP_HOME", "PATH") {
		if v, set := a.lookup(name); set && !slices.Contains(env, name+"="+v) {
			env = append(env, name+"="+v)
		}
	}
	args := append([]string{"rlp", "daemon", "--home", h.Dir()}, flags...)
	return os.StartProcess(self, args, &os.ProcAttr{
		Dir: "/", Env: env, Files: []*os.File{null, out, null}, Sys: ownSession(),
	})
}

// startByHand starts a daemon that stays in the background, and returns when it
// serves, or with why it does not.
func startByHand(a *app, idle time.Duration) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	client, err := daemon.Dial(filepath.Join(runDir(h), daemon.SocketName))
	if err == nil {
		client.Close()
		return askTheDaemon(a, daemon.Status) // it serves already
	}
	flags := []string{"--json"}
	if idle != 0 {
		flags = append(flags, "--idle", idle.String())
	}
	says, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer says.Close()
	p, err := daemonProcess(a, h, out, flags...)
	if err = errors.Join(err, out.Close()); err != nil {
		return daemonErr(err)
	}
	_ = p.Release()
	var said struct {
		Error *compose.Problem `json:"error"`
	}
	if err := strictjson.Unmarshal(firstDocument(says), &said, strictjson.UnknownFields); err != nil {
		return daemonErr(errors.New("the daemon ended before it served"))
	}
	if p := said.Error; p != nil {
		return &statusError{Status: p.ExitCode, Err: errors.New(compose.Hinted(p.Text(), p.Hint))}
	}
	return askTheDaemon(a, daemon.Status)
}

// firstDocument is what a process that prints JSON prints first: a document ends
// with the line that has its brace alone. The process goes on.
func firstDocument(r io.Reader) []byte {
	var text []byte
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadBytes('\n')
		text = append(text, line...)
		if err != nil || string(line) == "}\n" {
			return text
		}
	}
}

// processVariables are those that the process itself reads, once, and not the
// invocation: Go's runtime, its resolver, its certificates and its clock.
func processVariables() []string {
	return []string{
		"GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "GOCOVERDIR", "TZ", "ZONEINFO", "TMPDIR",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	}
}

// runDir is the folder of sockets and locks.
func runDir(h home.Home) string { return filepath.Join(h.Dir(), "run") }

func daemonErr(err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, daemon.ErrUnsupported):
		return &statusError{Status: launcher.StatusUnsupported, Err: err}
	case errors.Is(err, daemon.ErrNobody):
		err = fmt.Errorf("%w; rlp daemon start starts one", err)
	case errors.Is(err, daemon.ErrServed):
		err = fmt.Errorf("%w; rlp daemon status shows it, rlp daemon stop ends it", err)
	}
	return &statusError{Status: launcher.StatusUnavailable, Err: err}
}

// askTheDaemon prints what the helper says of itself.
func askTheDaemon(a *app, kind byte) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	state, err := daemon.Ask(filepath.Join(runDir(h), daemon.SocketName), kind)
	if err != nil {
		return daemonErr(err)
	}
	if a.json {
		return a.printJSON(state)
	}
	fmt.Fprintf(a.stdout, "process %d, since %s\nrunning %d, done %d\n", state.PID, state.Since.UTC().Format(time.RFC3339),
		state.Running, state.Done)
	for _, why := range sortedKeys(state.Declined) {
		fmt.Fprintf(a.stdout, "declined %d: %s\n", state.Declined[why], printable(why))
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
