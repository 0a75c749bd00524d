package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher"
)

// closes is a program that brings a host call of its own. What the ticket touches is
// a method of it.
const closes = `package main

import (
	"context"
	"fmt"
	"os"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher"
)

type ticket struct{ id string }

func (t ticket) Touches() (caps.Mode, string) { return 0, "events" }

func parse(request []byte) (ticket, error) { return ticket{string(request)}, nil }

func closeTicket(_ context.Context, p launcher.Permit, t ticket) ([]byte, error) {
	fmt.Println("closing", t.id, p.OK())
	return []byte("closed " + t.id), nil
}

func main() {
	launcher.Main()
	l, err := launcher.Open(launcher.Options{Home: os.Args[1], HostFuncs: []launcher.HostFunc{
		launcher.Define("acme", "ticket_close", caps.KBWrite, parse, closeTicket),
	}})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	report, err := l.Launch(ctx, launcher.Request{Bundle: os.Args[2], Deny: os.Args[3:]})
	if err != nil {
		panic(err)
	}
	for r, err := range l.Audit(ctx, launcher.Filter{Run: report.RunID}) {
		if err != nil {
			panic(err)
		}
		if d := r.Decision; d != nil && d.Op == "acme.ticket_close" {
			fmt.Println(d.Cap, d.Op, d.Target, d.Reason, d.Layer)
		}
	}
	fmt.Println(report.Outcome, report.ExitCode, report.Stdout)
}
`

// number is an i32.const.
func number(n int) string {
	code := []byte{0x41}
	for ; n > 0x3f; n >>= 7 {
		code = append(code, byte(n&0x7f|0x80))
	}
	return string(append(code, byte(n)))
}

// calling is a module that calls one function with the texts that it takes and prints
// the response; it exits with the number of an error.
func calling(module, name string, requests ...string) string {
	return calls(1, module, name, requests...)
}

// calls is such a module that does so as often as is said.
func calls(times int, module, name string, requests ...string) string {
	const at, answer, room = 32, 1024, 512
	args, data := "", ""
	for _, request := range requests {
		args += number(at+len(data)) + number(len(request))
		data += request
	}
	once := args + number(answer) + number(room) + "\x10\x00\x21\x00" +
		"\x20\x00\x42\x00\x53\x04\x40\x42\x00\x20\x00\x7d\xa7\x10\x01\x0b" + // error: proc_exit
		"\x41\x04\x20\x00\xa7\x36\x02\x00\x41\x01\x41\x00\x41\x01\x41\x0c\x10\x02\x1a"
	code := "\x01\x01\x7e" + strings.Repeat(once, times) + "\x0b"
	const system = "wasi_snapshot_preview1"
	takes := "\x60" + str(strings.Repeat("\x7f", 2*len(requests)+2)) + "\x01\x7e"
	return "\x00asm\x01\x00\x00\x00" +
		section(1, "\x04"+takes+"\x60\x00\x00\x60\x01\x7f\x00\x60\x04\x7f\x7f\x7f\x7f\x01\x7f") +
		section(2, "\x03"+str(module)+str(name)+"\x00\x00"+str(system)+str("proc_exit")+"\x00\x02"+
			str(system)+str("fd_write")+"\x00\x03") +
		section(3, "\x01\x01") + section(5, "\x01\x00\x01") +
		section(7, "\x02"+str("_start")+"\x00\x03"+str("memory")+"\x02\x00") + section(10, "\x01"+str(code)) +
		section(11, "\x02\x00\x41\x00\x0b"+str("\x00\x04\x00\x00")+"\x00"+number(at)+"\x0b"+str(data))
}

// A program outside of the repository adds a host call. Without the grant it is
// denied and recorded, and nothing of it is done.
//
//rlp:holds D3
func TestAProgramOutsideAddsAHostCall(t *testing.T) {
	path, said, err := outside(t, closes)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	work := t.TempDir()
	module := calling("acme", "ticket_close", "7")
	const denial, refused = "kb.write acme.ticket_close events ", "exit 1 \n"
	for _, c := range []struct{ name, asks, deny, want string }{
		{"granted", `kb_write = ["events"]`, "", "closing 7 true\nkb.write acme.ticket_close events granted \nok 0 closed 7\n"},
		{"another", `kb_write = ["notes"]`, "", denial + "domain_not_permitted \n" + refused},
		{"denied", `kb_write = ["events"]`, "kb:write:*", denial + "cap_missing caller\n" + refused},
		{"hidden", `kb_write = ["events"]`, "tool:call:tools:acme.ticket_close", denial + "tool_hidden caller\n" + refused},
	} {
		bundle, err := agentIn(work, c.name, module, c.asks)
		if err != nil {
			t.Fatal(err)
		}
		args := []string{filepath.Join(work, "home"), bundle}
		if c.deny != "" {
			args = append(args, c.deny)
		}
		out, err := exec.Command(path, args...).CombinedOutput()
		text := string(out)
		if err != nil || text != c.want {
			t.Errorf("%s: %v: %s\nwant %s", c.name, err, text, c.want)
		}
	}
}

// A host call that does not say what it touches does not compile; the test above has
// the program that does.
//
//rlp:holds D3
func TestAHostCallSaysWhatItTouches(t *testing.T) {
	for what, program := range map[string]string{
		"does not satisfy":     strings.Replace(closes, "func (t ticket) Touches()", "func (t ticket) Elsewhere()", 1),
		"not enough arguments": strings.Replace(closes, " caps.KBWrite,", "", 1),
	} {
		if program == closes {
			t.Fatal("nothing was left out")
		}
		if _, said, err := outside(t, program); err == nil || !strings.Contains(string(said), what) {
			t.Errorf("%s: %v: %s", what, err, said)
		}
	}
}

// A note is a request of the functions of these tests.
type note struct{ text, scope string }

func (n note) Touches() (caps.Mode, string) { return 0, n.scope }

func parseNote(request []byte) (note, error) {
	switch text := string(request); text {
	case "unreadable":
		return note{}, errors.New("is no note")
	case "elsewhere":
		return note{text, "../x"}, nil
	default:
		return note{text, "notes"}, nil
	}
}

func doNote(_ context.Context, _ launcher.Permit, n note) ([]byte, error) {
	switch n.text {
	case "panic":
		panic("the function's own")
	case "fails":
		return nil, errors.New("a secret of the host's")
	case "again":
		return nil, &launcher.Fail{Errno: 6, Hint: "ask later"}
	case "odd":
		return nil, &launcher.Fail{Errno: -7}
	}
	return []byte("noted " + n.text), nil
}

// open is a launcher in a new home, with a host call of this program's.
func open(t *testing.T, family caps.Family) *launcher.Launcher {
	t.Helper()
	l, err := launcher.Open(launcher.Options{
		Home: filepath.Join(t.TempDir(), "home"), Env: os.Environ(),
		HostFuncs: []launcher.HostFunc{launcher.Define("acme", "note", family, parseNote, doNote)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What goes wrong in a host call of the program's reaches the agent as a number, a
// panic as a fault of the host; limits hold before anything is done.
func TestHowAHostCallOfTheProgramEnds(t *testing.T) {
	l, work := open(t, caps.KBWrite), t.TempDir()
	for i, c := range []struct {
		request string
		limits  map[string]int64
		want    string
	}{
		{"x", nil, "ok 0 noted x "},
		{"unreadable", nil, "exit 28 "},
		{"elsewhere", nil, "exit 28 "},
		{"fails", nil, "exit 29 "},
		{"again", nil, "exit 6 "},
		{"odd", nil, "exit 29 "},
		{"panic", nil, "fault 69 "},
		{"x", map[string]int64{"hostcalls_max": 0}, "exit 19 "},
		{"xx", map[string]int64{"kb_write_bytes": 1}, "exit 19 "},
		{"xx", map[string]int64{"kb_write_bytes": 2}, "ok 0 noted xx "},
	} {
		module := calling("acme", "note", c.request)
		bundle, err := agentIn(filepath.Join(work, fmt.Sprint(i)), "notes", module, `kb_write = ["notes"]`)
		if err != nil {
			t.Fatal(err)
		}
		var done []string
		q := launcher.Request{Bundle: bundle, Limits: c.limits, Record: func(r *launcher.Record) {
			if e := r.Event; e != nil && e.Kind == "call.done" {
				done = append(done, e.Verb+" "+e.Status)
			}
		}}
		report, err := l.Launch(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %d %s ", report.Outcome, report.ExitCode, report.Stdout); strings.TrimSpace(got) !=
			strings.TrimSpace(c.want) {
			t.Errorf("%s: %s, want %s: %s", c.request, got, c.want, report.Message)
		}
		if strings.Contains(report.Stdout+report.Stderr, "secret of the host") {
			t.Errorf("the agent was told %q", report.Stdout)
		}
		if strings.HasPrefix(c.want, "ok") != (len(done) == 1 && done[0] == "acme.note ok") {
			t.Errorf("%s: recorded as done: %q", c.request, done)
		}
	}
}

// What a host call of the program's answers marks a run as any other of its family.
func TestAHostCallOfTheProgramMarksTheRun(t *testing.T) {
	for family, asks := range map[caps.Family]string{caps.MCP: `mcp = ["notes"]`, caps.KBRead: `kb_read = ["notes"]`} {
		l := open(t, family)
		bundle, err := agentIn(t.TempDir(), "notes", calling("acme", "note", "x"), asks)
		if err != nil {
			t.Fatal(err)
		}
		marked := false
		report, err := l.Launch(t.Context(), launcher.Request{Bundle: bundle, Record: func(r *launcher.Record) {
			marked = marked || r.Event != nil && r.Event.Kind == "caps.swap"
		}})
		if err != nil {
			t.Fatal(err)
		}
		if report.Outcome != launcher.OK || marked != (family == caps.MCP) {
			t.Errorf("%s: %s %s, marked %t", family, report.Outcome, report.Message, marked)
		}
	}
}

// A function that could be taken for one of rlp's own, or that could not be called,
// is no launcher's.
func TestHostCallsThatAreRefused(t *testing.T) {
	define := func(module, name string, f caps.Family) launcher.HostFunc {
		return launcher.Define(module, name, f, parseNote, doNote)
	}
	good := define("acme", "note", caps.KBRead)
	for what, list := range map[string][]launcher.HostFunc{
		"wasi_snapshot_preview1": {define("wasi_snapshot_preview1", "fd_write", caps.FS)},
		"runloop_v1":             {define("runloop_v1", "kb_get", caps.KBRead)},
		"rlp:meter":              {define("rlp:meter", "note", caps.KBRead)},
		"begin with wasi":        {define("wasi_other", "note", caps.KBRead)},
		"a.b":                    {define("a", "b.c", caps.KBRead)},
		"no family":              {define("acme", "note", caps.Tool)},
		"twice":                  {good, good},
		"Define":                 {{}},
		"parse":                  {launcher.Define[note]("acme", "note", caps.KBRead, nil, nil)},
	} {
		if _, err := launcher.Open(launcher.Options{Home: t.TempDir(), HostFuncs: list}); err == nil ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := launcher.Open(launcher.Options{Home: t.TempDir(), HostFuncs: []launcher.HostFunc{good}}); err != nil {
		t.Error(err) // control
	}
}
