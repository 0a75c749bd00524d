package connect_test

import (
	"slices"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/connect"
)

// Each file that a program executes is decided about by what the run holds, recorded,
// and counted where it is allowed.
func TestExecutes(t *testing.T) {
	for _, c := range []struct {
		name, base string
		layers     []string
		file       string
		kept, want bool
		recorded   string // the reason; "": nothing is
	}{
		{"granted", `exec = ["/usr/bin/git"]`, nil, "/usr/bin/git", false, true, "granted"},
		{"any", `exec = true`, nil, "/tmp/own", false, true, "granted"},
		{"none", ``, nil, "/usr/bin/git", false, false, "cap_missing"},
		{"another", `exec = ["/usr/bin/git"]`, nil, "/usr/bin/id", false, false, "program_not_permitted"},
		{"kept", `exec = true`, nil, "/tmp/own", true, false, "program_not_permitted"},
		{
			"hidden", `exec = true`,
			[]string{"[deny]\ntools = [\"exec:*\"]\n"},
			"/usr/bin/git", false, false,
			"tool_hidden",
		},
		{"no name", `exec = true`, nil, "(unreachable)/x", false, true, ""},
		{"no name, kept", `exec = true`, nil, "(unreachable)/x", true, false, ""},
	} {
		r := newRun(t, "[capabilities]\n"+c.base+"\n[limits]\nexec_spawns = 1\n", c.layers...)
		b := budget.New(caps.Limits{}.With(caps.ExecSpawns, 1), nil)
		may, err := connect.Executes(connect.Config{Gate: r.gate, Lock: &r.lock, Budget: b})
		if err != nil {
			t.Fatal(err)
		}
		if got := may(c.file, c.kept); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		var reasons []string
		for _, d := range r.log.Decisions {
			reasons = append(reasons, d.Reason)
			if d.Cap != "exec.spawn" || d.Op != "execve" || d.Target != c.file || d.Deny == c.want {
				t.Errorf("%s: %+v", c.name, d)
			}
		}
		if want := []string{c.recorded}; c.recorded != "" && !slices.Equal(reasons, want) || c.recorded == "" &&
			len(reasons) > 0 {
			t.Errorf("%s: recorded %q", c.name, reasons)
		}
		if hidden := c.name == "hidden"; connect.MayExecute(r.gate.Set()) == hidden {
			t.Errorf("%s: may execute: %v", c.name, !hidden)
		}
		if c.recorded == "granted" && (b.Used(caps.ExecSpawns) != 1 || may(c.file, c.kept)) {
			t.Errorf("%s: a second one after %d", c.name, b.Used(caps.ExecSpawns))
		}
	}
}
