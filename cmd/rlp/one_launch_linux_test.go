package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// reportingModule is a module that launches an agent and returns its report.
func reportingModule(agent string) string {
	request := `{"agent":"` + agent + `"}`
	str := func(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }
	section := func(id byte, body string) string { return string([]byte{id}) + str(body) }
	const at, room = "\x41\x80\x08", "\x41\xe0\xd4\x03" // i32.const 1024 and 60000
	code := "\x01\x01\x7e\x41\x08\x41" + string([]byte{byte(len(request))}) + at + room + "\x10\x00\x21\x00" +
		at + "\x20\x00\xa7\x41\x00\x41\x00\x10\x01\x1a\x0b"
	return "\x00asm\x01\x00\x00\x00" +
		section(1, "\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7e\x60\x00\x00") +
		section(2, "\x02"+str("runloop_v1")+str("agent_launch")+"\x00\x00"+str("runloop_v1")+str("result")+"\x00\x00") +
		section(3, "\x01\x01") + section(5, "\x01\x00\x01") + section(7, "\x01"+str("_start")+"\x00\x02") +
		section(10, "\x01"+str(code)) + section(11, "\x01\x00\x41\x08\x0b"+str(request))
}

// comparable is a report without ids, times, and the limits that every run has of
// the one which launches it.
func comparable(t *testing.T, from string, text []byte) map[string]any {
	t.Helper()
	var report map[string]any
	if err := json.Unmarshal(text, &report); err != nil || report["outcome"] == nil {
		t.Fatalf("%s: no report: %v: %s", from, err, text)
	}
	for _, key := range []string{"run_id", "trace_id"} {
		if report[key] == "" {
			t.Errorf("%s: no %s: %s", from, key, text)
		}
		delete(report, key)
	}
	usage, _ := report["usage"].(map[string]any)
	for _, key := range []string{"wall_ms", "compile_ms", "compiled"} {
		delete(usage, key)
	}
	delete(report, "limits")
	return report
}

// reports are those of one agent, launched in every way that there is.
func (h *helped) reports(t *testing.T, s *testService, cs *mcp.ClientSession) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	child := filepath.Join(h.home, "agents", "child")
	own := start(t, h.env, "rlp", "launch", child, "--json", "--no-daemon")
	all["terminal"] = comparable(t, "terminal", []byte(own.stdout))

	before, err := h.state()
	if err != nil {
		t.Fatal(err)
	}
	helped := start(t, h.env, "rlp", "launch", child, "--json")
	all["daemon"] = comparable(t, "daemon", []byte(helped.stdout))
	if after, err := h.state(); err != nil || after.Done != before.Done+1 {
		t.Errorf("control: the daemon has not done it: %+v, %v: %s", after, err, helped.stderr)
	}
	if own.code != helped.code {
		t.Errorf("exit %d by the daemon, %d without", helped.code, own.code)
	}

	_, text := s.by(t, "", http.MethodPost, "/run", `{"agent":"child"}`)
	all["service"] = comparable(t, "service", []byte(text))

	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "child"})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := r.Meta["runloop.dev/run_id"].(string)
	_, text = s.by(t, "", http.MethodGet, "/runs/"+id, "")
	var run struct{ Report json.RawMessage }
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	all["mcp"] = comparable(t, "mcp", run.Report)

	boss := start(t, h.env, "rlp", "launch", filepath.Join(h.home, "agents", "boss"), "--json", "--no-daemon")
	var above struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(boss.stdout), &above); err != nil {
		t.Fatalf("%v: %s", err, boss.stdout)
	}
	all["agent_launch"] = comparable(t, "agent_launch", above.Result)
	return all
}

// inOwnHome is a daemon in a home of its own, without agents.
func inOwnHome(t *testing.T) *helped {
	t.Helper()
	work := t.TempDir()
	h := &helped{home: filepath.Join(work, ".runloop"), work: work}
	h.env = append(os.Environ(), "HOME="+work, "RUNLOOP_HOME="+h.home)
	(&house{t: t}).write(filepath.Join(h.home, "config.toml"), "[security]\nrun_grant = \"operator_full\"\n")
	var err error
	if h.testDaemon, err = startDaemon(h.env, h.home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// The same request comes to the same report whoever asks for it, also where the
// log cannot be closed: then it says audit_failed, and nothing else of it changes.
//
//rlp:holds D2
func TestOneReportWhoeverAsks(t *testing.T) {
	h := inOwnHome(t)
	for name, bundle := range map[string][2]string{
		"child": {prints, "kb_read = [\"notes\"]\n"},
		"boss":  {reportingModule("child"), "agents = [\"child\"]\nkb_read = [\"notes\"]\n"},
	} {
		dir := (&house{t: t, out: t.TempDir()}).agentOf(name, bundle[0], bundle[1])
		if r := start(t, h.env, "rlp", "agent", "install", dir); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	s := h.serving(t)
	way := &mcp.StreamableClientTransport{Endpoint: s.said.Addresses[1] + "/mcp", MaxRetries: -1}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), way, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	good := h.reports(t, s, cs)
	for from, report := range good {
		same(t, from, report, good["terminal"])
	}
	if good["terminal"]["outcome"] != "ok" || good["terminal"]["stdout"] != "hi\n" {
		t.Errorf("control: %v", good["terminal"])
	}

	for day := range 2 { // it may become midnight
		path := filepath.Join(h.home, "log", time.Now().UTC().AddDate(0, 0, day).Format(time.DateOnly)+".jsonl")
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil { // nobody appends to a folder
			t.Fatal(err)
		}
	}
	bad := h.reports(t, s, cs)
	for from, report := range bad {
		same(t, from, report, bad["terminal"])
	}
	want := maps.Clone(good["terminal"])
	want["outcome"], want["exit_code"], want["message"] = "audit_failed", float64(74), bad["terminal"]["message"]
	same(t, "unrecorded", bad["terminal"], want)
}

func same(t *testing.T, from string, got, want map[string]any) {
	t.Helper()
	a, _ := json.MarshalIndent(got, "", " ")
	b, _ := json.MarshalIndent(want, "", " ")
	if !bytes.Equal(a, b) {
		t.Errorf("%s: %s\nwant %s", from, a, b)
	}
}
