package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asked begins a run that nobody waits for, and is its id.
func (s *testService) asked(t *testing.T, token, body string) string {
	t.Helper()
	status, text := s.by(t, token, http.MethodPost, "/run", body)
	_, id, _ := strings.Cut(text, `"run_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if status != http.StatusAccepted || id == "" {
		t.Fatalf("%d %s", status, text)
	}
	return id
}

// isOver returns when a run has ended, and is what is known of it.
func (s *testService) isOver(t *testing.T, id string) (text string) {
	t.Helper()
	soon(t, "the run ends", func() bool {
		_, text = s.by(t, "", http.MethodGet, "/runs/"+id, "")
		return strings.Contains(text, `"state":"done"`)
	})
	return text
}

// Who revokes a token ends the run that it has under way, recorded as that, and
// what it has waiting never begins. The operator's run behind both is the control,
// and so is a token of the same name, which has none of its runs.
func TestARevokedTokensRunsEnd(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	s := h.serving(t, "--workers", "1")
	token, id := h.newToken(t, "--name", "ci")
	spins := s.asked(t, token, `{"agent":"probe","wait":false,"args":["write","`+h.work+`/begun","x","spin"]}`)
	h.begun(t)
	waits := s.asked(t, token, `{"agent":"probe","wait":false,"args":["write","`+h.work+`/late","x"]}`)
	control := s.asked(t, "", `{"agent":"probe","wait":false,"args":["write","`+h.work+`/control","x"]}`)
	h.revoke(t, id)
	for _, run := range []string{spins, waits} {
		if text := s.isOver(t, run); !strings.Contains(text, `"outcome":"cancelled"`) ||
			!strings.Contains(text, "the token is revoked") {
			t.Errorf("%s", text)
		}
	}
	if text := s.isOver(t, control); !strings.Contains(text, `"outcome":"ok"`) {
		t.Errorf("control: %s", text)
	}
	if _, err := os.Stat(filepath.Join(h.work, "late")); err == nil {
		t.Error("what waited began")
	}
	if ends := h.ends(t); !slices.Equal(ends, []string{"run.failed cancelled", "run.complete "}) {
		t.Errorf("recorded %q", ends)
	}
	if _, text := s.by(t, "", http.MethodGet, "/audit?run="+spins, ""); !strings.Contains(text, "the token is revoked") {
		t.Errorf("recorded without why: %s", text)
	}
	namesake, _ := h.newToken(t, "--name", "ci", "--may", "run")
	if status, text := s.by(t, namesake, http.MethodGet, "/runs/"+spins, ""); status != http.StatusNotFound {
		t.Errorf("another token of the name: %d %s", status, text)
	}
}

// A run that waits for an input that does not come is ended, recorded as that,
// and its worker is the next run's.
func TestARunThatWaitsForNothingEnds(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	config := filepath.Join(h.home, "config.toml")
	text, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, append(text, "turn_idle = \"1s\"\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := h.serving(t, "--workers", "1")
	idle := s.asked(t, "", `{"agent":"probe","wait":false,"turns":true,"args":["turn","turn"]}`)
	over := s.isOver(t, idle)
	if !strings.Contains(over, `"outcome":"cancelled"`) || !strings.Contains(over, "turn_idle") {
		t.Errorf("%s", over)
	}
	if _, text := s.by(t, "", http.MethodGet, "/audit?run="+idle, ""); !strings.Contains(text, "turn_idle") ||
		!strings.Contains(text, "run.failed") {
		t.Errorf("recorded: %s", text)
	}
	next := s.asked(t, "", `{"agent":"probe","wait":false,"args":["now"]}`)
	if over := s.isOver(t, next); !strings.Contains(over, `"outcome":"ok"`) {
		t.Errorf("control: %s", over)
	}
}
