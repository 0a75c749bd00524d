package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// canaries are a value of the vault and what a caller and an agent say to each
// other: nobody who watches is told of either.
var canaries = struct{ id, secret, payload string }{
	"runloop/canary/key", "sk/live+4eC39HqLyjWDarjtT1zdp7dc",
	"Payl0ad-Canary-zxcvbnm-7351",
}

// A recipient keeps what a server was sent, by path.
type recipient struct {
	*httptest.Server
	mu   sync.Mutex
	sent map[string]string
}

func telling(t *testing.T) *recipient {
	d := &recipient{sent: map[string]string{}}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.sent[r.URL.Path] += r.Header.Get("Authorization") + string(body)
		if authorization := r.Header.Get("Authorization"); authorization != "" {
			fmt.Fprint(w, authorization)
		}
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *recipient) at(path string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sent[path]
}

// withCanaries makes it a home in which the probe may send the secret to a server.
func (h *helped) withCanaries(t *testing.T, server, collector *recipient) {
	t.Helper()
	address := server.Listener.Addr().String()
	h.bundle(t, h.agent, "schema = \"0.2\"\n[capabilities]\nfs = [\""+h.work+"\"]\nnet = { hosts = [\""+address+
		"\"], allow_http = true }\nsecrets = [{ id = \""+canaries.id+"\", hosts = [\""+address+"\"] }]\n")
	for _, args := range [][]string{{"agent", "install", h.agent}, {"secrets", "init"}, {"secrets", "put", canaries.id}} {
		c := exec.Command("rlp", args...)
		c.Env, c.Stdin = h.env, strings.NewReader(canaries.secret)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	text := "[security]\nrun_grant = \"operator_full\"\n[serve]\ngrace = \"300ms\"\notlp = \"" + collector.URL + "\"\n"
	if err := os.WriteFile(filepath.Join(h.home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// follow follows the life of all runs until the service ends.
func (s *testService) follow(t *testing.T) <-chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.said.Addresses[1]+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", answer, err)
	}
	all := make(chan string, 1)
	go func() {
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body) // it is cut when the service ends
		all <- string(text)
	}()
	return all
}

// Neither a secret of the vault nor what goes into a run and comes out of it is
// in what the service logs, counts, records, lists or tells a collector, however
// it is written; each has been where it belongs.
//
//rlp:holds A51 K57
func TestNobodyWhoWatchesSeesPayloadsOrSecrets(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.at(t)
	server, collector := telling(t), telling(t)
	h.withCanaries(t, server, collector)
	s := h.serving(t)
	life := s.follow(t)

	input := map[string]any{"says": canaries.payload}
	status, r := s.run(t, 1, map[string]any{"agent": "probe", "input": input, "args": []string{
		"sendkey", canaries.id, server.URL + "/key", "stdin", "errtext", canaries.payload, "result", `{"says":"` +
			canaries.payload + `"}`,
	}})
	if status != http.StatusOK || r["outcome"] != "ok" {
		t.Fatalf("%d %v", status, r)
	}
	for where, c := range map[string][2]string{
		"what the server was sent": {server.at("/key"), "Bearer " + canaries.secret},
		"stdout":                   {fmt.Sprint(r["stdout"]), `stdin : {"says":"` + canaries.payload},
		"stderr":                   {fmt.Sprint(r["stderr"]), canaries.payload},
		"the result":               {fmt.Sprint(r["result"]), canaries.payload},
		"what the agent was told":  {fmt.Sprint(r["stdout"]), "[secret " + canaries.id + "]"},
	} {
		if !strings.Contains(c[0], c[1]) {
			t.Errorf("control: %s is %q, without %q", where, c[0], c[1])
		}
	}
	if holds(fmt.Sprint(r), canaries.secret) != "" {
		t.Errorf("the report has the secret: %v", r)
	}
	id := fmt.Sprint(r["run_id"])
	for want, body := range map[int]map[string]any{ // what does not come to an end is told no more of
		http.StatusOK: {"agent": "probe", "input": input, "args": []string{canaries.payload}},
		http.StatusForbidden: {
			"agent": "probe", "input": input, "forbidden_adapters": []string{"fs"},
			"args": []string{canaries.payload},
		},
		http.StatusBadRequest: {"agent": "probe", "input": input, "seed": canaries.payload},
	} {
		if status, r := s.run(t, 1, body); status != want || want == http.StatusOK &&
			!strings.Contains(fmt.Sprint(r["stderr"]), canaries.payload) {
			t.Errorf("%d, want %d: %v", status, want, r)
		}
	}

	seen := map[string]string{}
	for _, path := range []string{"/metrics", "/audit", "/runs", "/runs/" + id + "/events"} {
		status, text := s.ask(t, 1, http.MethodGet, path, nil)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		seen[path] = text
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.ended(); code != 0 {
		t.Errorf("it ended with %d: %s", code, s.stderr)
	}
	seen["/events"], seen["stderr"] = <-life, s.stderr.String()
	seen["/v1/traces"], seen["/v1/metrics"] = collector.at("/v1/traces"), collector.at("/v1/metrics")
	logs, err := filepath.Glob(filepath.Join(h.home, "log", "*.jsonl"))
	if err != nil || len(logs) < 2 {
		t.Fatalf("%v %v", logs, err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		seen[filepath.Base(path)] = string(text)
	}
	for where, text := range seen {
		sign := id // something of the run, so that what is looked through is of it
		switch where {
		case "/metrics":
			sign = `rlp_runs_total{agent="probe"`
		case "/v1/traces":
			sign = "run probe"
		case "/v1/metrics":
			sign = "rlp.runs"
		case "stderr", "serve.jsonl":
			sign = ""
		}
		if !strings.Contains(text, sign) {
			t.Errorf("control: %s has nothing of the run: %.2000q", where, text)
		}
		for _, canary := range []string{canaries.secret, canaries.payload} {
			if how := holds(text, canary); how != "" {
				t.Errorf("%s has %s as %s: %q", where, canary, how, text)
			}
		}
	}
}

// holds is how a text holds a value, or "".
func holds(text, value string) string {
	lower := bytes.ToLower([]byte(text))
	for how, written := range writings(value) {
		if bytes.Contains(lower, []byte(strings.ToLower(written))) {
			return how
		}
	}
	return ""
}
