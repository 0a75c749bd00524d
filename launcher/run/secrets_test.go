package run

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/places"
)

// marked are secrets whose one value is "the-value".
type marked struct{ known bool }

func (marked) Handle(context.Context, string) (string, error) { return "rlsec_x", nil }
func (marked) Named(string) []string                          { return nil }
func (marked) Fill(text string, _ func(string) error) (string, error) {
	return text, nil
}

func (m *marked) Scrub(p []byte, replaced func(string)) []byte {
	if !m.known || !bytes.Contains(p, []byte("the-value")) {
		return p
	}
	replaced("runloop/a/b")
	return bytes.ReplaceAll(p, []byte("the-value"), []byte("[gone]"))
}

func (m *marked) Sending(string, string) error                 { return nil }
func (m *marked) Hear(context.Context, string, []string) error { return nil }
func (m *marked) Knows() bool                                  { return m.known }

func (m *marked) Stream(replaced func(string)) func([]byte, bool) []byte {
	var held []byte
	return func(p []byte, end bool) []byte {
		held = append(held, p...)
		if !end && bytes.HasSuffix(held, []byte("the-")) {
			return nil
		}
		out := m.Scrub(held, replaced)
		held = nil
		return out
	}
}

// What a guest prints goes through the scrubber before it is counted against
// the cap, passed on or kept, and what was held back comes at the end.
func TestCaptureIsScrubbed(t *testing.T) {
	var live bytes.Buffer
	var told []string
	c := capture{max: 100, live: &live, scrub: (&marked{known: true}).Stream(func(id string) { told = append(told, id) })}
	for _, s := range []string{"a the-", "value b", " the-"} {
		if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", s, n, err)
		}
	}
	if live.String() != "a [gone] b" {
		t.Errorf("passed on %q", live.String())
	}
	c.flush()
	if got := c.kept.String(); got != "a [gone] b the-" || got != live.String() || c.total != 18 || len(told) != 1 {
		t.Errorf("kept %q, passed on %q, total %d, told %v", got, live.String(), c.total, told)
	}
}

// No value is in a record or a report, and each that was taken out is told once.
//
//rlp:holds K11 A51
func TestValuesStayOutOfRecordsAndReports(t *testing.T) {
	log := audit.NewMemory()
	spec := specOf(t, log, "kb:read:notes")
	known := &marked{}
	spec.Components.Secrets = known
	plan, err := NewPlan(spec.Policy)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(spec, plan)
	r.out.max, r.err.max = 1000, 1000
	r.values.watch(&r.out, &r.err)
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	note := func(target string) {
		t.Helper()
		if _, err := r.journal.Decide(&audit.Decision{Target: target}); err != nil {
			t.Fatal(err)
		}
	}
	note("control the-value")
	if got := log.Decisions[0].Target; got != "control the-value" {
		t.Fatalf("control: %q", got)
	}
	known.known = true
	note("path the-value")
	note("path the-value")
	_, _ = r.out.Write([]byte("out the-value\n"))
	_, _ = r.err.Write([]byte("err the-value\n"))
	r.report.refuse(Trap, 1, places.Textf("trap the-value"))
	r.finish()

	var all []string
	for _, d := range log.Decisions[1:] {
		all = append(all, d.Target)
	}
	for _, e := range log.Events {
		all = append(all, e.Message, e.ErrorSummary)
	}
	all = append(all, r.report.Stdout, r.report.Stderr, r.report.Message)
	if text := strings.Join(all, "|"); strings.Contains(text, "the-value") || strings.Count(text, "[gone]") < 5 {
		t.Errorf("%s", text)
	}
	notes := 0
	for _, d := range log.Decisions {
		if d.Cap == "secrets.get" && d.Target == "runloop/a/b" && d.Deny && d.Reason == "secret_not_permitted" {
			notes++
		}
	}
	if len(r.report.Warnings) != notes || notes != 4 || !slices.ContainsFunc(r.report.Warnings, func(w string) bool {
		return strings.Contains(w, "stdout")
	}) {
		t.Errorf("%d notes, warnings %q", notes, r.report.Warnings)
	}
	if r.report.Usage.SecretsReplaced < 5 {
		t.Errorf("counted %d", r.report.Usage.SecretsReplaced)
	}
}

func TestWarningsAreBounded(t *testing.T) {
	r := newRun(specOf(t, audit.NewMemory()), Plan{})
	for i := range 500 {
		r.warnOnce(strings.Repeat("x", i%200+1))
	}
	if len(r.report.Warnings) != 100 {
		t.Errorf("%d warnings", len(r.report.Warnings))
	}
}
