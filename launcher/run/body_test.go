package run

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/internal/record/audit"
)

// wordy is a server of one tool, which says much.
type wordy struct{}

func (wordy) Server(string) hostcalls.MCPServer { return wordy{} }

func (wordy) Tools(context.Context) (hostcalls.MCPTools, error) {
	return hostcalls.MCPTools{List: []hostcalls.MCPTool{{Name: "a", InputSchema: json.RawMessage(`{}`)}}}, nil
}

func (wordy) Call(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`"` + strings.Repeat("x", 3*room) + `"`), nil
}

// A run without a module makes the calls of guests: judged by the same gate,
// recorded alike, and its report is one like any other.
func TestABodyCallsAsAGuestDoes(t *testing.T) {
	log := audit.NewMemory()
	s := specOf(t, log, "time:read:*", "mcp:call:big")
	s.Components.MCP = wordy{}
	s.Policy.Layers = []*caps.Layer{{Name: "override", Deny: []caps.Entry{entryOf(t, "time:read:*")}}}
	s.Policy.Endless = true
	s.Body = func(ctx context.Context, c *Calls) error {
		var no *hostcalls.Answer
		if _, err := c.Call(ctx, "time_now"); !errors.As(err, &no) || no.Reason != "cap_missing" ||
			no.Capability != "time:read:*" {
			t.Errorf("what a layer took: %v", err)
		}
		if out, err := c.Call(ctx, "mcp_call", `{"server":"big","tool":"a"}`); err != nil || len(out) != 3*room+2 {
			t.Errorf("%d bytes, %v", len(out), err)
		}
		if _, err := c.Call(ctx, "mcp_call", "a", "b"); err == nil || errors.As(err, &no) && no.Reason == "" {
			t.Errorf("a call with too many arguments: %v", err)
		}
		if out, err := c.Call(ctx, "result", `{"n":1}`); err != nil || len(out) != 0 {
			t.Errorf("%s %v", out, err)
		}
		return nil
	}
	r := Launch(t.Context(), s)
	if r.Outcome != OK || string(r.Result) != `{"n":1}` || r.Usage.Denied != 1 || r.Lane.Name != "none" ||
		r.Untrusted == nil {
		t.Errorf("%+v", r)
	}
	if _, timed := r.Limits["wall_time_ms"]; timed {
		t.Errorf("limits %v", r.Limits)
	}
	if n := len(log.Decisions); n != 2 || !log.Decisions[0].Deny || log.Decisions[1].Deny {
		t.Errorf("%+v", log.Decisions)
	}
}

// A body ends as it says, with its time, with who launched it, or with a fault.
func TestHowABodyEnds(t *testing.T) {
	for name, c := range map[string]struct {
		body   Body
		ms     int64
		status int
		want   Outcome
	}{
		"well": {func(context.Context, *Calls) error { return nil }, 0, StatusOK, OK},
		"itself": {
			func(context.Context, *Calls) error { return &Stopped{Unsupported, StatusUnsupported, "no lane"} }, 0,
			StatusUnsupported, Unsupported,
		},
		"error":  {func(context.Context, *Calls) error { return errors.New("no server") }, 0, StatusUnavailable, Refused},
		"late":   {func(ctx context.Context, _ *Calls) error { <-ctx.Done(); return ctx.Err() }, 1, StatusTimeout, Timeout},
		"broken": {func(context.Context, *Calls) error { panic("x") }, 0, StatusUnavailable, Fault},
	} {
		s := specOf(t, audit.NewMemory(), "time:read:*")
		s.Policy.Endless, s.Body = true, c.body
		if c.ms > 0 {
			s.Policy.Layers = []*caps.Layer{{Name: "config", Limits: caps.Limits{}.With(caps.WallTimeMS, c.ms)}}
		}
		if r := Launch(t.Context(), s); r.Outcome != c.want || r.ExitCode != c.status {
			t.Errorf("%s: %s %d %s", name, r.Outcome, r.ExitCode, r.Message)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := specOf(t, audit.NewMemory())
	s.Policy.Endless = true
	s.Body = func(ctx context.Context, _ *Calls) error { cancel(); <-ctx.Done(); return ctx.Err() }
	if r := Launch(ctx, s); r.Outcome != Cancelled || r.ExitCode != StatusCancelled {
		t.Errorf("cancelled: %s %d", r.Outcome, r.ExitCode)
	}
}

// A program that a body had run ends with its own code; all that it wrote was passed
// on, and what the report keeps of it is bounded.
func TestAProgramsEnd(t *testing.T) {
	for _, c := range []struct {
		end    error
		want   Outcome
		status int
		guest  string
	}{
		{ExitCode(0), OK, 0, "0"},
		{ExitCode(3), Exit, 3, "3"},
		{ExitCode(StatusTimeout), Exit, 1, "124"},
		{&Stopped{Trap, StatusFinding, "ended by a signal"}, Trap, 1, "none"},
		{&Stopped{Memory, StatusMemory, "had all its memory"}, Memory, 138, "none"},
	} {
		s := specOf(t, audit.NewMemory())
		var live strings.Builder
		s.Stdout = &live
		s.Policy.Layers = []*caps.Layer{{Name: "config", Limits: caps.Limits{}.With(caps.StdoutMaxBytes, 3)}}
		s.Body = func(_ context.Context, b *Calls) error {
			_, err := b.Stdout.Write([]byte("12345"))
			return errors.Join(err, c.end)
		}
		r := Launch(t.Context(), s)
		guest := "none"
		if r.GuestExit != nil {
			guest = strconv.Itoa(int(*r.GuestExit))
		}
		if r.Outcome != c.want || r.ExitCode != c.status || guest != c.guest {
			t.Errorf("%v: %s %d %s %s", c.end, r.Outcome, r.ExitCode, guest, r.Message)
		}
		if live.String() != "12345" || r.Stdout != "123" || !r.Usage.StdoutTruncated {
			t.Errorf("%q %q %v", live.String(), r.Stdout, r.Usage.StdoutTruncated)
		}
	}
}

// What the operator edits holds while a program runs, and what is spent is spent
// under whatever launched it.
func TestEditsReachABody(t *testing.T) {
	log := audit.NewMemory()
	s := specOf(t, log, "network:https:a.example", "network:https:b.example")
	s.Above = budget.New(caps.Limits{}.With(caps.NetBytes, 100), nil)
	edited := false
	s.Look = func() (Look, bool, error) {
		if edited {
			return Look{}, false, nil
		}
		edited = true
		return Look{Components: []string{"override:x"}, Layers: []*caps.Layer{{
			Name: "override:x", Deny: []caps.Entry{entryOf(t, "network:https:b.example")},
		}}}, true, nil
	}
	s.Body = func(ctx context.Context, c *Calls) error {
		may := func(host string) bool {
			c.Lock().Lock()
			defer c.Lock().Unlock()
			return c.Gate.Set().Check(caps.Request{Family: caps.Net, Name: host + ":443"}).Allow
		}
		if !may("a.example") || !may("b.example") {
			t.Error("denied before the edit")
		}
		if err := c.Reload(); err != nil {
			t.Error(err)
		}
		if !may("a.example") || may("b.example") {
			t.Error("the edit does not hold")
		}
		c.Budget.Take(caps.NetBytes, 7)
		return nil
	}
	if r := Launch(t.Context(), s); r.Outcome != OK || r.Generation != 2 || s.Above.Used(caps.NetBytes) != 7 {
		t.Errorf("%+v, %d bytes", r, s.Above.Used(caps.NetBytes))
	}
}

// slowAgents answer when they are told to.
type slowAgents struct{ began, proceed chan struct{} }

func (a slowAgents) Launch(context.Context, *hostcalls.Delegation) (*hostcalls.Delegated, error) {
	a.began <- struct{}{}
	<-a.proceed
	return &hostcalls.Delegated{Report: []byte("{}"), RunID: "r1", Outcome: "ok"}, nil
}

// While an agent that a body launched is under way, its other calls are answered.
func TestCallsDoNotWaitForAgents(t *testing.T) {
	s := specOf(t, audit.NewMemory(), "agents:launch:critic", "time:read:*")
	agents := slowAgents{make(chan struct{}), make(chan struct{})}
	s.Components.Agents = agents
	s.Body = func(ctx context.Context, c *Calls) error {
		launched := make(chan error, 1)
		go func() {
			text, err := c.Call(ctx, "agent_launch", `{"agent":"critic"}`)
			if string(text) != "{}" {
				t.Errorf("%s", text)
			}
			launched <- err
		}()
		<-agents.began
		if text, err := c.Call(ctx, "time_now"); err != nil || len(text) < 19 {
			t.Errorf("%s, %v", text, err)
		}
		close(agents.proceed)
		return <-launched
	}
	if r := Launch(t.Context(), s); r.Outcome != OK {
		t.Errorf("%+v", r)
	}
}

// heldAgents says at the end which agent it was asked for.
type heldAgents struct {
	slowAgents
	asked chan string
}

func (a heldAgents) Launch(ctx context.Context, d *hostcalls.Delegation) (*hostcalls.Delegated, error) {
	got, err := a.slowAgents.Launch(ctx, d)
	a.asked <- strings.Clone(d.Agent)
	return got, err
}

// What one launch was judged for is what is launched, whatever the program asks for
// while it is under way.
func TestALaunchIsOfWhatWasJudged(t *testing.T) {
	s := specOf(t, audit.NewMemory(), "agents:launch:critic", "time:read:*")
	agents := heldAgents{slowAgents{make(chan struct{}), make(chan struct{})}, make(chan string, 1)}
	s.Components.Agents = agents
	s.Body = func(ctx context.Context, c *Calls) error {
		launched, refused := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, "agent_launch", `{"agent":"critic"}`)
			launched <- err
		}()
		<-agents.began
		go func() {
			_, err := c.Call(ctx, "agent_launch", `{"agent":"editor"}`)
			refused <- err
		}()
		for range 1000 {
			if _, err := c.Call(ctx, "time_now"); err != nil {
				t.Error(err)
			}
			runtime.Gosched()
		}
		close(agents.proceed)
		if asked := <-agents.asked; asked != "critic" {
			t.Errorf("%s is launched, which nobody granted", asked)
		}
		var no *hostcalls.Answer
		if err := <-refused; !errors.As(err, &no) || no.Capability != "agents:launch:editor" {
			t.Errorf("control: %v", err)
		}
		return <-launched
	}
	if r := Launch(t.Context(), s); r.Outcome != OK {
		t.Errorf("%+v", r)
	}
}
