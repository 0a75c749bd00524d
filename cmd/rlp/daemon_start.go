package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"runloop.dev/rlp/internal/serve/daemon"
	"runloop.dev/rlp/launcher/compose"
)

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
