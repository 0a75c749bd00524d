package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// inputs are those of a conversation; what comes after them is the error.
type inputs struct {
	texts []string
	err   error
	asked int
}

func (in *inputs) Next(context.Context) ([]byte, error) {
	in.asked++
	if len(in.texts) == 0 {
		return nil, in.err
	}
	text := in.texts[0]
	in.texts = in.texts[1:]
	return []byte(text), nil
}

// A guest is given one input after the other, as it is, and is told when there is
// none any more, and what was wrong with one; a run without turns has none.
func TestTurnsGiveInputs(t *testing.T) {
	long := strings.Repeat("x", 3*outRoom)
	for name, c := range map[string]struct {
		turns Turns
		want  []string
	}{
		"none given": {nil, []string{"-44 noent", "-44 noent"}},
		"some": {&inputs{texts: []string{"one", "", "a\x00\xff", long}, err: io.EOF}, []string{
			"one", "", "a\x00\xff",
			long, "-44 noent", "-44 noent",
		}},
		"too long": {&inputs{err: &Fail{Errno: TooBig, Hint: "ask again"}}, []string{"-1 2big"}},
		"broken":   {&inputs{err: errors.New("/secret/path is on fire")}, []string{"-29 io"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.host.cfg.Turns = c.turns
			for i, want := range c.want {
				n, text := r.call("turn_next")
				if n < 0 {
					if strings.Contains(text, "/secret/path") {
						t.Errorf("the guest is told %s", text)
					}
					_, rest, _ := strings.Cut(text, `"error":"`)
					word, _, _ := strings.Cut(rest, `"`)
					text = fmt.Sprintf("%d %s", n, word)
				}
				if text != want {
					t.Errorf("call %d: %.80q, want %.80q", i, text, want)
				}
			}
			if calls := r.gate.Calls(); calls != int64(len(c.want)) {
				t.Errorf("%d calls were counted, want %d", calls, len(c.want))
			}
		})
	}
}

// An agent has no way to have anything read again but to end its turn, and none
// at all when that is hidden from it: it is refused by name, and nobody is asked.
// A turn more than limits.hostcalls_max leaves is none either.
//
//rlp:holds Y13
func TestAHiddenTurnEndsNothing(t *testing.T) {
	hide := func(scope string) *caps.Layer {
		return &caps.Layer{
			Name: "override:a.toml",
			Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: scope}}},
		}
	}
	for name, c := range map[string]struct {
		layer  *caps.Layer
		most   int64
		reason string
	}{
		"control":             {nil, -1, ""},
		"control: other tool": {hide("memory:kb_put"), -1, ""},
		"by its name":         {hide("session:turn_next"), -1, "tool_hidden"},
		"by its category":     {hide("session:*"), -1, "tool_hidden"},
		"no calls left":       {nil, 0, "budget_exhausted"},
	} {
		t.Run(name, func(t *testing.T) {
			r, in := newRig(t), &inputs{texts: []string{"one"}, err: io.EOF}
			r.host.cfg.Turns = in
			if c.layer != nil {
				if err := r.gate.Hold(c.layer); err != nil {
					t.Fatal(err)
				}
			}
			r.gate.Bound(c.most)
			n, text := r.call("turn_next")
			if c.layer != nil && c.reason != "" {
				if rec := r.log.Decisions; len(rec) != 1 || rec[0].Op != "turn_next" || !rec[0].Deny || rec[0].Reason != c.reason ||
					rec[0].Layer != "override:a.toml" {
					t.Errorf("recorded as %+v", rec)
				}
			} else if len(r.log.Decisions) != 0 { // nothing was touched
				t.Errorf("recorded as %+v", r.log.Decisions)
			}
			if r.gate.Calls() != 1 && c.most < 0 {
				t.Errorf("%d calls were counted", r.gate.Calls())
			}
			if c.reason == "" {
				if text != "one" || in.asked != 1 {
					t.Errorf("%q, asked %d times", text, in.asked)
				}
				return
			}
			if n >= 0 || in.asked != 0 || !strings.Contains(text, c.reason) {
				t.Errorf("%d %s, asked %d times", n, text, in.asked)
			}
			if c.layer != nil && !strings.Contains(text, "override:a.toml") {
				t.Errorf("the guest is not told which layer: %s", text)
			}
		})
	}
}

// What a run may use is lowered and raised again between turns, and what it has
// used stays used.
func TestLimitsChangeBetweenTurns(t *testing.T) {
	r := newRig(t, "kb:write:notes")
	put := func(size int) int64 {
		n, _ := r.call("kb_put", "notes", "k", strings.Repeat("v", size))
		return n
	}
	limit := func(bytes int64) { r.host.Bound(caps.Limits{}.With(caps.KBWriteBytes, bytes)) }
	if n := put(100); n < 0 {
		t.Fatalf("control: %d", n)
	}
	limit(150)
	if n := put(100); n != -int64(Dquot) {
		t.Errorf("over the lowered limit: %d", n)
	}
	if n := put(20); n < 0 {
		t.Errorf("within the lowered limit: %d", n)
	}
	limit(300)
	if n := put(100); n < 0 {
		t.Errorf("within what was given back: %d", n)
	}
	if n := put(200); n != -int64(Dquot) {
		t.Errorf("what was used is forgotten: %d", n)
	}
}
