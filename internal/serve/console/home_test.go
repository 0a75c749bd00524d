package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
)

// The home page says what happened, what was denied most with the page that explains
// it, how agents do, and what somebody has to look at.
func TestHome(t *testing.T) {
	host, h := pages(t)
	host.changed = []ask.ChangedServer{{Server: "github", Tools: []string{"create_issue", "list<b>"}}}
	_, body := get(t, h, "/", nil)
	want(t, body, "<strong>60</strong> in the last 24 hours", "8 refused or failed", "<strong>156</strong>",
		"What is denied most", "override:notes_digest.toml", "/why/", "Latest runs", runID(59), "80 %",
		"An MCP server changed its tools", "github: create_issue, list&lt;b&gt;", "rlp mcp accept github",
		"An agent cannot be launched", "its signature is not valid", "Grants that nothing used",
		"/ui/agents/notes_digest/policy?from=used#editor", `action="/ui/launch"`, "<option>notes_digest</option>",
		"!<option>scraper</option>", "!failed its verification", "21 min ago", "!wait for a worker", "!looks at no more")
	_, body = get(t, h, "/?span=1h", nil)
	want(t, body, "<strong>5</strong> in the last hour", "/ui/runs?before=")
	if resp, _ := get(t, h, "/?span=2h", nil); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a span that is none: %d", resp.StatusCode)
	}
	host.answers.Verify = ask.Verification{Fault: &ask.Fault{Kind: kb.FaultChanged, Seq: 17}}
	get(t, h, "/ui/log/verify", url.Values{})
	_, body = get(t, h, "/", nil)
	want(t, body, "The log failed its verification")
}

// A bar leads to the runs of its part of the time, and to no later ones.
func TestABarLeadsToItsRuns(t *testing.T) {
	host, h := pages(t)
	host.log.runs = nil
	for _, age := range []time.Duration{90, 30, 5} {
		at := now.Add(-age * time.Minute)
		ms := at.UnixMilli()
		id := fmt.Sprintf("%08x-%04x-7a55-8f00-000000000000", ms>>16, ms&0xffff)
		host.log.add(id, fmt.Sprintf("aged_%d", age), at, nil, audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
	}
	_, body := get(t, h, "/ui/runs?before="+idBefore(now.Add(-time.Hour)), nil)
	want(t, body, "aged_90", "!aged_30", "!aged_5")
	_, body = get(t, h, "/ui/runs?before="+idBefore(now.Add(-20*time.Minute)), nil)
	want(t, body, "aged_90", "aged_30", "!aged_5")
}

// A first visit says what to do, and what of it is done.
func TestAFirstVisit(t *testing.T) {
	host := newFakeHost(t)
	h := as(New(Options{Runs: noRuns{}, Host: host, Now: clockOfTests}), operator())
	_, body := get(t, h, "/", nil)
	want(t, body, "Welcome", "Install an agent", "</span> done</span>", "Launch it", "!Latest runs", "!needs somebody")
	host.agents = []service.Agent{}
	_, body = get(t, h, "/", nil)
	want(t, body, "rlp agent new greeter", "!</span> done</span>", "rlp agent install .")
	host.agents = nil
	reader := &service.Caller{Name: "token:x", Tenant: "default", May: service.Read}
	_, told := get(t, as(New(Options{Runs: noRuns{}, Host: host, Now: clockOfTests}), reader), "/", nil)
	want(t, told, "Your token may not launch agents", "!/ui/launch", "!Below on this page")
	aDay(host.log) // control: it is no first visit
	_, body = get(t, h, "/", nil)
	want(t, body, "!Welcome", "Latest runs")
}

// Who may not launch is shown no form, and launches nothing by any request; nothing is
// launched by GET.
func TestWhoMayLaunch(t *testing.T) {
	for may, launches := range map[service.Rights]bool{
		service.Read: false, service.Read | service.Operate: false, service.Launch: false,
		service.Read | service.Launch: true,
	} {
		s := newStage(t)
		launched := 0
		s.launch = func(_ context.Context, r *service.Request, b service.Begin) (*launcher.Report, error) {
			launched++
			return &launcher.Report{RunID: b.RunID, Agent: r.Agent, Outcome: launcher.OK}, nil
		}
		c := &service.Caller{Name: "token:x", Tenant: "default", May: may}
		h := as(New(Options{Runs: s.service, Host: s, Now: clockOfTests}), c)
		path := "/ui/agents/notes_digest/launch"
		resp, body := get(t, h, path, nil)
		form := strings.Contains(body, `<form method="post" action="`+path)
		if form != launches || (resp.StatusCode == http.StatusOK) != launches {
			t.Errorf("%s: the form is %d", may, resp.StatusCode)
		}
		_, body = get(t, h, "/", nil)
		if strings.Contains(body, "/ui/launch") != launches {
			t.Errorf("%s: the home page offers a launch: %t", may, !launches)
		}
		get(t, h, path+"?key=a&json=1&do=launch", nil)
		if launched != 0 {
			t.Fatalf("%s: a GET launched it", may)
		}
		resp, _ = get(t, h, path, url.Values{"key": {"a"}, "json": {"1"}})
		location := resp.Header.Get("Location")
		if (resp.StatusCode == http.StatusSeeOther) != launches {
			t.Fatalf("%s: launched with %d", may, resp.StatusCode)
		}
		if launches {
			run, err := s.service.Run(t.Context(), c, strings.TrimPrefix(location, "/ui/runs/"))
			if err != nil {
				t.Fatal(err)
			}
			<-run.Done()
			get(t, h, path, url.Values{"key": {"a"}, "json": {"1"}}) // the same form, sent twice
		}
		if want := map[bool]int{true: 1}[launches]; launched != want {
			t.Errorf("%s: %d launches", may, launched)
		}
	}
}

const aSchema = `{"type":"object","required":["to","tone"],"properties":{
"to":{"type":"string","description":"who it is for"},"tone":{"enum":["warm","cold"]},
"tries":{"type":"integer"},"urgent":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}},
"extra":{"type":"object"}}}`

// taking is a stage on which mail_writer takes a schema, and what it was given.
func taking(t *testing.T, schema string) (*stage, chan *service.Request) {
	s := newStage(t)
	s.agents = fewAgents()
	s.agents[0].InputSchema = []byte(schema)
	s.agents[0].Params = []service.Param{{Name: "out", Kind: "dir", Description: "where it writes"}}
	given := make(chan *service.Request, 1)
	s.launch = func(_ context.Context, r *service.Request, b service.Begin) (*launcher.Report, error) {
		given <- r
		return &launcher.Report{RunID: b.RunID, Agent: r.Agent, Outcome: launcher.OK}, nil
	}
	return s, given
}

// The form is made of the schema of the agent's input, and what is posted is that input.
func TestAFormOfTheSchema(t *testing.T) {
	s, given := taking(t, aSchema)
	path := "/ui/agents/mail_writer/launch"
	_, body := get(t, s.handler, path, nil)
	want(t, body, `name="in.0"`, "who it is for", `<select name="in.1"`, ">warm</option>", `type="number" name="in.2"`,
		">yes</option>", "one on a line", `name="param.out"`, "where it writes", "!name=\"json\"")
	form := url.Values{
		"key": {"k"}, "in.0": {"Ada"}, "in.1": {"1"}, "in.2": {"3"}, "in.3": {"0"},
		"in.4": {"a\r\nb c\r\n"}, "in.5": {`{"x": 1}`}, "param.out": {"/srv/out"},
		"deny": {"kb:write:*\r\nnetwork:*\r\n"},
	}
	resp, _ := get(t, s.handler, path, form)
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("posted: %d", resp.StatusCode)
	}
	q := <-given
	const input = `{"extra":{"x":1},"tags":["a","b c"],"to":"Ada","tone":"cold","tries":3,"urgent":true}`
	if string(q.Input) != input || q.Params["out"] != "/srv/out" || len(q.Deny) != 2 || q.Deny[1] != "network:*" ||
		q.Door != service.HTTP {
		t.Errorf("it was given %s, %+v", q.Input, q)
	}
	_, body = get(t, s.handler, path+"?again="+strings.TrimPrefix(resp.Header.Get("Location"), "/ui/runs/"), nil)
	want(t, body, `value="Ada"`, `<option value="1" selected>`, `value="3"`, "a\nb c</textarea>",
		`value="/srv/out"`, "It begins with the input of", "kb:write:*\nnetwork:*")
	form.Set("in.2", "three")
	form.Set("key", "l")
	resp, body = get(t, s.handler, path, form)
	want(t, body, "tries: write a number", `value="Ada"`, "It was not launched")
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a number that is none: %d", resp.StatusCode)
	}
	_, body = get(t, s.handler, path+"?again="+runID(3), nil)
	want(t, body, "is not kept")
}

// A schema that a form has no fields for is filled in as JSON, a text as a text, and
// none is too large for a page.
func TestFormsOfOtherSchemas(t *testing.T) {
	many := map[string]any{}
	for i := range 30 {
		many[fmt.Sprint("p", i)] = map[string]any{"enum": []string{strings.Repeat("<", 3000), "b"}}
	}
	large, err := json.Marshal(map[string]any{"type": "object", "properties": many})
	if err != nil {
		t.Fatal(err)
	}
	for schema, field := range map[string]string{
		"": `name="json"`, `{"type":"string"}`: `name="text"`, `{"oneOf":[]}`: `name="json"`, "{": `name="json"`,
		`{"type":["object","null"]}`: `name="json"`, string(large): `name="json"`,
	} {
		s, given := taking(t, schema)
		_, body := get(t, s.handler, "/ui/agents/mail_writer/launch", nil)
		want(t, body, field)
		if len(body) > mostPage {
			t.Errorf("%.40s: %d bytes", schema, len(body))
		}
		get(t, s.handler, "/ui/agents/mail_writer/launch", url.Values{"key": {"k"}, "json": {"[1]"}, "text": {"hi\r\nyou"}})
		input := string((<-given).Input)
		if expected := map[bool]string{true: `"hi\nyou"`, false: "[1]"}[strings.Contains(field, "text")]; input != expected {
			t.Errorf("%.40s: it was given %s", schema, input)
		}
	}
	s, _ := taking(t, "")
	resp, _ := get(t, s.handler, "/ui/agents/mail_writer/launch", url.Values{"json": {strings.Repeat(`"`, 60_000)}})
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a long input: %d", resp.StatusCode)
	}
}
