package top

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/client"
)

type fake struct {
	runs      []client.Run
	err       error
	cancelled []string
}

func (f *fake) Runs(context.Context, int) ([]client.Run, error) { return f.runs, f.err }
func (f *fake) Cancel(_ context.Context, id string) error {
	f.cancelled = append(f.cancelled, id)
	return nil
}

const hostile = "\x1b[2J\x1b]0;own\x07\u202ereversed\n\r\x9b31m\u200d"

func shown(t *testing.T) (*Model, *fake, *[]string) {
	t.Helper()
	f := &fake{runs: []client.Run{
		{RunID: "00000000-0000-7000-8000-00000000000a", Agent: "writer", State: "running", Denied: 2},
		{RunID: "00000000-0000-7000-8000-00000000000b", Agent: "critic", State: "done", Outcome: "ok"},
	}}
	var followed []string
	m := &Model{Service: f, Follow: func(run string) { followed = append(followed, run) }}
	m.width, m.height = 80, 24
	m.Update(m.load(t.Context()))
	return m, f, &followed
}

// press presses keys, and does what follows.
func press(m *Model, keys ...string) {
	for _, k := range keys {
		if cmd := m.Update(Key{Name: k, Text: k}); cmd != nil {
			m.Update(cmd(context.Background()))
		}
	}
}

func TestWindow(t *testing.T) {
	m, _, _ := shown(t)
	m.runs[0].Agent = strings.Repeat("\u4e16\u754c", 60) // two columns each
	for _, size := range [][2]int{{80, 24}, {40, 10}, {200, 50}, {1, 1}, {0, 0}} {
		m.width, m.height = size[0], size[1]
		w, h := size[0], size[1]
		if w == 0 {
			w, h = 80, 24
		}
		lines := strings.Split(m.Text(), "\n")
		if len(lines) != max(h, 2) {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if columnsOf(l) > w {
				t.Errorf("%v: %q is wider", size, l)
			}
		}
	}
}

func TestChoosing(t *testing.T) {
	m, _, followed := shown(t)
	press(m, "down", "enter")
	if m.open != m.runs[1].RunID || len(*followed) != 1 {
		t.Fatalf("%s %v", m.open, *followed)
	}
	m.Update(CallMsg{m.open, []byte(`{"kind":"cap.audit","ts":"2026-01-02T03:04:05.678Z","cap":"fs.read","decision":"deny","reason":"not_in_base","layer":"caller","target":"/etc"}`)})
	m.Update(CallMsg{"another", []byte(`{"kind":"cap.audit","cap":"net.http","decision":"allow","target":"elsewhere"}`)})
	if text := m.Text(); !strings.Contains(text, "03:04:05.678 deny  fs.read      not_in_base by caller: /etc") ||
		strings.Contains(text, "elsewhere") {
		t.Fatal(text)
	}
	for range 3 * mostCalls {
		m.Update(CallMsg{m.open, []byte(`{"kind":"call.done","verb":"v","status":"ok"}`)})
	}
	if len(m.calls) > mostCalls {
		t.Errorf("%d calls are held", len(m.calls))
	}
	press(m, "esc")
	if m.open != "" || (*followed)[1] != "" {
		t.Errorf("%s %v", m.open, *followed)
	}
}

// A run is ended after a yes alone, and one that has ended is not asked about.
func TestCancelAsks(t *testing.T) {
	m, f, _ := shown(t)
	press(m, "c")
	if !strings.Contains(m.Text(), "cancel run "+m.runs[0].RunID+"? y/n") {
		t.Fatal(m.Text())
	}
	press(m, "n", "c", "x")
	if len(f.cancelled) != 0 {
		t.Fatal(f.cancelled)
	}
	press(m, "c", "y")
	if len(f.cancelled) != 1 || f.cancelled[0] != m.runs[0].RunID {
		t.Fatal(f.cancelled)
	}
	press(m, "down", "c", "y")
	if len(f.cancelled) != 1 {
		t.Fatal(f.cancelled)
	}
}

func TestFilter(t *testing.T) {
	m, _, _ := shown(t)
	press(m, "/", "c", "r", "i", "q", "backspace", "enter")
	if text := m.Text(); strings.Contains(text, "writer") || !strings.Contains(text, "critic") || m.at != m.runs[1].RunID {
		t.Fatal(text)
	}
	press(m, "/", "esc")
	if !strings.Contains(m.Text(), "writer") {
		t.Fatal(m.Text())
	}
}

func TestHelpAndProblems(t *testing.T) {
	m, f, _ := shown(t)
	press(m, "?")
	if !strings.Contains(m.Text(), "cancel the run; asks before") {
		t.Fatal(m.Text())
	}
	press(m, "?")
	f.err = errors.New("no service " + hostile)
	m.Update(m.load(t.Context()))
	if text := m.Text(); !strings.Contains(text, "! no service") || !strings.Contains(text, "writer") {
		t.Fatal(text)
	}
}

// What others wrote steers no terminal.
func TestHostileText(t *testing.T) {
	m, f, _ := shown(t)
	f.runs[0].Agent, f.runs[0].State, f.runs[0].Outcome, f.runs[0].RunID = hostile, hostile, hostile, hostile
	m.Update(m.load(t.Context()))
	press(m, "c")
	check(t, m.Text())
	press(m, "n", "enter")
	m.Update(CallMsg{m.open, []byte(`{"kind":"cap.audit","cap":"\u001b[2J","decision":"deny","reason":"\u202e","layer":"\u009b","target":"\n\r\u0007x"}`)})
	check(t, m.Text())
	var out bytes.Buffer
	if err := Snapshot(&out, f.runs); err != nil {
		t.Fatal(err)
	}
	check(t, strings.TrimSuffix(out.String(), "\n"))
	if !strings.ContainsAny(hostile, "\x1b") {
		t.Fatal("control: nothing is hostile")
	}
}

func check(t *testing.T, text string) {
	t.Helper()
	if strings.ContainsAny(text, "\x1b\x07\r\u009b\u202e\u200d") {
		t.Errorf("%q", text)
	}
}

// A line that an agent made as long as it can is drawn as soon as a short one,
// and names no layer where none took anything.
func TestLongTextIsCutBeforeItIsMeasured(t *testing.T) {
	m, _, _ := shown(t)
	press(m, "enter")
	for range 20 {
		m.calls = append(m.calls, Call{
			Kind: "cap.audit", Decision: "deny", Cap: "net.http", Reason: "rate_limited",
			Target: strings.Repeat("é<\u0301", 1<<20),
		})
	}
	text := m.Text()
	check(t, text)
	if !strings.Contains(text, "rate_limited: é<?é") || strings.Contains(text, "by base") {
		t.Error(text)
	}
}

// Keys are told from what terminals write for them; what is no key types nothing.
func TestKeys(t *testing.T) {
	for written, want := range map[string][]string{
		"jk":                          {"j", "k"},
		"\x1b[A\x1b[B\x1bOA\x1bOB":    {"up", "down", "up", "down"},
		"\x1b":                        {"esc"},
		"\x1bq":                       {"esc", "q"},
		"\x1b[1;5C\x1b[3~\x1b[200~q":  {"q"},
		"\x1b[":                       nil,
		"\r\n\x03\x7f\x08":            {"enter", "enter", "ctrl+c", "backspace", "backspace"},
		"\x00\x1a\u202e\x9b\xff":      nil,
		"\u4e16":                      {"\u4e16"},
		strings.Repeat("\u4e16", 200): slices.Repeat([]string{"\u4e16"}, 200), // longer than what is read at once
	} {
		var got []string
		if err := readKeys(strings.NewReader(written), func(k Key) { got = append(got, k.Name) }); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
}

// A screen is drawn over the one before, to the end of each line, until q.
func TestLoopDrawsAndEnds(t *testing.T) {
	m, _, _ := shown(t)
	var out bytes.Buffer
	msgs, sent := make(chan Msg, 2), make(chan Msg, 1)
	msgs <- Key{Name: "?"}
	msgs <- Key{Name: "q"}
	if err := m.loop(t.Context(), &out, msgs, nil, func(msg Msg) { sent <- msg }); err != nil {
		t.Fatal(err)
	}
	if _, is := (<-sent).(runsMsg); !is {
		t.Error("nobody asked for the runs")
	}
	frames := strings.Split(out.String(), "\x1b[H")
	if len(frames) != 3 || !strings.Contains(frames[1], "writer") || !strings.Contains(frames[2],
		"asks before\x1b[K\r\n") {
		t.Errorf("%q", frames)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if err := m.loop(over, &out, nil, nil, func(Msg) {}); err != nil {
		t.Error(err)
	}
}
