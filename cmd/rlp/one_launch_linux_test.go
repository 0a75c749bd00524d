package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/launcher"
)

// str is a string, and section a section, of a module.
func str(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

func section(id byte, body string) string { return string([]byte{id}) + str(body) }

// reportingModule is a module that launches an agent and returns its report.
func reportingModule(agent string) string {
	request := `{"agent":"` + agent + `","input":` + oneInput + `}`
	const at, room = "\x41\x80\x08", "\x41\xe0\xd4\x03" // i32.const 1024 and 60000
	code := "\x01\x01\x7e\x41\x08\x41" + string([]byte{byte(len(request))}) + at + room + "\x10\x00\x21\x00" +
		at + "\x20\x00\xa7\x41\x00\x41\x00\x10\x01\x1a\x0b"
	return "\x00asm\x01\x00\x00\x00" +
		section(1, "\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7e\x60\x00\x00") +
		section(2, "\x02"+str("runloop_v1")+str("agent_launch")+"\x00\x00"+str("runloop_v1")+str("result")+"\x00\x00") +
		section(3, "\x01\x01") + section(5, "\x01\x00\x01") + section(7, "\x01"+str("_start")+"\x00\x02") +
		section(10, "\x01"+str(code)) + section(11, "\x01\x00\x41\x08\x0b"+str(request))
}

// oneInput is what each agent of these tests is given to read.
const oneInput = `{"a":1}`

// echoingModule is a module that prints what it reads, puts a value into notes, and
// exits with a status.
func echoingModule(status byte) string {
	const system, four = "wasi_snapshot_preview1", "\x60\x04\x7f\x7f\x7f\x7f\x01\x7f"
	code := "\x00\x41\x00\x41\x00\x41\x01\x41\x08\x10\x00\x1a" + // read
		"\x41\x04\x41\x08\x28\x02\x00\x36\x02\x00" + // as much as was read
		"\x41\x01\x41\x00\x41\x01\x41\x0c\x10\x01\x1a" + // print
		"\x41\x20\x41\x05\x41\x25\x41\x01\x41\x26\x41\x01\x41\x80\x08\x41\x80\x04\x10\x03\x1a" + // put
		"\x41" + string([]byte{status}) + "\x10\x02\x0b"
	return "\x00asm\x01\x00\x00\x00" +
		section(1, "\x04"+four+"\x60\x00\x00\x60\x01\x7f\x00\x60\x08\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x01\x7e") +
		section(2, "\x04"+str(system)+str("fd_read")+"\x00\x00"+str(system)+str("fd_write")+"\x00\x00"+
			str(system)+str("proc_exit")+"\x00\x02"+str("runloop_v1")+str("kb_put")+"\x00\x03") +
		section(3, "\x01\x01") + section(5, "\x01\x00\x01") +
		section(7, "\x02"+str("_start")+"\x00\x04"+str("memory")+"\x02\x00") + section(10, "\x01"+str(code)) +
		section(11, "\x02\x00\x41\x00\x0b"+str("\x00\x04\x00\x00\x00\x02\x00\x00")+"\x00\x41\x20\x0b"+str("noteskv"))
}

// limited are the ways on which a run has limits of its own: of the run which
// launches it, of the grant that requests start from.
func limited(from string) bool {
	return !slices.Contains([]string{"terminal", "daemon", "program"}, from)
}

// comparable is a report without ids and times, and without such limits.
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
	if limited(from) {
		delete(report, "limits")
	}
	return report
}

// reports are those of one agent, launched in every way that there is.
func (h *helped) reports(t *testing.T, s *testService, cs *mcp.ClientSession, child string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	path := filepath.Join(h.home, "agents", child)
	own := start(t, h.env, "rlp", "launch", path, "--json", "--no-daemon", "--input", oneInput)
	all["terminal"] = comparable(t, "terminal", []byte(own.stdout))

	before, err := h.state()
	if err != nil {
		t.Fatal(err)
	}
	helped := start(t, h.env, "rlp", "launch", path, "--json", "--input", oneInput)
	all["daemon"] = comparable(t, "daemon", []byte(helped.stdout))
	if after, err := h.state(); err != nil || after.Done != before.Done+1 {
		t.Errorf("control: the daemon has not done it: %+v, %v: %s", after, err, helped.stderr)
	}
	far := start(t, h.env, "rlp", "launch", "--remote", child, "--json", "--input", oneInput)
	all["remote"] = comparable(t, "remote", []byte(far.stdout))
	if own.code != helped.code || own.code != far.code {
		t.Errorf("exit %d by the daemon, %d by the service, %d without", helped.code, far.code, own.code)
	}

	_, text := s.by(t, "", http.MethodPost, "/run", `{"agent":"`+child+`","input":`+oneInput+`}`)
	all["service"] = comparable(t, "service", []byte(text))

	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: child, Arguments: json.RawMessage(oneInput)})
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

	boss := start(t, h.env, "rlp", "launch", filepath.Join(h.home, "agents", "boss_"+child), "--json", "--no-daemon")
	var above struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(boss.stdout), &above); err != nil {
		t.Fatalf("%v: %s", err, boss.stdout)
	}
	all["agent_launch"] = comparable(t, "agent_launch", above.Result)
	all["program"] = comparable(t, "program", h.embedded(t, path))
	return all
}

// embedded is the report that a Go program gets.
func (h *helped) embedded(t *testing.T, bundle string) []byte {
	t.Helper()
	helper, err := exec.LookPath("rlp")
	if err != nil {
		t.Fatal(err)
	}
	l, err := launcher.Open(launcher.Options{Home: h.home, Env: h.env, Helper: helper})
	if err != nil {
		t.Fatal(err)
	}
	report, err := l.Launch(t.Context(), launcher.Request{Bundle: bundle, Input: []byte(oneInput)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return text
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
	ends := map[string]string{"reads": "ok", "exits": "exit", "traps": "trap"}
	for child, module := range map[string]string{"reads": echoingModule(0), "exits": echoingModule(7), "traps": traps} {
		(&house{t: t}).write(filepath.Join(h.home, "caps", "overrides", child+".toml"), "[capabilities]\nkb_write = [\"drafts\"]\n")
		h.install(t, child, module, "kb_read = [\"notes\"]\nkb_write = [\"notes\", \"drafts\"]\n")
		h.install(t, "boss_"+child, reportingModule(child),
			"agents = [\""+child+"\"]\nkb_read = [\"notes\"]\nkb_write = [\"notes\", \"drafts\"]\n")
	}
	s := h.serving(t)
	way := &mcp.StreamableClientTransport{Endpoint: s.said.Addresses[1] + "/mcp", MaxRetries: -1}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), way, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	good := map[string]map[string]any{}
	for child, end := range ends {
		reports := h.reports(t, s, cs, child)
		good[child] = reports["terminal"]
		h.sameAll(t, child, reports)
		if good[child]["outcome"] != end || (end != "trap") != (good[child]["stdout"] == oneInput) {
			t.Errorf("control: %s: %v", child, good[child])
		}
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
	for child := range ends {
		bad := h.reports(t, s, cs, child)
		h.sameAll(t, child+" unrecorded", bad)
		want := maps.Clone(good[child])
		want["outcome"], want["exit_code"], want["message"] = "audit_failed", float64(74), bad["terminal"]["message"]
		same(t, child+" unrecorded", bad["terminal"], want)
	}
}

// install installs an agent.
func (h *helped) install(t *testing.T, name, module, policy string) {
	t.Helper()
	dir := (&house{t: t, out: t.TempDir()}).agentOf(name, module, policy)
	if r := start(t, h.env, "rlp", "agent", "install", dir); r.code != 0 {
		t.Fatalf("%+v", r)
	}
}

// sameAll holds reports against that of the terminal. An agent is told of files in the
// home by their names there, and of no cause of the host's, as whoever does not operate.
func (h *helped) sameAll(t *testing.T, what string, reports map[string]map[string]any) {
	t.Helper()
	for from, report := range reports {
		want := maps.Clone(reports["terminal"])
		if from == "agent_launch" {
			text, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			want = nil
			if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(h.home+"/"), nil), &want); err != nil {
				t.Fatal(err)
			}
			if want["outcome"] == "audit_failed" {
				want["message"] = "who operates the host is told why"
			}
		}
		if limited(from) {
			delete(want, "limits")
		}
		same(t, what+" by "+from, report, want)
	}
}

func same(t *testing.T, from string, got, want map[string]any) {
	t.Helper()
	a, _ := json.MarshalIndent(got, "", " ")
	b, _ := json.MarshalIndent(want, "", " ")
	if !bytes.Equal(a, b) {
		t.Errorf("%s: %s\nwant %s", from, a, b)
	}
}
