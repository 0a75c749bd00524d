package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
)

// A page of many agents is a page, and what one of them needs is asked of it
// alone.
func TestAgentsArePaged(t *testing.T) {
	host, h := pages(t)
	host.agents = nil
	for i := range 1000 {
		host.agents = append(host.agents, service.Agent{
			Name: fmt.Sprintf("agent_%04d", i), Version: strings.Repeat("<", 99), Description: strings.Repeat(`<&"'`, 500),
			Problem:   strings.Repeat("\u202e", 500),
			Signature: strings.Repeat("'", 500), Families: []string{
				"fs", "net", "kb_read", "kb_write", "exec", "model",
				"agents", "mcp", "env", "secrets", "time",
			},
		})
	}
	seen, path := 0, "/ui/agents"
	for path != "" {
		resp, body := get(t, h, path, nil)
		if resp.StatusCode != http.StatusOK || len(body) > mostPage {
			t.Fatalf("%s: %d, %d bytes", path, resp.StatusCode, len(body))
		}
		seen += strings.Count(body, `/policy">Policy`)
		_, rest, more := strings.Cut(body, `<a href="/ui/agents?after=`)
		name, _, _ := strings.Cut(rest, `"`)
		if path = ""; more {
			path = "/ui/agents?after=" + name
		}
	}
	if seen != len(host.agents) {
		t.Errorf("%d of %d agents are on a page", seen, len(host.agents))
	}
	if resp, _ := get(t, h, "/ui/agents?after=../x", nil); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a name that is none: %d", resp.StatusCode)
	}
}

// mostPage is what a page ships at most.
const mostPage = 150 << 10

// A grant that a long run used is used, though the run began before the records
// that are looked at.
func TestALongRunUsedItsGrants(t *testing.T) {
	host, h := pages(t)
	var calls []audit.DecisionRecord
	for range usageRecords + 10 {
		calls = append(calls, audit.DecisionRecord{Cap: "fs.read", Op: "path_open", Target: "/home/mara/notes/a.md"})
	}
	host.log.add(runID(900), "notes_digest", now.Add(-time.Hour), calls, audit.Event{
		Kind:    audit.KindRunComplete,
		Outcome: "ok",
	})
	_, body := get(t, h, "/ui/agents/notes_digest/policy", nil)
	_, row, _ := strings.Cut(body, "<code>fs:read:/home/mara/notes</code>")
	row, _, _ = strings.Cut(row, "</tr>")
	want(t, row, "used", "!never")
	_, row, _ = strings.Cut(body, "<code>kb:write:contacts</code>")
	row, _, _ = strings.Cut(row, "</tr>")
	want(t, row, "never")
}

// An override that is longer than a page is no page of that length, and none that
// is cut and could be saved.
func TestALongOverrideIsNoPage(t *testing.T) {
	host, h := pages(t)
	host.answers.Override.Text = strings.Repeat("# ''''\n", 9000)
	path := "/ui/agents/notes_digest/policy"
	resp, body := get(t, h, path, nil)
	want(t, body, "longer than a page", "!<textarea", "!name=\"was\"")
	if resp.StatusCode != http.StatusOK || len(body) > mostPage {
		t.Errorf("%d, %d bytes", resp.StatusCode, len(body))
	}
	resp, body = get(t, h, path, map[string][]string{"text": {strings.Repeat(`"`, 60_000)}, "do": {"preview"}})
	want(t, body, "rlp caps override notes_digest FILE")
	if resp.StatusCode != http.StatusBadRequest || len(body) > mostPage {
		t.Errorf("%d, %d bytes", resp.StatusCode, len(body))
	}
}

// A link that says that something was saved does not make the page say so.
func TestSavedIsWhatIsThere(t *testing.T) {
	_, h := pages(t)
	path := "/ui/agents/notes_digest/policy?saved="
	for _, said := range []string{"1", "", noneSaved, digestSaved} {
		_, body := get(t, h, path+said, nil)
		want(t, body, "!It holds for every launch from now on")
	}
	_, body := get(t, h, path+digestBefore, nil)
	want(t, body, "It holds for every launch from now on")
}

const noneSaved = "none"

// A denial that no layer voted for is not said to be the agent's policy's.
func TestNoLayerIsNotTheBase(t *testing.T) {
	host, h := pages(t)
	host.log.retell(runID(0), []audit.DecisionRecord{
		{Cap: "net.http", Op: "net_http", Target: "https://api.example.com/", Deny: true, Reason: "rate_limited"},
		{Cap: "fs.write", Op: "path_open", Target: "/home/mara/x", Deny: true, Reason: "path_not_permitted"},
	})
	_, body := get(t, h, "/ui/runs/"+runID(0), nil)
	want(t, body, "by base: no grant that is left holds this path", "!by base: too often", "too often in too short a time")
	_, body = get(t, h, fmt.Sprintf("/ui/runs/%s/why/%d", runID(0), host.log.seqOf(runID(0), "net.http")), nil)
	want(t, body, "No layer took it", "!own policy does not hold it")
	_, body = get(t, h, fmt.Sprintf("/ui/runs/%s/why/%d", runID(0), host.log.seqOf(runID(0), "fs.write")), nil)
	want(t, body, "own policy does not hold it")
}

// What the launch itself recorded is not explained as a request: the page of a refused
// run says for what it was refused, and which setting changes it.
func TestARefusedRunSaysWhy(t *testing.T) {
	host, h := pages(t)
	refused := func(violations ...string) (string, string) {
		host.log.retell(runID(0), []audit.DecisionRecord{
			{Cap: "caps.empty", Op: "_start", Deny: true, Reason: "caps_empty"},
			{Cap: "caps.extra", Op: "_start", Target: "kb:write:drafts", Deny: true, Reason: "not_in_base", Layer: "override:o"},
		})
		end := &host.log.records[len(host.log.records)-1]
		end.Event = &audit.Event{
			Kind: audit.KindPolicyRejected, Outcome: "refused", Message: "nothing is left", Violations: violations,
		}
		asked := len(host.about)
		_, empty := get(t, h, fmt.Sprintf("/ui/runs/%s/why/%d", runID(0), host.log.seqOf(runID(0), "caps.empty")), nil)
		_, extra := get(t, h, fmt.Sprintf("/ui/runs/%s/why/%d", runID(0), host.log.seqOf(runID(0), "caps.extra")), nil)
		if len(host.about) != asked {
			t.Errorf("it asked %+v", host.about[asked:])
		}
		return empty, extra
	}
	body, extra := refused("kb:write:notes was taken away by profile:runner_default, and nothing is left")
	want(t, body, "!own policy does not hold it", "the launch recorded it", "Why the run was refused",
		"kb:write:notes was taken away by profile:runner_default", "[security] run_grant")
	want(t, extra, "<code>override:o</code> allows it, and it is ignored", "!refused it")
	body, _ = refused() // control: where no profile took it, the setting changes nothing
	want(t, body, "nothing is left", "![security] run_grant")
}

// A filter that finds nothing among the runs that one page looks at leads on to
// those that are older.
func TestAFilterLeadsOn(t *testing.T) {
	host, h := pages(t)
	host.log.runs = nil
	for i := range runReach + 10 {
		s := kb.RunSummary{
			RunID: runID(runReach + 10 - i), Agent: "notes_digest", BeganMS: now.UnixMilli(),
			EndedMS: now.UnixMilli(), Outcome: "ok",
		}
		if i == runReach+5 {
			s.Denied = 1
		}
		host.log.runs = append(host.log.runs, s)
	}
	_, body := get(t, h, "/ui/runs?state=denied", nil)
	want(t, body, "None of the", "Older runs", "!No run is like that")
	_, rest, _ := strings.Cut(body, `<a href="/ui/runs?before=`)
	link, _, _ := strings.Cut(rest, `"`)
	_, body = get(t, h, "/ui/runs?before="+strings.ReplaceAll(link, "&amp;", "&"), nil)
	want(t, body, `data-row`, "!Older runs")
}
