package run

import (
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// watched is a run whose module imports calls, and what was done for it.
func watched(t *testing.T, calls []string, layers ...*caps.Layer) (report *Report, log *audit.Memory, compiled int) {
	t.Helper()
	log = audit.NewMemory()
	spec := specOf(t, log, "network:https:a.example:443", "network:https:b.example:443", "kb:read:notes", "env:read:FOO")
	spec.Calls, spec.Policy.Layers = calls, layers
	spec.Slow = func() func() { compiled++; return func() {} } // called when a module is compiled
	report = Launch(t.Context(), spec)
	return report, log, compiled
}

func taking(name string, grants ...string) *caps.Layer {
	l := &caps.Layer{Name: name}
	for _, text := range grants {
		list, err := caps.ParseDeny(text)
		if err != nil {
			panic(err)
		}
		for _, g := range list {
			l.Deny = append(l.Deny, caps.Entry{Grant: g, Pos: caps.Pos{File: name + ".toml", Line: 3, Column: 1}})
		}
	}
	return l
}

// What the agent was made for is gone: it is refused for every reason, with what
// took it, and nothing of it is compiled, linked or run. Where something of each
// family is left, or the module never calls it, the run begins.
//
//rlp:holds A39 A40 K72
func TestStarvedRunsAreRefusedBeforeAnythingIsDone(t *testing.T) {
	calls := []string{"net_http", "kb_get", "kb_list"}
	for _, c := range []struct {
		name   string
		calls  []string
		layers []*caps.Layer
		want   []string // "capability layer code"
	}{
		{"control", calls, nil, nil},
		{"control: nobody asks", nil, []*caps.Layer{taking("profile:p", "network:*:*", "kb:read:*")}, nil},
		{"some is left", calls, []*caps.Layer{taking("profile:p", "network:*:a.example:443")}, nil},
		{"all of it, and something asked for that it never held", calls, []*caps.Layer{taking("profile:p", "kb:read:*"), {
			Name: "o", Bounds: []caps.Bound{{Family: caps.KBRead, Modes: 1}}, Allow: []caps.Entry{
				entryOf(t, "kb:read:notes"),
				entryOf(t, "kb:read:more"),
			},
		}}, []string{"kb:read:notes profile:p cap_missing"}},
		{"never called", []string{"kb_get"}, []*caps.Layer{taking("profile:p", "network:*:*", "env:read:*")}, nil},
		{"all of two families, by two layers", calls, []*caps.Layer{
			taking("profile:p", "network:*:a.example:443"),
			taking("token:ci", "network:*:b.example:443", "kb:read:*"),
		}, []string{
			"network:https:a.example profile:p cap_missing", "network:https:b.example token:ci cap_missing",
			"kb:read:notes token:ci cap_missing",
		}},
		{
			"each call hidden", calls,
			[]*caps.Layer{hiding("web:net_http"), hiding("memory:kb_get"), hiding("memory:kb_list")},
			[]string{
				"tool:call:web:net_http profile:p tool_hidden", "tool:call:memory:kb_get profile:p tool_hidden",
				"tool:call:memory:kb_list profile:p tool_hidden",
			},
		},
		{"one of two calls hidden", calls, []*caps.Layer{hiding("memory:kb_get")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, log, compiled := watched(t, c.calls, c.layers...)
			var got []string
			for _, v := range r.Violations {
				got = append(got, v.Capability+" "+v.Layer+" "+v.Code.String())
				if v.Code == caps.CapMissing && strings.HasPrefix(v.Capability, "kb:") && !strings.Contains(v.Message,
					"the agent calls kb_get, kb_list;") || v.Message == "" {
					t.Errorf("%s: %q", v.Capability, v.Message)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("violations %q, want %q", got, c.want)
			}
			if c.want == nil {
				if r.Outcome != OK || compiled != 1 {
					t.Errorf("%s %s, compiled %d times: it should have run", r.Outcome, r.Message, compiled)
				}
				return
			}
			if r.Outcome != Refused || r.ExitCode != StatusPolicy || compiled != 0 || r.Usage.Hostcalls != 0 {
				t.Errorf("%s %d, compiled %d times", r.Outcome, r.ExitCode, compiled)
			}
			if k := kinds(log); !slices.Equal(k, []string{audit.KindRunStart, audit.KindPolicyRejected}) {
				t.Errorf("recorded %q", k)
			}
			if end := log.Events[len(log.Events)-1]; len(end.Violations) != len(c.want) {
				t.Errorf("%d violations are in the record: %q", len(end.Violations), end.Violations)
			}
		})
	}
}
