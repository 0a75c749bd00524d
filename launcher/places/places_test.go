package places_test

import (
	"errors"
	"fmt"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/places"
)

// names are those of a home that is reached by two paths, with placeholders one of
// which lies below the other.
func names() *places.Names {
	return places.Of("/h/.runloop", "/real").Param("notes", "/srv/notes").Param("sub", "/srv/notes/sub").
		With("/srv/led", "/link")
}

func TestPathsAreNamedByWhatTheyAre(t *testing.T) {
	for path, want := range map[string]string{
		"/h/.runloop/config.toml": "config.toml", "/real/caps/x.toml": "caps/x.toml", "/h/.runloop": ".",
		"/h/.runloopx": "/h/.runloopx", "/srv/notes": "{notes}", "/srv/notes/a": "{notes}/a", "/srv/notes/sub/b": "{sub}/b",
		"/srv/notesx": "/srv/notesx", "/srv/led/x": "/link/x", "/etc/passwd": "/etc/passwd", "*": "*", "/": "/",
	} {
		if got := names().Path(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
		if got := (*places.Names)(nil).Path(path); got != path {
			t.Errorf("control: %s is %s to who operates", path, got)
		}
	}
	for text, want := range map[string]string{
		"fs:read:/srv/notes/a": "fs:read:{notes}/a", "kb:read:notes": "kb:read:notes", "fs:read:/": "fs:read:/",
		"network:https:a.example": "network:https:a.example", "net:https://a.example/srv": "net:https://a.example/srv",
	} {
		if got := names().Capability(text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	for file, want := range map[string]string{
		"/h/.runloop/caps/overrides/a.toml": "caps/overrides/a.toml", "/elsewhere/o.toml": "o.toml", "mcp.toml": "mcp.toml",
		"--deny fs:read:/srv/notes": "--deny fs:read:{notes}", "floor.toml (built-in)": "floor.toml (built-in)",
	} {
		if got := names().File(file); got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
}

// Of what placeholders stand for nothing may be known: then no path is told that the
// home does not hold.
func TestWhatIsNotKnownIsNotTold(t *testing.T) {
	hidden := names().Hide()
	if a, b := hidden.Path("/srv/other/x"), hidden.Path("/real/x"); a != "{?}" || b != "x" {
		t.Errorf("%s %s", a, b)
	}
	if names().Path("/srv/other/x") != "/srv/other/x" {
		t.Error("control")
	}
	many := names()
	for i := range 2000 {
		many = many.Param("notes", fmt.Sprint("/srv/", i))
	}
	if a, b := many.Path("/srv/1999/x"), many.Path("/srv/1/x"); a != "{?}" || b != "{notes}/x" {
		t.Errorf("of more values than are remembered %s and %s are told", a, b)
	}
	if (*places.Names)(nil).Param("notes", "/srv/notes") != nil {
		t.Error("who operates is told all by names that another is added to")
	}
}

func TestTextsAreRenderedForWhoReadsThem(t *testing.T) {
	pos := caps.Pos{File: "/h/.runloop/caps/overrides/a.toml", Line: 3, Column: 1}
	inner := places.Textf("%s by %s (%s)", places.Capability("fs:read:/srv/notes"), places.Layer(caps.ProtectedLayer), pos)
	both := places.Join([]places.Text{inner, places.Textf("x")}, ", ")
	text := places.Textf("%d: %s; %s", 1, both, places.Path("/srv/led"))
	if got := text.String(); got != "1: fs:read:/srv/notes by protected (/h/.runloop/caps/overrides/a.toml:3:1), x; "+
		"/srv/led" {
		t.Errorf("who operates reads %s", got)
	}
	if got, is := text.To(names()); !is || got != "1: fs:read:{notes} by the host (caps/overrides/a.toml:3:1), x; /link" {
		t.Errorf("others read %s", got)
	}
	for _, text := range []places.Text{places.Host("stat /x"), places.Textf("a: %v", errors.New("stat /x")), {}} {
		if got, is := places.Textf("b: %s", text).To(names()); is {
			t.Errorf("others read %q", got)
		}
	}
}

// A record is told by its fields: what it says in words of the host is not.
func TestRecordsAreTold(t *testing.T) {
	decided := &audit.Record{Decision: &audit.DecisionRecord{
		Cap: "fs.read", Target: "/srv/notes/a", Layer: caps.ProtectedLayer, Label: "fs:/srv/notes/b",
	}}
	if d := names().Record(decided).Decision; d.Target != "{notes}/a" || d.Layer != caps.HostLayer ||
		d.Label != "fs:{notes}/b" {
		t.Errorf("%+v", d)
	}
	if decided.Decision.Target != "/srv/notes/a" {
		t.Error("the record itself was changed")
	}
	end := &audit.Record{Event: &audit.Event{
		Kind: audit.KindPolicyRejected, Outcome: "refused", Message: "by /h/.runloop/x",
		Violations: []string{"/h/.runloop/x"},
	}}
	if e := names().Record(end).Event; e.Message == end.Event.Message || e.Message == "" || e.Violations != nil {
		t.Errorf("%+v", e)
	}
	trap := &audit.Record{Event: &audit.Event{Kind: audit.KindRunFailed, Outcome: "trap", Message: "unreachable"}}
	if e := names().Record(trap).Event; e.Message != "unreachable" {
		t.Errorf("%+v", e)
	}
	done := &audit.Record{Event: &audit.Event{
		Kind: audit.KindCallDone, Verb: "agent_launch", ErrorSummary: "refused: /h/x",
	}}
	if e := names().Record(done).Event; e.ErrorSummary != "refused" {
		t.Errorf("%+v", e)
	}
	start := &audit.Record{Event: &audit.Event{
		Kind: audit.KindRunStart, Base: []string{"fs:read:/srv/notes"}, Except: []string{"fs:read:/real"},
		Effective: []string{"fs:read:/srv/notes", "fs:read:/real/a"}, Layers: []audit.Layer{
			{Name: caps.ProtectedLayer, Spare: []audit.LayerEntry{{Scope: "/real/a"}}},
			{
				Name: "override:a.toml", File: "/real/caps/a.toml",
				Deny: []audit.LayerEntry{{Family: "fs", Scope: "/srv/notes/sub"}},
			},
		},
	}}
	e := names().Record(start).Event
	if len(e.Layers) != 1 || e.Layers[0].File != "caps/a.toml" || e.Layers[0].Deny[0].Scope != "{sub}" ||
		e.Except != nil ||
		len(e.Effective) != 1 || e.Effective[0] != "fs:read:{notes}" || e.Base[0] != "fs:read:{notes}" {
		t.Errorf("%+v", e)
	}
	if start.Event.Layers[1].Deny[0].Scope != "/srv/notes/sub" || names().Holds("notes = 1") ||
		!names().Holds("x = /srv/led/1") {
		t.Error("the record itself was changed, or texts are not looked through")
	}
}
