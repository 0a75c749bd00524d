package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/internal/effect/web"
	"runloop.dev/rlp/internal/engine/abi"
)

// What went wrong has its number and its words, for the guest and for the record;
// what the host itself could not do is spelled out in neither.
func TestWordsOfFailures(t *testing.T) {
	r := newRig(t, "time:read:*")
	var failed []string
	r.host.cfg.Failed = func(op, why string) { failed = append(failed, op+": "+why) }
	op, err := r.gate.Op("time_now")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err   error
		errno Errno
		says  string
	}{
		{errDenied, Acces, "denied"},
		{fmt.Errorf("x: %w", errDenied), Acces, "x: denied"},
		{fmt.Errorf("x: %w", errBudget), Dquot, "x: budget exhausted"},
		{fmt.Errorf("x: %w", errUnavailable), Notsup, "x: unavailable"},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), TimedOut, "timedout: the call did not end in time"},
		{fmt.Errorf("x: %w", context.Canceled), IO, "io: the call was ended with its run"},
		{&Fail{Errno: Again, Hint: "later"}, Again, "again: later"},
	} {
		if errno, says := errnoOf(c.err), r.host.failure(op, c.err); errno != c.errno || says != c.says ||
			len(failed) != 0 {
			t.Errorf("%v: %v, %q; the log has %q", c.err, errno, says, failed)
		}
	}
	if got := r.host.failure(op, errors.New("disk on fire at /secret/path")); got != "io: the host failed; its log says why" || len(failed) != 1 || failed[0] != "time_now: disk on fire at /secret/path" {
		t.Errorf("%s; the log has %q", got, failed)
	}
	if got := string(r.host.explain(IO, errors.New("disk on fire"))); !strings.Contains(got, "the host could not do it") ||
		strings.Contains(got, "fire") {
		t.Errorf("%s", got)
	}
	for n, want := range map[int]int{199: 199, 200: 200, 201: 200} {
		if got := summary(strings.Repeat("x", n)); len(got) != want {
			t.Errorf("of %d bytes %d are shown", n, len(got))
		}
	}
	if got := hexSum([32]byte{0: 0xab, 31: 0x1}); got != "ab"+strings.Repeat("0", 60)+"01" {
		t.Error(got)
	}
	limited := newRig(t)
	limited.gate.Bound(0)
	if n, d := limited.denial("kb_get", "notes", "k"); Errno(-n) != Dquot || !strings.Contains(d.Hint,
		"limits.hostcalls_max") {
		t.Errorf("%d %+v", n, d)
	}
}

// A response that is as long as its place is in it, with nothing left to read.
func TestResponsesFillTheirPlace(t *testing.T) {
	for i, pending := range []bool{false, true} {
		h := &Host{}
		if n := h.respond(make([]byte, 5), []byte("hello!")[:5+i], nil); int(n) != 5+i || h.unread != pending {
			t.Errorf("%d bytes: %d, %v", 5+i, n, h.unread)
		}
	}
}

// What cannot be marked is not shown: every way by which something comes in gives
// the error and nothing else.
func TestWhatCannotBeMarkedComesFromNowhere(t *testing.T) {
	r, f := mcpRig(t, github)
	r.host.cfg.Sources = sourcesOf(t, "kb:notes", "input", "exec:/bin/x")
	ended := make(chan struct{})
	close(ended)
	r.gate.Close(ended)
	x := &exchange{h: r.host, mode: 0, Place: web.Place{Host: "api.example.com:443"}}
	e := &execReq{program: Program{File: "/bin/x", Via: []string{"/bin/x"}}}
	m := serverCall{&mcpReq{server: "github", on: f, tool: "search"}, r.host}
	for name, in := range map[string]func() error{
		"an answer":   x.takeInAnswer,
		"keys":        func() error { return r.host.takeInKeys("notes", []KBEntry{{Key: "k"}}) },
		"hits":        func() error { return r.host.takeInHits("notes", []KBHit{{Key: "k"}}) },
		"a value":     func() error { return r.host.takeInValue(kbReq{domain: "notes", key: "k"}, KBValue{}) },
		"an output":   func() error { return r.host.takeInOutput(e) },
		"an input":    r.host.TakeInInput,
		"a list":      func() error { _, err := m.list(nil); return err },
		"a result":    func() error { _, err := m.send(t.Context()); return err },
		"a complaint": func() error { return m.failed(&MCPError{}) },
	} {
		if err := in(); !errors.Is(err, gate.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cause is one line of so many bytes, cut between characters.
func TestCausesAreCut(t *testing.T) {
	for name, want := range map[string]string{
		"": "kb", "a": "kb:a",
		strings.Repeat("x", gate.MaxCause-3): "kb:" + strings.Repeat("x", gate.MaxCause-3),
		strings.Repeat("x", gate.MaxCause-2): "kb:" + strings.Repeat("x", gate.MaxCause-6) + "...",
		strings.Repeat("é", gate.MaxCause):   "kb:" + strings.Repeat("é", (gate.MaxCause-6)/2) + "...",
		"x" + strings.Repeat("é", 1024):      "kb:x" + strings.Repeat("é", (gate.MaxCause-7)/2) + "...",
	} {
		if got := gate.Cause("kb", name); got != want {
			t.Errorf("%.20s: %d bytes, want %d", name, len(got), len(want))
		}
	}
}

// A value that JSON escapes is taken out of what a model says before it is.
func TestModelAnswersAreScrubbedBeforeTheyAreEscaped(t *testing.T) {
	const value = `hunter<2>hunter`
	r, backend := modelRig(t, "model:use:*")
	r.host.cfg.Secrets = oneSecret{"rlsec_abc", value, "runloop/mail/key"}
	backend.text = value
	if _, text := r.call("model_complete", askJSON("", "x")); strings.Contains(text, "hunter") ||
		strings.Count(text, "[secret]") != 2 {
		t.Errorf("%s", text)
	}
	for kind, reason := range map[model.Kind]string{
		model.RateLimited: "rate_limited", model.Refused: "unavailable",
		model.Unavailable: "unavailable", model.Invalid: "invalid_request",
	} {
		backend.err = &model.Failure{Kind: kind, Charge: model.ChargeNothing}
		if _, a := r.denial("model_complete", askJSON("", string(kind))); a.Reason != reason || strings.HasSuffix(a.Hint,
			": ") {
			t.Errorf("%s: %+v", kind, a)
		}
	}
	var warned []string
	r.host.cfg.Warn = func(m string) { warned = append(warned, m) }
	for reason, want := range map[model.Reason]struct {
		errno  Errno
		reason caps.Code
	}{model.NoProvider: {Notsup, caps.Unavailable}, model.OverRate: {Dquot, caps.RateLimited}, model.OverBudget: {
		Dquot,
		caps.BudgetExhausted,
	}} {
		warned = nil
		var f *Fail
		if err := r.host.modelError("m", &model.Refusal{Reason: reason, Hint: "h"}); !errors.As(err, &f) ||
			f.Errno != want.errno || f.Reason != want.reason || f.Hint != "h" || len(warned) != 1 {
			t.Errorf("%v: %+v, warned of %q", reason, f, warned)
		}
	}
}

// counting is a clock that knows whether it is stopped.
type counting struct{ stopped bool }

func (c *counting) Stop() func()        { c.stopped = true; return func() { c.stopped = false } }
func (*counting) Bound(d time.Duration) {}

// A person is shown no value of a secret; the time that they take is not the
// run's, and what they said no to is not asked twice, whatever else was asked.
func TestAPersonIsAsked(t *testing.T) {
	r, clock := newRig(t), &counting{}
	r.host.cfg.Secrets = oneSecret{"rlsec_abc", "hunter2hunter2", "runloop/t/x"}
	var asked []Question
	r.host.cfg.Confirm = func(_ context.Context, q Question) (bool, string) {
		if asked = append(asked, q); !clock.stopped {
			t.Error("the clock goes on")
		}
		return q.Tool == "good", "by the test"
	}
	ctx := abi.WithClock(t.Context(), clock)
	q := Question{"bad", "says hunter2hunter2", "to hunter2hunter2", "with hunter2hunter2"}
	first, second := r.host.unconfirmed(ctx, q), r.host.unconfirmed(ctx, q)
	if clock.stopped || len(asked) != 1 || asked[0] != (Question{"bad", "says [secret]", "to [secret]", "with [secret]"}) {
		t.Errorf("asked %+v, the clock is stopped: %v", asked, clock.stopped)
	}
	if first != "the call was not confirmed: by the test" || !strings.Contains(second, "said no to this very call") {
		t.Errorf("%q, %q", first, second)
	}
	if why := r.host.unconfirmed(ctx, Question{Tool: "good"}); why != "" || r.host.consent != "confirmed by the test" {
		t.Errorf("%q, %q", why, r.host.consent)
	}
}

// What is written is JSON, whatever the text.
func TestJSONIsWritten(t *testing.T) {
	for s, want := range map[string]string{
		"a\"\\\x1f \x7fé\ufffd\xffb": `"a\"\\\u001f ` + "\x7fé\ufffd\ufffdb" + `"`, "": `""`, "\x80": "\"\ufffd\"",
	} {
		if got := string(strictjson.AppendText(nil, s)); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	if a, b := printable(strings.Repeat("x", 64)), printable(strings.Repeat("x", 65)); len(a) != 64 || a != b {
		t.Errorf("%d, %d", len(a), len(b))
	}
}
