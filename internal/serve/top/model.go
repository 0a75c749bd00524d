// Package top shows the runs of a service on a terminal, and the calls of one of
// them as they are decided.
//
// Its law: what agents, bundles and the service wrote is text; nothing of it
// steers the terminal. A run is ended only after a yes. What it shows is what the
// client was told, and it holds a bounded part of that.
package top

import (
	"context"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/client"
)

// A Service is what is asked.
type Service interface {
	Runs(ctx context.Context, limit int) ([]client.Run, error)
	Cancel(ctx context.Context, id string) error
}

// Bounds of what is held.
const (
	mostRuns  = 200
	mostCalls = 1000
	refresh   = time.Second
	askTime   = 5 * time.Second
)

// A Call is one decision of a run, or the end of a call.
type Call struct {
	At       string `json:"ts"`
	Kind     string `json:"kind"`
	Cap      string `json:"cap"`
	Target   string `json:"target"`
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	Layer    string `json:"layer"`
	Verb     string `json:"verb"`
	Status   string `json:"status"`
	Outcome  string `json:"outcome"`
}

// A Msg is what happened: a [Key], a [CallMsg] or one of those below.
type Msg any

// A Cmd does what takes time, beside the screen, and says what came of it.
type Cmd func(ctx context.Context) Msg

type (
	runsMsg struct {
		runs []client.Run
		err  error
	}
	// A CallMsg is a record of the run that is followed.
	CallMsg struct {
		Run  string
		Data []byte
	}
	tickMsg      struct{}
	cancelledMsg struct{ err error }
)

// A Model is what is shown. Follow begins to follow a run, and is called with ""
// when none is followed any more.
type Model struct {
	Service Service
	Follow  func(run string)
	Color   bool

	width, height int
	runs          []client.Run
	problem       string
	at            string // id of the chosen run
	open          string // id of the run whose calls are shown
	calls         []Call
	filter        string
	typing        bool // the filter
	asking        string
	help          bool
	ended         bool
}

// Init is what is done first.
func (m *Model) Init() Cmd { return m.load }

func (m *Model) load(ctx context.Context) Msg {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	runs, err := m.Service.Runs(ctx, mostRuns)
	return runsMsg{runs, err}
}

// Update takes in what happened, and returns what is to be done about it.
func (m *Model) Update(msg Msg) Cmd {
	switch msg := msg.(type) {
	case runsMsg:
		m.problem = ""
		if msg.err != nil {
			m.problem = msg.err.Error()
		} else {
			m.runs = msg.runs
		}
		m.settle()
		return wait
	case tickMsg:
		return m.load
	case CallMsg:
		m.call(msg)
	case cancelledMsg:
		if msg.err != nil {
			m.problem = msg.err.Error()
		}
	case Key:
		return m.key(msg)
	}
	return nil
}

// wait waits until runs are asked for again.
func wait(ctx context.Context) Msg {
	select {
	case <-time.After(refresh):
	case <-ctx.Done():
	}
	return tickMsg{}
}

// call takes in a record of the run that is shown.
func (m *Model) call(msg CallMsg) {
	var c Call
	if msg.Run != m.open || strictjson.Unmarshal(msg.Data, &c, strictjson.UnknownFields) != nil || c.Kind == "" {
		return
	}
	if len(m.calls) >= mostCalls {
		m.calls = slices.Delete(m.calls, 0, mostCalls/10)
	}
	m.calls = append(m.calls, c)
}

// shown are the runs that the filter lets through.
func (m *Model) shown() []client.Run {
	var list []client.Run
	for _, r := range m.runs {
		if m.filter == "" || strings.Contains(r.Agent, m.filter) || strings.Contains(r.State, m.filter) ||
			strings.Contains(r.Outcome, m.filter) || strings.Contains(r.RunID, m.filter) {
			list = append(list, r)
		}
	}
	return list
}

// place is where the chosen run is among those that are shown.
func (m *Model) place(list []client.Run) int {
	return max(0, slices.IndexFunc(list, func(r client.Run) bool { return r.RunID == m.at }))
}

// settle has a run be chosen that is there.
func (m *Model) settle() {
	if list := m.shown(); len(list) > 0 {
		m.at = list[m.place(list)].RunID
	} else {
		m.at = ""
	}
}

// key does what a key is for.
func (m *Model) key(k Key) Cmd {
	name := k.Name
	switch {
	case name == "ctrl+c":
		m.ended = true
		return nil
	case m.typing:
		m.typed(name, k.Text)
		return nil
	case m.asking != "":
		run := m.asking
		m.asking = ""
		if name == "y" {
			return func(ctx context.Context) Msg {
				ctx, cancel := context.WithTimeout(ctx, askTime)
				defer cancel()
				return cancelledMsg{m.Service.Cancel(ctx, run)}
			}
		}
		return nil
	}
	switch name {
	case "q":
		m.ended = true
	case "?":
		m.help = !m.help
	case "/":
		m.typing = m.open == ""
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "enter":
		m.show(m.at)
	case "esc":
		m.help = false
		m.show("")
	case "c":
		m.askCancel()
	}
	return nil
}

// typed edits the filter.
func (m *Model) typed(name, text string) {
	const most = 64
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	default:
		if len(m.filter)+len(text) <= most {
			m.filter += text
		}
	}
	m.settle()
}

func (m *Model) move(by int) {
	list := m.shown()
	if m.open != "" || len(list) == 0 {
		return
	}
	m.at = list[min(max(m.place(list)+by, 0), len(list)-1)].RunID
}

// show opens a run, or none.
func (m *Model) show(run string) {
	if m.open == run {
		return
	}
	m.open, m.calls = run, nil
	m.Follow(run)
}

// askCancel asks whether the chosen run is to be ended, if it can be.
func (m *Model) askCancel() {
	for _, r := range m.runs {
		if r.RunID == m.at && !r.Ended() {
			m.asking = r.RunID
		}
	}
}
