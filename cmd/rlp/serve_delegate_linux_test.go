package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// by asks as the holder of a token; "" is the operator.
func (s *testService) by(t *testing.T, token, method, path, body string) (int, string) {
	t.Helper()
	answer := s.open(t, token, method, path, body)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (s *testService) open(t *testing.T, token, method, path, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.said.Addresses[1]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, s.stderr)
	}
	return answer
}

// streamed is all of a stream, once it has ended.
func (s *testService) streamed(t *testing.T, token, path string) <-chan string {
	t.Helper()
	answer := s.open(t, token, http.MethodGet, path, "")
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d", path, answer.StatusCode)
	}
	all := make(chan string, 1)
	go func() {
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		all <- fmt.Sprint(string(text), err)
	}()
	return all
}

// bossed asks for a run of "boss", which has "critic" do what is said.
func (s *testService) bossed(t *testing.T, token string, wait bool, critic ...string) (stdout, run string) {
	t.Helper()
	does, err := json.Marshal(critic)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"agent": "boss", "wait": wait, "args": []string{
		"delegate", "critic",
		string(does),
	}})
	if err != nil {
		t.Fatal(err)
	}
	status, text := s.by(t, token, http.MethodPost, "/run", string(body))
	var report struct {
		RunID  string `json:"run_id"`
		Stdout string `json:"stdout"`
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil || status/100 != 2 {
		t.Fatalf("%d %s", status, text)
	}
	return report.Stdout, report.RunID
}

// A run that a run of a token's launched is the tenant's, as the other is: seen,
// followed and recorded there and nowhere else, under every floor, and ended
// with the run that launched it.
//
//rlp:holds A60 K57
func TestDelegatesOfATokensRuns(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.delegating(t, "--tenant", "acme")
	config := filepath.Join(h.home, "config.toml")
	text, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, append(text, "[delegation]\ncapability_default = \"deny\"\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	narrow := filepath.Join(t.TempDir(), "narrow.toml")
	if err := os.WriteFile(narrow, []byte("[deny]\ncapabilities = [\"fs:write:"+h.work+"/kept\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := h.serving(t)
	token, _ := h.newToken(t, "--name", "ci", "--tenant", "acme", "--grant", narrow)
	other, _ := h.newToken(t, "--name", "other", "--tenant", "other")
	if err := os.Mkdir(filepath.Join(h.work, "kept"), 0o700); err != nil {
		t.Fatal(err)
	}

	// Floors: of delegates, of the launching run, of the token.
	out, _ := s.bossed(t, token, true, "get", "drafts", "k", "put", "drafts", "k", "v", "get", "notes", "k", "write",
		h.work+"/kept/x", "y", "write", h.work+"/free", "y")
	for _, want := range []string{
		"critic", "get drafts k: error: kb_get: does not exist", "put drafts k v: error",
		"get notes k: error", "write " + h.work + "/kept/x y: error", "write " + h.work + "/free y: ok",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("its output has no %q: %s", want, out)
		}
	}
	if status, text := s.by(t, token, http.MethodPost, "/run",
		`{"agent":"critic","args":["put","drafts","k","v","get","notes","k","write","`+h.work+
			`/kept/x","y"]}`); status != 200 ||
		!strings.Contains(text, "put drafts k v: revision") ||
		!strings.Contains(text, "get notes k: error: kb_get: does not exist") || !strings.Contains(text, "kept/x y: error") {
		t.Errorf("control: %d %s", status, text)
	}

	// Under way: both are seen, followed, and cancelled by the first alone.
	_, boss := s.bossed(t, token, false, "write", h.work+"/begun", "x", "spin")
	h.begun(t)
	critic := s.launchedBy(t, token, boss)
	of := map[string]<-chan string{boss: s.streamed(t, token, "/runs/"+boss+"/events"), critic: s.streamed(t, token,
		"/runs/"+critic+"/events")}
	for _, id := range []string{boss, critic} {
		if status, text := s.by(t, token, http.MethodGet, "/runs/"+id, ""); status != 200 ||
			!strings.Contains(text, `"state":"running"`) || !strings.Contains(text, `"tenant":"acme"`) {
			t.Errorf("%d %s", status, text)
		}
		for who, stranger := range map[string]string{"another tenant": other, "the operator, of the default tenant": ""} {
			for _, path := range []string{"/runs/" + id, "/runs/" + id + "/events"} {
				if status, text := s.by(t, stranger, http.MethodGet, path, ""); status != 404 {
					t.Errorf("%s: %s: %d %s", who, path, status, text)
				}
			}
			if _, text := s.by(t, stranger, http.MethodGet, "/runs", ""); strings.Contains(text, id) {
				t.Errorf("%s sees %s", who, text)
			}
		}
	}
	if status, text := s.by(t, token, http.MethodPost, "/runs/"+critic+"/cancel", ""); status != 400 ||
		!strings.Contains(text, boss) {
		t.Errorf("by itself: %d %s", status, text)
	}
	if status, text := s.by(t, other, http.MethodPost, "/runs/"+boss+"/cancel", ""); status != 404 {
		t.Errorf("by another: %d %s", status, text)
	}
	if status, text := s.by(t, token, http.MethodPost, "/runs/"+boss+"/cancel", ""); status != 202 {
		t.Errorf("control: %d %s", status, text)
	}
	for id, all := range of {
		if text := <-all; strings.Count(text, "event: run.start\n") != 1 || strings.Count(text, "event: run.failed\n") != 1 ||
			!strings.Contains(text, "event: end\n") || !strings.Contains(text, `"state":"done"`) ||
			!strings.Contains(text, `"outcome":"cancelled"`) || strings.Contains(text, "event: error") {
			t.Errorf("%s: %s", map[string]string{boss: "boss", critic: "critic"}[id], text)
		}
	}

	// Recorded, both, in the tenant alone.
	for _, id := range []string{boss, critic} {
		status, text := s.by(t, token, http.MethodGet, "/audit?run="+id, "")
		if n := strings.Count(text, `"run_id":"`); status != 200 || n < 3 || strings.Count(text, `"tenant":"acme"`) != n ||
			strings.Contains(text, `"parent_run":"`+boss+`"`) != (id == critic) {
			t.Errorf("%d %s", status, text)
		}
		for _, stranger := range []string{other, ""} {
			if _, text := s.by(t, stranger, http.MethodGet, "/audit?run="+id, ""); strings.Contains(text, id) {
				t.Errorf("told to others: %s", text)
			}
		}
	}
	for tenant, want := range map[string]bool{"acme": true, "default": false, "other": false} {
		r := start(t, h.env, "rlp", "audit", "list", "--tenant", tenant, "--json")
		if has := strings.Contains(r.stdout, critic); has != want {
			t.Errorf("the log of %s: %+v", tenant, r)
		}
		if r := start(t, h.env, "rlp", "audit", "verify", "--tenant", tenant); r.code != 0 {
			t.Errorf("%s: %+v", tenant, r)
		}
	}
}

// launchedBy is the run that another one launched, once it is seen.
func (s *testService) launchedBy(t *testing.T, token, parent string) (id string) {
	t.Helper()
	soon(t, "the delegate is seen", func() bool {
		_, text := s.by(t, token, http.MethodGet, "/runs", "")
		var list struct {
			Runs []struct {
				RunID     string `json:"run_id"`
				ParentRun string `json:"parent_run"`
			} `json:"runs"`
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Runs {
			if r.ParentRun == parent {
				id = r.RunID
			}
		}
		return id != ""
	})
	return id
}
