package console

import (
	"fmt"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
)

// atStart is what a language's own start asks for.
func atStart() audit.DecisionRecord {
	return audit.DecisionRecord{Cap: "time.now", Op: "clock_time_get", Deny: true, Reason: "cap_missing"}
}

// The same call, asked again, is one row with a bar for each; a language's own start is
// folded; a run of very many calls has bars for some of them.
func TestAWaterfall(t *testing.T) {
	host, h := pages(t)
	host.log.retell(runID(0), []audit.DecisionRecord{
		atStart(), atStart(),
		allowed("fs.read", "path_open", "/home/mara/notes/a.md"),
		denied("fs.read", "path_open", "/etc/x", "path_not_permitted", ""),
		allowed("fs.read", "path_filestat_get", "/home/mara/notes/a.md"),
		allowed("fs.read", "path_open", "/home/mara/notes/a.md"),
		denied("fs.read", "path_open", "/etc/x", "path_not_permitted", ""),
	})
	_, body := get(t, h, "/ui/runs/"+runID(0), nil)
	row := func(text string) string {
		t.Helper()
		_, row, found := strings.Cut(body, text)
		row, _, _ = strings.Cut(row, "</li>")
		if !found {
			t.Fatalf("no row has %q", text)
		}
		return row
	}
	path := row(`<code class="target" title="/home/mara/notes/a.md">`)
	want(t, path, "×3", `<span class="tail">/a.md</span>`, "path_open ×2, path_filestat_get")
	if n := strings.Count(path, "<rect"); n != 3 {
		t.Errorf("3 calls have %d bars", n)
	}
	want(t, body, "2 calls of the language's own start", "!time.now", "2×", "no grant that is left holds this path")
	if n := strings.Count(body, `class="call `); n != 4 { // it began, two rows, it ended
		t.Errorf("%d rows", n)
	}
	var many []audit.DecisionRecord
	for range 900 {
		many = append(many, allowed("fs.read", "path_open", "/home/mara/notes/a.md"))
	}
	host.log.retell(runID(0), many)
	_, body = get(t, h, "/ui/runs/"+runID(0), nil)
	path = row(`<code class="target" title="/home/mara/notes/a.md">`)
	want(t, path, "×900")
	if n := strings.Count(path, "<rect"); n != rowBars {
		t.Errorf("900 calls have %d bars", n)
	}
}

// Many calls that one grant allowed are one row with the others in it; what was denied
// is never in one, and a few calls are not folded.
func TestCallsOfOneGrantAreFolded(t *testing.T) {
	host, h := pages(t)
	var calls []audit.DecisionRecord
	for i := range 6 {
		calls = append(calls, allowed("fs.read", "path_open", fmt.Sprintf("/home/mara/notes/%d/a.md", i)),
			denied("fs.read", "path_open", fmt.Sprintf("/home/mara/notes%d", i), "path_not_permitted", ""))
		if i < enoughToFold-1 {
			calls = append(calls, allowed("kb.write", "kb_put", fmt.Sprintf("contacts/%d", i)))
		}
	}
	host.log.retell(runID(0), calls)
	_, body := get(t, h, "/ui/runs/"+runID(0), nil)
	if n := strings.Count(body, "<summary data-open>"); n != 1 {
		t.Fatalf("%d rows are folded", n)
	}
	_, fold, _ := strings.Cut(body, "<summary data-open>")
	fold, _, _ = strings.Cut(fold, "</details>")
	want(t, fold, "6 different", `<code class="target" title="/home/mara/notes">`, "by fs:read:/home/mara/notes",
		`title="/home/mara/notes/5/a.md"`, "!denied", "!kb.write")
	if n := strings.Count(body, `class="call bad"`); n != 6 {
		t.Errorf("%d denied rows", n)
	}
	for _, c := range [][3]string{
		{"/a/b", "/a/c", "/a"},
		{"/a/b", "/a/b/c", "/a/b"},
		{"/ab", "/ac", ""},
		{"contacts/x", "contacts/y", "contacts"},
		{"x", "y", ""},
		{"/a", "/a", "/a"},
		{"/a/bc", "/a/b", "/a"},
	} {
		if got := common(c[0], c[1]); got != c[2] {
			t.Errorf("%s and %s have %q in common, not %q", c[0], c[1], got, c[2])
		}
	}
}

// A run that took in untrusted content says what came in and when, what that took, and
// the setting that would trust it; another says nothing of it.
func TestARunSaysWhatUntrustedContentTook(t *testing.T) {
	host, h := pages(t)
	add := func(run, label string) {
		host.log.add(run, "notes_digest", now, []audit.DecisionRecord{
			denied("kb.write", "kb_put", "contacts/x", "untrusted_context", "_untrusted"),
		}, audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
		var swapped []audit.Record
		for _, r := range host.log.records {
			if swapped = append(swapped, r); r.Head.RunID != run || r.Event == nil || r.Event.Kind != audit.KindRunStart {
				continue
			}
			start := *r.Event
			start.Floor = &audit.Layer{Name: "_untrusted", File: "built in"}
			swapped[len(swapped)-1].Event = &start
			if label != "" {
				r.Event = &audit.Event{Kind: audit.KindCapsSwap, Source: "_untrusted", Label: label}
				swapped = append(swapped, r)
			}
		}
		host.log.records = swapped
	}
	add(runID(200), "http:https://api.example.com/page?<b>")
	add(runID(201), "")
	_, body := get(t, h, "/ui/runs/"+runID(200), nil)
	want(t, body, "Untrusted content narrowed this run", "https://api.example.com/page?&lt;b&gt;",
		"<code class=\"chip\">kb:write:contacts</code>", "!<code class=\"chip\">fs:read", "1 call denied for it",
		"trusted_hosts = [&#34;api.example.com&#34;]", "under [security.caps] in config.toml")
	_, body = get(t, h, "/ui/runs/"+runID(201), nil)
	want(t, body, "!Untrusted content narrowed this run")
}

// A run is run again by who may launch, and nobody else is offered it.
func TestWhoMayRunAgain(t *testing.T) {
	for may, offered := range map[service.Rights]bool{service.Read: false, service.Read | service.Launch: true} {
		host := newFakeHost(t)
		aDay(host.log)
		c := &service.Caller{Name: "token:x", Tenant: "default", May: may}
		_, body := get(t, as(New(Options{Runs: noRuns{}, Host: host, Now: clockOfTests}), c), "/ui/runs/"+runID(2), nil)
		link := fmt.Sprintf("/launch?again=%s", runID(2))
		if strings.Contains(body, link) != offered {
			t.Errorf("%s: run again is offered: %t", may, !offered)
		}
	}
}
