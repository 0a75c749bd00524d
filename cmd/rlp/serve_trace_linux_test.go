package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A traced run is what came of one that was asked for with a header.
type tracedRun struct {
	RunID   string `json:"run_id"`
	TraceID string `json:"trace_id"`
}

// traced asks for a run with a traceparent, each time it is given.
func (s *testService) traced(t *testing.T, body string, parents ...string) tracedRun {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.said.Addresses[1]+"/run", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Traceparent"] = parents
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	var run tracedRun
	if err != nil || answer.StatusCode/100 != 2 || json.Unmarshal(text, &run) != nil {
		t.Fatalf("%q: %d %s", parents, answer.StatusCode, text)
	}
	return run
}

// raw is a number of a trace as a collector is told it.
func raw(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The trace of whoever asks is the run's, in all that is told of it; what is no
// trace begins a new one, and is no error.
//
//rlp:holds A52
func TestTheTraceOfWhoAsks(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.delegating(t)
	collector := telling(t)
	h.env = append(h.env, "RUNLOOP__SERVE__OTLP="+collector.URL)
	s := h.serving(t)
	const trace, span, second = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "5bf92f3577b34da6a3ce929d0e0e4737"
	const delegates = `{"agent":"boss","args":["delegate","critic","[\"args\"]"]}`
	run := s.traced(t, delegates, "00-"+trace+"-"+span+"-01")
	later := s.traced(t, `{"agent":"critic","args":["args"],"wait":false}`, "00-"+second+"-"+span+"-00")
	soon(t, "it ends", func() bool {
		_, text := s.ask(t, 0, http.MethodGet, "/runs/"+later.RunID, nil)
		return strings.Contains(text, `"outcome":"ok"`)
	})
	if run.TraceID != trace || later.TraceID != second {
		t.Errorf("the traces are %s and %s", run.TraceID, later.TraceID)
	}
	is := regexp.MustCompile("^[0-9a-f]{32}$")
	fresh := map[string]bool{trace: true, second: true}
	for _, parents := range [][]string{
		nil,
		{""},
		{"x"},
		{"00-" + trace + "-" + span},
		{"00-" + strings.ToUpper(trace) + "-" + span + "-01"},
		{"00-" + strings.Repeat("0", 32) + "-" + span + "-01"},
		{"ff-" + trace + "-" + span + "-01"},
		{"00-" + trace + "-" + span + "-01-more"},
		{"00-" + trace + "-" + span + "-01", "00-" + second + "-" + span + "-01"},
		{strings.Repeat("0", 8000)},
		{"00-" + trace + "-\"><script>-01"},
	} {
		run := s.traced(t, `{"agent":"critic","args":["args"]}`, parents...)
		if !is.MatchString(run.TraceID) || fresh[run.TraceID] {
			t.Errorf("%.100q: %q", parents, run.TraceID)
		}
		fresh[run.TraceID] = true
	}

	child := s.launchedBy(t, "", run.RunID)
	for _, id := range []string{run.RunID, child} { // each is of one trace, from its first record to its last
		_, text := s.ask(t, 1, http.MethodGet, "/audit?run="+id, nil)
		if n := strings.Count(text, `"run_id":"`+id+`"`); id == "" || n < 2 || strings.Count(text, `"trace_id":"`+trace+
			`"`) != n {
			t.Errorf("%q: %s", id, text)
		}
		_, text = s.ask(t, 1, http.MethodGet, "/runs/"+id, nil)
		if !strings.Contains(text, `"trace_id":"`+trace+`"`) {
			t.Errorf("%q: %s", id, text)
		}
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.ended(); code != 0 {
		t.Errorf("it ended with %d: %s", code, s.stderr)
	}
	log, err := os.ReadFile(filepath.Join(h.home, "log", "serve.jsonl"))
	if want := fmt.Sprintf(`"trace_id":%q`, trace); err != nil || !strings.Contains(string(log), want) {
		t.Errorf("the log has no %s: %v %s", want, err, log)
	}
	// A span of the protocol has its trace first, and above it the one that asked.
	spans := []byte(collector.at("/v1/traces"))
	if n := bytes.Count(spans, append([]byte("\x0a\x10"), raw(t, trace)...)); n != 2 {
		t.Errorf("%d spans are of the trace, want those of the run and of its delegate", n)
	}
	if n := bytes.Count(spans, append([]byte("\x22\x08"), raw(t, span)...)); n != 2 {
		t.Errorf("%d spans are below the one that asked, want the run's of each trace", n)
	}
	if !bytes.Contains(spans, append([]byte("\x0a\x10"), raw(t, second)...)) {
		t.Error("the run that nobody waited for has no span")
	}
}

// delegating is a home with two agents that do what they are told: "boss" may
// launch "critic". at are further flags of their installation.
func (m *made) delegating(t *testing.T, at ...string) *helped {
	t.Helper()
	h := m.servable(t)
	for name, policy := range map[string]string{
		"boss":   "agents = [\"critic\"]\nkb_read = [\"drafts\"]\nfs_rw = [\"" + h.work + "\"]\n",
		"critic": "kb_read = [\"drafts\", \"notes\"]\nkb_write = [\"drafts\"]\nfs_rw = [\"" + h.work + "\"]\n",
	} {
		dir := filepath.Join(h.work, "of-"+name)
		m.bundle(t, dir, "[capabilities]\n"+policy)
		path := filepath.Join(dir, "manifest.toml")
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, bytes.Replace(text, []byte(`name = "probe"`), fmt.Appendf(nil, "name = %q", name), 1),
				0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r := start(t, h.env, "rlp", append([]string{"agent", "install", dir}, at...)...); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	return h
}
