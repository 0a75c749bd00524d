package main

import (
	"path/filepath"
	"testing"
)

// Arguments say whom to ask; what follows -- is the agent's.
func TestFlagsThatSayWhomToAsk(t *testing.T) {
	for _, c := range []struct {
		args []string
		dir  string
		no   bool
	}{
		{args: []string{"launch", "a.bundle"}},
		{args: []string{"launch", "--home", "/data/h", "a.bundle"}, dir: "/data/h"},
		{args: []string{"launch", "a.bundle", "--home=/data/h"}, dir: "/data/h"},
		{args: []string{"launch", "a.bundle", "--", "--home=/data/h", "--no-daemon"}},
		{args: []string{"launch", "--home=/data/h", "a.bundle", "--no-daemon"}, no: true},
	} {
		if dir, no := daemonFlags(c.args); dir != c.dir || no != c.no {
			t.Errorf("%q: %q, %v", c.args, dir, no)
		}
	}
}

// Nobody is asked who is not to be asked, or is not there.
func TestNobodyIsAsked(t *testing.T) {
	env := []string{"RUNLOOP_HOME=" + filepath.Join(t.TempDir(), "home")}
	for name, c := range map[string]struct{ args, env []string }{
		"nobody there": {[]string{"launch", "a.bundle"}, env},
		"no launch":    {[]string{"audit", "list"}, env},
		"nothing":      {nil, env},
		"off":          {[]string{"launch", "a.bundle"}, append(env, daemonVariable+"=off")},
		"no home":      {[]string{"launch", "a.bundle"}, nil},
	} {
		if p := askDaemon(environment{args: c.args, env: c.env}); p.client != nil {
			t.Errorf("%s: somebody was asked", name)
		}
	}
}
