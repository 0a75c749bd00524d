package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// inOrder fails unless the texts are in a page, each behind the one before.
func inOrder(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		_, rest, found := strings.Cut(body, text)
		if !found {
			t.Errorf("the page has no %q behind the text before", text)
		}
		body = rest
	}
}

// A page of a denial says first whether there is anything to do, then who decided, and
// the edit last.
//
//rlp:holds D15
func TestWhyBeginsWithWhatThereIsToDo(t *testing.T) {
	host, h := pages(t)
	host.log.retell(runID(0), []audit.DecisionRecord{
		denied("fs.read", "path_open", "/home/mara/private/salary.md", "path_not_permitted", ""),
		denied("fs.write", "path_open", "/home/mara/out/digest.md", "path_not_permitted", "override:notes_digest.toml"),
		denied("secrets.get", "secret_get", "runloop/x", "secret_unknown", ""),
		{
			Cap: "kb.write", Op: "kb_put", Target: "notes/x", Deny: true, Severity: audit.Warn, Reason: "untrusted_context",
			Layer: "_untrusted", Label: "http:https://api.example.com/page",
		},
		allowed("fs.read", "path_open", "/home/mara/notes"),
	})
	why := func(capability string) string {
		t.Helper()
		_, body := get(t, h, whyLink(runID(0), host.log.seqOf(runID(0), capability)), nil)
		return body
	}
	body := why("fs.read")
	inOrder(t, body, "Is there anything to do?", "Nothing, unless you expected it", "does not ask for this path",
		"Who decided", "<code>override:notes_digest.toml</code>", "The edit that would allow it", "add to line 2 of")
	want(t, body, "!The input of the run names it", "the bundle's policy.caps asks for it", "!in no file")
	inOrder(t, why("fs.write"), "Only if it should be allowed.", "a rule of the operator", "Who decided", "add to line 2 of")
	inOrder(t, why("secrets.get"), "Yes.", "rlp secrets put")
	inOrder(t, why("kb.write"), "Nothing, unless", "http:https://api.example.com/page",
		"trusted_hosts = [&#34;api.example.com&#34;]", "Who decided")
	_, body = get(t, h, whyLink(runID(0), host.log.seqOf(runID(0), "kb.write")+1), nil)
	want(t, body, "Why was this allowed?", "!anything to do")
}

// That the input of a run names what was denied is said to who may know the input, and
// to nobody else.
func TestWhySaysThatTheInputNamedIt(t *testing.T) {
	const secret = "/home/mara/private/salary.md"
	s := newStage(t)
	s.launch = func(_ context.Context, r *service.Request, b service.Begin) (*launcher.Report, error) {
		s.log.add(b.RunID, r.Agent, now, []audit.DecisionRecord{
			denied("fs.read", "path_open", secret, "path_not_permitted", ""),
			denied("fs.read", "path_open", "/etc/hostname", "path_not_permitted", ""),
		}, audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
		return &launcher.Report{RunID: b.RunID, Agent: r.Agent, Outcome: launcher.OK}, nil
	}
	run, err := s.service.Submit(t.Context(), operator(), &service.Request{
		Door: service.HTTP, Agent: "notes_digest", Input: json.RawMessage(`{"file":"` + secret + `"}`),
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	<-run.Done()
	seq := s.log.seqOf(run.ID(), "fs.read")
	_, body := get(t, s.handler, whyLink(run.ID(), seq), nil)
	want(t, body, "The input of the run names it")
	_, body = get(t, s.handler, whyLink(run.ID(), seq+1), nil)
	want(t, body, "!The input of the run names it")
	reader := &service.Caller{Name: "token:x", Tenant: "default", May: service.Read}
	h := as(New(Options{Runs: s.service, Host: s, Now: clockOfTests}), reader)
	_, body = get(t, h, whyLink(run.ID(), seq), nil)
	want(t, body, "does not ask for this path", "!The input of the run names it")
	_, body = get(t, h, "/ui/agents/notes_digest", nil)
	want(t, body, "!/launch")
}

// Two runs are compared by what they were answered; without a second one, with the run
// of the same agent before.
func TestCompare(t *testing.T) {
	host, h := pages(t)
	add := func(n int, agent string, decisions ...audit.DecisionRecord) {
		host.log.add(runID(n), agent, now, decisions, audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
	}
	add(200, "notes_digest", allowed("fs.read", "path_open", "/a"), allowed("fs.write", "path_open", "/out<b>"))
	add(201, "tree_audit")
	add(202, "notes_digest", allowed("fs.read", "path_open", "/a"), allowed("fs.read", "path_open", "/a"),
		denied("fs.write", "path_open", "/out<b>", "path_not_permitted", "override:x"),
		denied("fs.read", "path_open", "/new", "path_not_permitted", ""))
	_, body := get(t, h, "/ui/compare?of="+runID(202), nil)
	want(t, body, "2 differences", "/out&lt;b&gt;", "/new", "not asked", "!>/a<", `value="`+runID(200)+`" selected`,
		"!"+runID(201))
	_, body = get(t, h, "/ui/compare?of="+runID(202)+"&with="+runID(202), nil)
	want(t, body, "answered alike")
	_, body = get(t, h, "/ui/compare?of="+runID(201)+"&with="+runID(202), nil)
	want(t, body, "3 differences", `value="`+runID(202)+`" selected`)
	_, body = get(t, h, "/ui/compare", nil)
	want(t, body, `<select name="of">`, `<option value="`+runID(202)+`">notes_digest`, runID(201), "!None of the runs")
	host.log.runs = host.log.runs[:1]
	_, body = get(t, h, "/ui/compare?of="+runID(202), nil)
	want(t, body, "None of the runs shortly before it")
	for query, status := range map[string]int{
		"": http.StatusOK, "of=x": http.StatusBadRequest, "of=" + runID(999): http.StatusNotFound,
	} {
		if resp, _ := get(t, h, "/ui/compare?"+query, nil); resp.StatusCode != status {
			t.Errorf("%q: %d", query, resp.StatusCode)
		}
	}
}

// However long the runs are, no more than so many records of each are read.
func TestCompareIsBounded(t *testing.T) {
	host, h := pages(t)
	var many []audit.DecisionRecord
	for i := range compareRecords + 10 {
		many = append(many, audit.DecisionRecord{Cap: "fs.read", Target: fmt.Sprint("/", i%3)})
	}
	host.log.add(runID(200), "notes_digest", now, many, audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
	_, body := get(t, h, "/ui/compare?of="+runID(200)+"&with="+runID(59), nil)
	want(t, body, "one of them is longer")
	_, body = get(t, h, "/ui/compare?of="+runID(59)+"&with="+runID(58), nil)
	want(t, body, "!one of them is longer")
}
