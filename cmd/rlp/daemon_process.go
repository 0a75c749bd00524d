package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"runloop.dev/rlp/internal/serve/daemon"
	"runloop.dev/rlp/launcher/compose"
)

// An invoker is the process for which the daemon does an invocation: what
// any other invocation takes from its own process, that one takes from here.
type invoker struct {
	call *daemon.Call
	dir  string      // the client's folder, as the client would write it
	home string      // the one that is served
	own  environment // of the helper's process

	declined string // why the client has to launch by itself
}

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

// startDaemon starts a daemon behind a launch that found none, where
// the operator asked for that. It has nothing of this invocation but the home
// and what the process itself reads; that it cannot be started is no error of
// the run.
func (a *app) startDaemon(c *compose.Composition, f launchFlags) {
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
	self, err := selfPath()
	if err != nil {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	var env []string
	for _, name := range append(processVariables(), "HOME", "RUNLOOP_HOME", "PATH") {
		if v, set := a.lookup(name); set && !slices.Contains(env, name+"="+v) {
			env = append(env, name+"="+v)
		}
	}
	p, err := os.StartProcess(self, []string{"rlp", "daemon", "--quiet", "--home", c.Home.Dir()}, &os.ProcAttr{
		Dir: "/", Env: env, Files: []*os.File{null, null, null}, Sys: ownSession(),
	})
	if err == nil {
		_ = p.Release() // it outlives this process
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
