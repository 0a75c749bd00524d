package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/access"
	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

func TestMain(m *testing.M) {
	launcher.Main()
	os.Exit(m.Run())
}

// A place is a folder of the host that only who operates is told of.
const (
	homePlace  = "zq-home-place"
	valuePlace = "zq-value-place"
)

// A placed service is one whose home, and the values of its agents' placeholders, lie
// in folders with names that are nowhere else.
type placed struct {
	testing.TB
	url, home, value string
	tokens           map[string]string // "": by the connection, which is the operator's
}

func (p *placed) put(name, text string) {
	p.Helper()
	path := filepath.Join(p.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		p.Fatal(err)
	}
}

// install makes an agent with the placeholders {notes} and {out}, and an override
// that fills them in.
func (p *placed) install(name, capabilities, override string, opens ...string) {
	p.Helper()
	p.put("agents/"+name+"/manifest.toml", "[agent]\nname = \""+name+"\"\nversion = \"1.0.0\"\ndescription = \"for tests\"\n"+
		"kind = \"wasm32-wasip1\"\nentry_wasm = { path = \"a.wasm\" }\n[caps]\nfile = \"policy.caps\"\n[params]\n"+
		"notes = { kind = \"dir\", description = \"notes\" }\nout = { kind = \"dir\", description = \"out\" }\n")
	p.put("agents/"+name+"/policy.caps", "schema = \"0.2\"\n[capabilities]\n"+capabilities)
	p.put("agents/"+name+"/a.wasm", string(opening(opens...)))
	if override != "" {
		p.put("caps/overrides/"+name+".toml", override)
	}
}

// servePlaces serves a home with agents that meet errors of every kind.
func servePlaces(t *testing.T) *placed {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, homePlace)
	p := &placed{TB: t, value: filepath.Join(filepath.Dir(dir), valuePlace), tokens: map[string]string{"operator": ""}}
	notes, out := filepath.Join(p.value, "notes"), filepath.Join(p.value, "out")
	for _, d := range []string{dir, filepath.Join(notes, "sub"), out} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(notes, "a.md"), []byte("x"), 0o600),
		os.Symlink(notes, filepath.Join(p.value, "link"))); err != nil {
		t.Fatal(err)
	}
	r := hosttest.Runner(t, "")
	p.home = filepath.Join(dir, ".runloop")
	if err := os.Rename(r.HomeDir, p.home); err != nil {
		t.Fatal(err)
	}
	r.HomeDir, r.Env = p.home, []string{"HOME=" + dir, "RUNLOOP_HOME=" + p.home}
	p.agents(notes, out)
	h := home.At(p.home, home.DefaultTenant)
	cfg, err := config.Load(h.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	none := func(string) string { return "" }
	s, err := New(Options{Home: h, Config: cfg, Runner: r, Env: none, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(nil)
	s.wired.port = uint16(srv.Listener.Addr().(*net.TCPAddr).Port)
	store := access.OpenStore(tokensDir(h), time.Now)
	for name, may := range map[string]service.Rights{
		"run": service.Launch, "read": service.Read, "both": service.Launch | service.Read,
	} {
		if _, p.tokens[name], err = store.New(access.Token{Name: name, Tenant: "default", May: may}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.keys(t.Context()), s.assemble()); err != nil {
		t.Fatal(err)
	}
	srv.Config.Handler, srv.Config.ConnContext = s.wired.handler, s.connection
	srv.Start()
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		if err := s.drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	p.url = srv.URL
	return p
}

// agents installs them.
func (p *placed) agents(notes, out string) {
	const asks = "fs = [\"{notes}\"]\nfs_rw = [\"{out}\"]\nkb_write = [\"notes\"]\n"
	params := fmt.Sprintf("schema = \"0.2\"\n[params]\nnotes = %q\nout = %q\n", notes, out)
	p.put("config.toml", "[security]\nrun_grant = \"operator_full\"\n[mcp.servers.files]\ncommand = [\""+p.value+"/server\"]\n")
	opens := []string{notes + "/a.md", notes + "/none.md", p.home + "/config.toml", "/etc/passwd", out + "/x"}
	p.install("works", asks, params+"[capabilities]\nkb_write = []\nfs = [\""+notes+"\", \""+out+"\", \"/srv/other\"]\n",
		opens...)
	p.install("narrowed", asks, params+"[deny]\ncapabilities = [\"fs:*:"+notes+"/sub\"]\n", notes+"/sub/b")
	p.install("starved", asks, params+"[capabilities]\nfs = []\nfs_rw = []\n", opens...)
	p.install("unset", asks, "")
	p.install("missing", asks, fmt.Sprintf("schema = \"0.2\"\n[params]\nnotes = %q\nout = %q\n", notes, out+"/gone"))
	p.install("linked", asks, fmt.Sprintf("schema = \"0.2\"\n[params]\nnotes = %q\nout = %q\n", p.value+"/link", out), opens...)
	p.install("absent", asks+"exec = [\"/srv/tool\"]\n", params, opens...)
	p.install("broken", asks, params+"[capabilties]\n")
	p.install("policy", "fs = [7]\n", params)
	p.install("artifact", "fs_rw = [\""+p.home+"/artifacts/a\"]\n", "", p.home+"/artifacts/a/x", p.home+"/secrets/x")
	p.install("served", "mcp = [\"files\"]\n", "")
	p.put("artifacts/a/x", "x")
	p.put("caps/profiles/bad.toml", "[capabilties]\n")
	p.put("caps/profiles/small.toml", "[deny]\ncapabilities = [\"fs:*:*\"]\n")
}

// opening is a module that opens files, one after the other.
func opening(paths ...string) []byte {
	uleb := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	section := func(id byte, body []byte) []byte { return slices.Concat([]byte{id}, uleb(len(body)), body) }
	name := func(s string) []byte { return append(uleb(len(s)), s...) }
	var code, data bytes.Buffer
	number := func(n int) { // signed, of five bytes
		code.Write([]byte{
			0x41, byte(n)&0x7f | 0x80, byte(n>>7)&0x7f | 0x80, byte(n>>14)&0x7f | 0x80,
			byte(n>>21)&0x7f | 0x80, byte(n>>28) & 0x0f,
		})
	}
	const at = 64
	for _, path := range paths {
		begin := at + data.Len()
		data.WriteString(path[1:])
		for _, n := range []int{3, 0, begin, len(path) - 1, 0} {
			number(n)
		}
		code.Write([]byte{0x42, 2, 0x42, 0}) // rights: fd_read
		number(0)
		number(8)
		code.Write([]byte{0x10, 0, 0x1a})
	}
	body := slices.Concat([]byte{0}, code.Bytes(), []byte{0x0b})
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{2, 0x60, 9, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7e, 0x7e, 0x7f, 0x7f, 1, 0x7f, 0x60, 0, 0}),
		section(2, slices.Concat([]byte{1}, name("wasi_snapshot_preview1"), name("path_open"), []byte{0, 0})),
		section(3, []byte{1, 1}), section(5, []byte{1, 0, 1}),
		section(7, slices.Concat([]byte{2}, name("_start"), []byte{0, 1}, name("memory"), []byte{2, 0})),
		section(10, slices.Concat([]byte{1}, uleb(len(body)), body)),
		section(11, slices.Concat([]byte{1, 0, 0x41, at | 0x80, 0, 0x0b}, name(data.String()))))
}

// An answer is what somebody was told by a request.
type answer struct {
	status int
	text   string
}

func (p *placed) ask(who, method, path, body string) answer {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	a, _ := p.do(who, r)
	return a
}

func (p *placed) do(who string, r *http.Request) (answer, http.Header) {
	p.Helper()
	r.Header.Set("Content-Type", "application/json")
	if t := p.tokens[who]; t != "" {
		r.Header.Set("Authorization", "Bearer "+t)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	return answer{resp.StatusCode, string(text)}, resp.Header
}

// requests are all that callers ask to be run, and more of who operates.
func (p *placed) requests(who string) map[string]string {
	all := map[string]string{
		"a bad profile": `{"agent":"works","profiles":["bad"]}`,
		"no profile":    `{"agent":"works","profiles":["none"]}`,
		"a profile":     `{"agent":"works","profiles":["small"]}`,
		"a grant":       `{"agent":"works","allow":["fs:read:/etc"],"deny":["fs:read:/nowhere"]}`,
		"a sent bundle": `{"bundle":"` + base64.StdEncoding.EncodeToString(
			hosttest.Archived(p, "sent", "fs = [\"/\"]\n", opening("/etc/passwd", "/proc/self/status"))) + `"}`,
		"a later answer": `{"agent":"works","wait":false}`,
	}
	for _, agent := range []string{
		"works", "narrowed", "starved", "unset", "missing", "linked", "absent", "broken", "policy", "artifact", "served",
		"nobody",
	} {
		all[agent] = `{"agent":"` + agent + `"}`
	}
	if who == "operator" {
		all["params"] = fmt.Sprintf(`{"agent":"works","params":{"notes":%q,"out":%q}}`, p.value+"/notes/sub", p.value+"/out")
		all["bad params"] = fmt.Sprintf(`{"agent":"works","params":{"notes":%q}}`, p.value+"/none")
	}
	return all
}

var (
	idsOfRuns = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	numbers   = regexp.MustCompile(`[0-9]+`)
	// pages of agents whose files nothing can be read of
	unreadable = regexp.MustCompile(`^GET /ui/agents/(broken|missing|policy)/policy`)
	links      = regexp.MustCompile(`(?:href|action)="(/[^"#]*)`)
)

// crawl is every answer to GET that somebody gets, by its path.
func (p *placed) crawl(who string, runs []string) map[string]answer {
	p.Helper()
	told, next := map[string]answer{}, []string{
		"/", "/runs?limit=500", "/agents", "/capabilities", "/capabilities?door=mcp", "/audit?limit=1000", "/audit/head",
		"/metrics", "/healthz", "/readyz", "/openapi.json", "/ui/agents", "/ui/runs", "/ui/audit", "/ui/log", "/ui/lanes",
		"/ui/launch", "/ui/nothing", "/ui/agents/nobody", "/audit?decision=deny", "/ui/runs?state=bad",
	}
	kinds := map[string]int{} // pages of records are many, and alike
	for i, id := range runs {
		next = append(next, "/runs/"+id, "/runs/"+id+"/events", "/ui/runs/"+id)
		if i%8 == 0 {
			next = append(next, "/runs/"+id+"/events?after=1", "/audit?run="+id, "/ui/compare?a="+runs[0]+"&b="+id)
		}
	}
	for len(next) > 0 && len(told) < 2000 {
		path := next[0]
		next = next[1:]
		if _, known := told[path]; known || strings.HasPrefix(path, "/ui/assets/") {
			continue
		}
		a := p.ask(who, http.MethodGet, path, "")
		told[path] = a
		if a.status != http.StatusOK || !strings.Contains(a.text, "<html") {
			continue
		}
		for _, link := range links.FindAllStringSubmatch(a.text, -1) {
			link := html.UnescapeString(link[1])
			kind := numbers.ReplaceAllString(idsOfRuns.ReplaceAllString(link, "RUN"), "N")
			if kinds[kind]++; kinds[kind] <= 12 {
				next = append(next, link)
			}
		}
	}
	return told
}

// speak is every answer over MCP.
func (p *placed) speak(who string, runs []string) map[string]answer {
	p.Helper()
	const begin = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`
	session := ""
	say := func(method, params string) answer {
		r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.url+"/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		if err != nil {
			p.Fatal(err)
		}
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Session-Id", session)
		a, h := p.do(who, r)
		if id := h.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		if a.status != http.StatusOK {
			p.Fatalf("%s: %d %s", method, a.status, a.text)
		}
		return a
	}
	say("initialize", begin)
	told := map[string]answer{"mcp tools": say("tools/list", `{}`)}
	call := func(name string, arguments map[string]any) {
		params, err := json.Marshal(map[string]any{"name": name, "arguments": arguments})
		if err != nil {
			p.Fatal(err)
		}
		told[fmt.Sprintf("mcp %s %v", name, arguments)] = say("tools/call", string(params))
	}
	for _, agent := range []string{"works", "starved", "linked"} {
		call(agent, map[string]any{})
	}
	call("rlp_runs", map[string]any{"limit": 100})
	call("rlp_audit", map[string]any{"limit": 200})
	for _, agent := range []string{"works", "narrowed", "starved", "linked", "missing", "broken", "policy"} {
		for _, c := range []string{"fs:read:{notes}/sub", "fs:read:/etc/passwd", "kb:write:notes"} {
			call("rlp_explain", map[string]any{"agent": agent, "capability": c})
		}
	}
	for _, id := range runs {
		call("rlp_run", map[string]any{"run_id": id})
		for record := range 6 {
			call("rlp_explain", map[string]any{"run_id": id, "record": record + 1})
		}
	}
	return told
}

// Who may not operate is told by no answer where the home is, nor what the
// placeholders of an agent stand for: over HTTP, over MCP, in streams and on pages,
// of runs that they and that others asked for.
func TestNobodyElseIsToldPlaces(t *testing.T) {
	p := servePlaces(t)
	told := map[string]map[string]answer{}
	for _, who := range []string{"operator", "run", "both"} {
		told[who] = map[string]answer{}
		for name, body := range p.requests(who) {
			told[who]["POST /run "+name] = p.ask(who, http.MethodPost, "/run", body)
		}
	}
	runs := slices.Compact(slices.Sorted(slices.Values(idsOfRuns.FindAllString(p.ask("operator", http.MethodGet,
		"/runs?limit=500", "").text, -1))))
	if len(runs) < 20 {
		t.Fatalf("%d runs", len(runs))
	}
	for _, who := range []string{"operator", "run", "read", "both"} {
		if testing.Short() && who == "both" { // one more of them is not more concurrent
			continue
		}
		if told[who] == nil {
			told[who] = map[string]answer{}
		}
		for path, a := range p.crawl(who, runs) {
			told[who]["GET "+path] = a
		}
		for name, a := range p.speak(who, runs[:min(len(runs), 12)]) {
			told[who][name] = a
		}
	}
	for who, answers := range told {
		wrong := 0
		for path, a := range answers {
			for _, place := range []string{homePlace, valuePlace} {
				if at := strings.Index(a.text, place); at >= 0 && who != "operator" {
					wrong++
					t.Errorf("%s: %s is told (%d): ...%s...", who, path, a.status,
						a.text[max(0, at-200):min(len(a.text), at+100)])
				}
			}
			if a.status >= 500 && !strings.HasPrefix(path, "POST ") && !unreadable.MatchString(path) {
				t.Errorf("%s: %s: %d %s", who, path, a.status, a.text)
			}
		}
		t.Logf("%s: %d answers, %d with a place", who, len(answers), wrong)
	}
	p.control(told["operator"])
}

// control is that who operates is told the places by answers of each kind.
func (p *placed) control(told map[string]answer) {
	p.Helper()
	for _, place := range []string{homePlace, valuePlace} {
		for _, of := range []string{
			"POST /run works", "POST /run starved", "POST /run linked", "GET /runs/", "GET /ui/runs/", "GET /audit",
			"mcp rlp_audit", "mcp rlp_explain", "GET /ui/agents/", "GET /runs?", "GET /ui/audit",
		} {
			found := false
			for path, a := range told {
				found = found || strings.HasPrefix(path, of) && strings.Contains(a.text, place)
			}
			if !found {
				p.Errorf("control: %s tells the operator nothing of %s", of, place)
			}
		}
	}
}
