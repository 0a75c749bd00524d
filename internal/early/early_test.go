package early

import (
	"context"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/resident"
)

// Arguments say whom to ask; what follows -- is the agent's.
func TestFlags(t *testing.T) {
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
		if dir, no := flags(c.args); dir != c.dir || no != c.no {
			t.Errorf("%q: %q, %v", c.args, dir, no)
		}
	}
}

// Nobody is asked who is not to be asked, or is not there.
func TestNobodyIsAsked(t *testing.T) {
	env := []string{"RUNLOOP_HOME=" + filepath.Join(t.TempDir(), "home")}
	for name, c := range map[string]struct{ args, env []string }{
		"nobody there":  {[]string{"launch", "a.bundle"}, env},
		"no launch":     {[]string{"audit", "list"}, env},
		"nothing":       {nil, env},
		"off":           {[]string{"launch", "a.bundle"}, append(env, Variable+"=off")},
		"whole program": {[]string{"launch", "a.bundle"}, append(env, ProgramVariable+"=/srv/rlp")},
		"no home":       {[]string{"launch", "a.bundle"}, nil},
	} {
		if p := Ask(c.args, c.env); p != nil {
			t.Errorf("%s: somebody was asked", name)
		}
	}
}

// What was answered before main is what main is told, signals included.
func TestAnswerIsKept(t *testing.T) {
	var none *Pending
	if none.Heard().Done() != nil {
		t.Error("the signals of nobody can end")
	}
	heard, signal := context.WithCancel(t.Context())
	p := &Pending{heard: heard, answer: resident.Answer{Why: "another user"}}
	signal()
	if a := p.Wait(t.Context()); a.Taken || a.Why != "another user" || p.Heard().Err() == nil {
		t.Errorf("%+v, %v", a, p.Heard().Err())
	}
}
