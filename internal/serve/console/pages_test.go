package console

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
)

// get asks for a page, and posts a form where there is one.
func get(t testing.TB, h http.Handler, path string, form url.Values) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	if form != nil {
		r = httptest.NewRequest("POST", path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

func pages(t testing.TB) (*fakeHost, http.Handler) {
	host := newFakeHost(t)
	aDay(host.log)
	return host, as(New(Options{Runs: noRuns{}, Host: host, Now: clockOfTests}), operator())
}

// want looks for texts in a page; a text after "!" must not be in it.
func want(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if not, ok := strings.CutPrefix(text, "!"); ok == strings.Contains(body, not) {
			t.Errorf("the page has %q: %v", not, ok)
		}
	}
}

func TestPagesOfRuns(t *testing.T) {
	_, h := pages(t)
	_, body := get(t, h, "/ui/runs", nil)
	want(t, body, "notes_digest", "timeout", "refused", `href="/ui/runs/`+runID(59)+`"`, "Older runs", "!<script>",
		"!style=")
	_, body = get(t, h, "/ui/runs?before="+runID(10), nil)
	want(t, body, runID(9), "!"+runID(11), "!Older runs", `href="/ui/runs?"`)
	_, body = get(t, h, "/ui/runs?agent=tree_audit", nil)
	want(t, body, "tree_audit", "!mail_writer")
	_, body = get(t, h, "/ui/runs?state=bad", nil)
	want(t, body, "timeout", "!"+runID(0))
	for _, path := range []string{
		"/ui/runs?agent=%3Cb%3E", "/ui/runs?state=good", "/ui/runs?before=x", "/ui/audit?run=x",
		"/ui/audit?decision=perhaps", "/ui/audit?family=kbread", "/ui/audit?since=soon", "/ui/audit?before=x", "/ui/runs/" +
			runID(0) + "?after=x", "/ui/runs/" + runID(0) + "?show=x",
	} {
		if resp, body := get(t, h, path, nil); resp.StatusCode != http.StatusBadRequest || strings.Contains(body, "<b>") {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func TestPageOfARun(t *testing.T) {
	_, h := pages(t)
	_, body := get(t, h, "/ui/runs/"+runID(2), nil)
	want(t, body, "6 allowed", "4 denied", "by grant kb:write:contacts", "9.2 ms",
		"by override:notes_digest.toml", "by base", "/why/", "never in the log", `href="/ui/audit?run=`)
	if n := strings.Count(body, "kb.write</code>"); n != 3 { // what came of a call is in its row
		t.Errorf("3 calls are %d rows", n)
	}
	_, body = get(t, h, "/ui/runs/"+runID(2)+"?show=denied", nil)
	want(t, body, "/etc/hostname", "!kb_put")
	if resp, _ := get(t, h, "/ui/runs/"+runID(999), nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a run that is not there: %d", resp.StatusCode)
	}
}

func TestALongRunHasSeveralPages(t *testing.T) {
	host, h := pages(t)
	var many []audit.DecisionRecord
	for i := range 1400 { // each has a record of its end
		many = append(many, allowed("kb.write", "kb_put", "contacts/"+strings.Repeat("x", i%3+1)))
	}
	host.log.add(runID(70), "notes_digest", now, many, audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
	path, seen := "/ui/runs/"+runID(70), 0
	for n := 0; path != ""; n++ {
		_, body := get(t, h, path, nil)
		for _, times := range regexp.MustCompile(`class="times">×([0-9]+)`).FindAllStringSubmatch(body, -1) {
			n, err := strconv.Atoi(times[1])
			if err != nil {
				t.Fatal(err)
			}
			seen += n
		}
		if rows := strings.Count(body, `class="cap"`); rows > 3 {
			t.Errorf("3 different calls are %d rows", rows)
		}
		_, rest, more := strings.Cut(body, `aria-label="More calls"><a href="`)
		path, _, _ = strings.Cut(rest, `"`)
		path = strings.ReplaceAll(path, "&amp;", "&")
		if !more {
			path = ""
		}
		if n > 20 {
			t.Fatal("the pages do not end")
		}
	}
	if seen != 1400 {
		t.Errorf("%d calls on all pages", seen)
	}
}

func TestWhyAsksForARecord(t *testing.T) {
	host, h := pages(t)
	var seq string
	for _, r := range host.log.records {
		if r.Head.RunID == runID(0) && r.Decision != nil && r.Decision.Cap == "fs.write" {
			seq = number(r.Seq)
		}
	}
	_, body := get(t, h, "/ui/runs/"+runID(0)+"/why/"+seq, nil)
	want(t, body, "Why was this denied?", "add to line 2 of", "Tried on a copy", "override:notes_digest.toml",
		"Open the policy")
	if q := host.about[len(host.about)-1]; q != (ask.Query{Run: runID(0), At: 8}) {
		t.Errorf("it asked %+v", q)
	}
	host.errs["explain notes_digest"] = &ask.Error{Err: errors.New("it cannot be said")}
	_, body = get(t, h, "/ui/runs/"+runID(0)+"/why/"+seq, nil)
	want(t, body, "it cannot be said", "!Open the policy")
	host.agents = []service.Agent{}
	_, body = get(t, h, "/ui/runs/"+runID(0)+"/why/"+seq, nil)
	want(t, body, "is not installed here")
	delete(host.errs, "explain notes_digest") // from its records alone, which whoever operates is told
	_, body = get(t, h, "/ui/runs/"+runID(0)+"/why/"+seq, nil)
	want(t, body, "override:notes_digest.toml", "!is not installed here", "!Open the policy")
}

// What the bundle asks more of than it gets stands where the operator would give it.
func TestPolicySaysWhichLimitsAreLower(t *testing.T) {
	host, h := pages(t)
	path := "/ui/agents/notes_digest/policy"
	_, body := get(t, h, path, nil)
	want(t, body, "!the bundle asks for memory_bytes")
	const lower = `{"limits_lower":[{"limit":"memory_bytes","asked":2048,"given":1024,"by":[]}]}`
	if err := json.Unmarshal([]byte(lower), &host.answers.Show); err != nil {
		t.Fatal(err)
	}
	_, body = get(t, h, path, nil)
	want(t, body, "the bundle asks for memory_bytes = 2048, and gets 1024, the default; to give it, write")
}

func TestPolicyIsTriedBeforeItIsSaved(t *testing.T) {
	host, h := pages(t)
	path := "/ui/agents/notes_digest/policy"
	_, body := get(t, h, path, nil)
	want(t, body, "kb:write:contacts", "fs_rw = []", "never", "!Save as the override", `name="was" value="4d81c2375`)
	_, body = get(t, h, path+"?from=used", nil)
	want(t, body, "never used", "not saved")
	_, body = get(t, h, path, url.Values{"text": {"[capabilities]\r\nfs_rw = []\r\n"}, "do": {"preview"}})
	want(t, body, "It takes away", "kb:write:artifacts", "It leaves nothing that is not left now", "would have blocked",
		"Save as the override")
	if tried := host.trials[0]; len(host.trials) != 1 || tried.Save ||
		string(tried.Text) != "[capabilities]\nfs_rw = []\n" {
		t.Errorf("tried was %+v", host.trials)
	}
	resp, _ := get(t, h, path, url.Values{"text": {"x"}, "do": {"save"}, "was": {"none"}})
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != path+"?saved="+digestSaved {
		t.Errorf("saved: %d %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	if tried := host.trials[1]; !tried.Save || tried.Narrow || tried.Was != "none" || string(tried.Text) != "x" {
		t.Errorf("saved was %+v", tried)
	}
	if resp, _ := get(t, h, path, url.Values{
		"text": {"", "net = []"}, "do": {"save"},
		"was": {"none"},
	}); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a form with two texts is %d", resp.StatusCode)
	}
	if resp, _ := get(t, h, path, url.Values{
		"text": {"x"}, "do": {"save"},
		"was": {"--x y"},
	}); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a digest that is none: %d", resp.StatusCode)
	}
	host.errs["try notes_digest"] = &ask.TextError{Line: 2, Column: 1, Why: `unknown key "fs_wr" (did you mean "fs_rw"?)`}
	resp, body = get(t, h, path, url.Values{"text": {"fs_wr = 1"}, "do": {"save"}, "was": {"none"}})
	want(t, body, "cannot be the override", "did you mean", "fs_wr = 1", "line 2, column 1: unknown key")
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an override that cannot be read: %d", resp.StatusCode)
	}
}

// A token saves nothing without the right, nothing that gives anything back, and
// nothing at all from another tenant, for overrides hold for each.
func TestWhoMaySaveAnOverride(t *testing.T) {
	for _, c := range []struct {
		name, tenant string
		may          service.Rights
		status       int
		narrow       bool
	}{
		{"user:1000", "default", service.Read | service.Operate, http.StatusSeeOther, false},
		{"token:ci", "default", service.Read | service.Operate, http.StatusSeeOther, true},
		{"token:ci", "default", service.Read | service.Launch, http.StatusForbidden, false},
		{"token:ci", "acme", service.Read | service.Operate, http.StatusForbidden, false},
		{"token:ci", "default", service.Launch, http.StatusForbidden, false},
		{"", "", 0, http.StatusForbidden, false},
	} {
		host := newFakeHost(t)
		caller := &service.Caller{Name: c.name, Tenant: c.tenant, May: c.may}
		h := as(New(Options{Runs: noRuns{}, Host: host, Now: clockOfTests}), caller)
		resp, _ := get(t, h, "/ui/agents/notes_digest/policy", url.Values{"text": {""}, "do": {"save"}, "was": {"none"}})
		saved := len(host.trials) == 1 && host.trials[0].Save
		if resp.StatusCode != c.status || saved != (c.status == http.StatusSeeOther) || saved &&
			host.trials[0].Narrow != c.narrow {
			t.Errorf("%+v: %d, tried %+v", c, resp.StatusCode, host.trials)
		}
	}
}

func TestWhoMayRead(t *testing.T) {
	host := newFakeHost(t)
	aDay(host.log)
	h := New(Options{Runs: noRuns{}, Host: host, Now: clockOfTests})
	for _, path := range []string{
		"/", "/ui/runs/" + runID(0), "/ui/agents", "/ui/agents/notes_digest",
		"/ui/agents/notes_digest/policy", "/ui/audit", "/ui/log", "/ui/lanes",
	} {
		for _, c := range []*service.Caller{nil, {Name: "token:x", Tenant: "default", May: service.Launch}} {
			resp, body := get(t, as(h, c), path, nil)
			if resp.StatusCode != http.StatusForbidden || strings.Contains(body, "notes_digest") {
				t.Errorf("%s by %+v: %d", path, c, resp.StatusCode)
			}
		}
		if resp, _ := get(t, as(h, operator()), path, nil); resp.StatusCode != http.StatusOK { // the control
			t.Errorf("%s by who may: %d", path, resp.StatusCode)
		}
	}
	reader := &service.Caller{Name: "token:x", Tenant: "default", May: service.Read}
	_, body := get(t, as(h, reader), "/", nil)
	want(t, body, `action="/logout"`, "token:x")
	_, body = get(t, as(h, operator()), "/", nil)
	want(t, body, "!/logout")
	if resp, _ := get(t, as(h, reader), "/ui/lanes", url.Values{}); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a reader tried the lanes: %d", resp.StatusCode)
	}
}

func TestAuditSearchPages(t *testing.T) {
	host, h := pages(t)
	path, seen := "/ui/audit?decision=deny", 0
	for n := 0; path != "" && n < 20; n++ {
		_, body := get(t, h, path, nil)
		want(t, body, "!allowed</span>")
		seen += strings.Count(body, "<details>")
		_, rest, more := strings.Cut(body, `Newest</a> <a href="`)
		path, _, _ = strings.Cut(rest, `"`)
		path = strings.ReplaceAll(path, "&amp;", "&")
		if !more {
			path = ""
		}
	}
	denials := 0
	for _, r := range host.log.records {
		if r.Denied() {
			denials++
		}
	}
	if seen != denials || denials < auditRows {
		t.Errorf("%d of %d denials on all pages", seen, denials)
	}
	_, body := get(t, h, "/ui/audit?run="+runID(0)+"&family=fs&since=7d", nil)
	want(t, body, "args_hash", "path_not_permitted", "!kb_put")
}

func TestVerifyAndLanes(t *testing.T) {
	host, h := pages(t)
	_, body := get(t, h, "/ui/log", nil)
	want(t, body, "not been verified")
	if resp, _ := get(t, h, "/ui/log/verify", url.Values{}); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("verify: %d", resp.StatusCode)
	}
	_, body = get(t, h, "/ui/log", nil)
	want(t, body, "It is what was recorded", "124")
	host.answers.Verify = ask.Verification{Fault: &ask.Fault{
		Kind: kb.FaultChanged, Seq: 17,
		Message: "<b>it was changed</b>",
	}}
	get(t, h, "/ui/log/verify", url.Values{})
	_, body = get(t, h, "/ui/log", nil)
	want(t, body, "not as it was recorded", "record 17", "&lt;b&gt;it was changed")
	_, body = get(t, h, "/ui/lanes", nil)
	want(t, body, "Try them now")
	get(t, h, "/ui/lanes", url.Values{})
	_, body = get(t, h, "/ui/lanes", nil)
	want(t, body, "best effort", "enforced", "takes <strong>ns")
	if resp, _ := get(t, h, "/ui/log/verify", nil); resp.StatusCode == http.StatusSeeOther {
		t.Error("a GET verified the log")
	}
}

func TestPagesOfAgents(t *testing.T) {
	host, h := pages(t)
	_, body := get(t, h, "/ui/agents", nil)
	want(t, body, "scraper", "its signature is not valid", "valid, by mara")
	_, body = get(t, h, "/ui/agents/notes_digest", nil)
	want(t, body, "path_unlink_file", "kb_put", "2.8 MiB", "valid, by mara")
	host.agents = fewAgents()
	host.agents[1].Problem = "the bundle is damaged"
	host.errs["inspect notes_digest"] = &service.UnavailableError{Why: errors.New("away")}
	_, body = get(t, h, "/ui/agents/notes_digest", nil)
	want(t, body, "cannot be launched", "the bundle is damaged")
	for _, name := range []string{"nobody", "..%2f..", "-x", "%3Cb%3E"} {
		if resp, _ := get(t, h, "/ui/agents/"+name, nil); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}

func TestHeadersKeepPagesAlone(t *testing.T) {
	_, h := pages(t)
	for _, path := range []string{"/", "/ui/agents", "/nothing", "/ui/runs?agent=%3C"} {
		resp, _ := get(t, h, path, nil)
		csp := resp.Header.Get("Content-Security-Policy")
		for _, part := range []string{
			"default-src 'none'", "script-src 'self';", "style-src 'self';",
			"frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'",
		} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: %q lacks %s", path, csp, part)
			}
		}
		want(t, csp, "!unsafe", "!data:", "!*", "!http")
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, resp.Header)
		}
	}
}

func TestAssetsAreKeptByTheirDigest(t *testing.T) {
	_, h := pages(t)
	for name, a := range loadAssets() {
		resp, body := get(t, h, a.path, nil)
		if resp.StatusCode != http.StatusOK || body != string(a.data) || !strings.Contains(resp.Header.Get("Cache-Control"),
			"immutable") {
			t.Errorf("%s: %d %v", name, resp.StatusCode, resp.Header)
		}
		if resp, _ := get(t, h, "/ui/assets/000000000000/"+name, nil); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s by another digest: %d", name, resp.StatusCode)
		}
	}
}

func TestSince(t *testing.T) {
	c := &console{Options: Options{Now: clockOfTests}}
	for text, age := range map[string]time.Duration{
		"90m": 90 * time.Minute, "2d": 48 * time.Hour,
		"2026-11-22T21:00:00Z": 30 * time.Minute,
	} {
		if at, ok := c.since(text); !ok || now.Sub(at) != age {
			t.Errorf("%s: %v %v", text, at, ok)
		}
	}
	for _, text := range []string{"-1h", "0d", "x", "1e9d", "999999999d"} {
		if _, ok := c.since(text); ok {
			t.Errorf("%s is a time", text)
		}
	}
}
