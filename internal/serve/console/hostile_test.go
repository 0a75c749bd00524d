package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
)

// hostile is what an agent may write where it can.
const hostile = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'><svg " +
	"onload=window.pwned=1>{{.Tenant}}</pre></textarea>" +
	"javascript:window.pwned=1\x1b[2J\x00\x07\u202etxt.exe\u2066\u200b\ufeff\r\nevent: end\n\n&lt;script&gt;"

// ofHostile is a stage on which everything that an agent can write is hostile,
// and the run that wrote it.
func ofHostile(t testing.TB, text string) (*stage, string) {
	s := newStage(t)
	e, d := &s.answers.Explanation, &s.answers.Inspect
	e.Edits[0].Text, e.Kind, d.Description = text, text, text
	s.agents = fewAgents()
	s.agents[0].InputSchema = result(map[string]any{
		"type": "object", "required": []string{text}, "properties": map[string]any{
			text: map[string]any{"enum": []string{text}, "description": text},
			"a":  map[string]any{"type": "string", "title": text, "default": text},
		},
	})
	s.agents[0].Params = []service.Param{{Name: "out", Kind: "dir", Description: text}}
	s.changed = []ask.ChangedServer{{Server: "github", Tools: []string{text}}}
	for i := range d.Imports {
		d.Imports[i].Name = text
	}
	decisions := []audit.DecisionRecord{
		denied("fs.read", text, text, text, text), allowed("fs.read", text, "/"+text),
		{Cap: text, Op: text, Target: text, Reason: text, Tool: text, Label: text},
	}
	s.log.add(runID(80), "notes_digest", now, decisions, audit.Event{
		Kind: audit.KindRunFailed, Outcome: "trap",
		Message: text, Reason: text, Violations: []string{text},
	})
	id := s.submit(t, "notes_digest")
	s.finish(t, id, &launcher.Report{
		Stdout: text, Stderr: text, Result: result(map[string]string{text: text}),
		Message: text,
	})
	return s, id
}

// everyPage is each page that shows what agents write.
func everyPage(s *stage, id string) []string {
	list := []string{
		"/", "/ui/runs", "/ui/agents/mail_writer/launch", "/ui/agents/notes_digest/launch?again=" + id, "/ui/compare?of=" + id + "&with=" + runID(80), "/ui/runs/" + id,
		"/ui/runs/" + runID(80), "/ui/runs/" + runID(2), "/ui/agents",
		"/ui/agents/notes_digest", "/ui/agents/notes_digest/policy", "/ui/agents/notes_digest/policy?from=used", "/ui/audit",
		"/ui/audit?run=" + runID(80), "/ui/log", "/ui/lanes", "/nothing",
	}
	for _, r := range s.log.records {
		if r.Head.RunID == runID(80) && r.Decision != nil {
			list = append(list, fmt.Sprintf("/ui/runs/%s/why/%d", runID(80), r.Seq))
		}
	}
	return list
}

// What an agent writes is text: every element and attribute
// of a page is one that a template has.
func TestWhatAgentsWriteIsText(t *testing.T) {
	s, id := ofHostile(t, hostile)
	shown := 0
	for _, path := range everyPage(s, id) {
		_, body := get(t, s.handler, path, nil)
		if found := injected(t, body); len(found) > 0 {
			t.Errorf("%s: %q", path, found)
		}
		shown += strings.Count(body, "window.pwned")
		for _, r := range body {
			if r != '\n' && r != '\t' && r != '\u202f' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%s: %U is in the page as it is", path, r)
				break
			}
		}
	}
	if shown < 20 {
		t.Errorf("what it wrote is seen %d times: the pages are not tried", shown)
	}
	if found := injected(t, "<p>"+hostile+"</p>"); len(found) < 3 {
		t.Errorf("the control is taken for a page: %q", found)
	}
}

// injected are the elements and attributes of a page that do what no template
// has: scripts without an address of ours, handlers, styles, links elsewhere.
func injected(t *testing.T, body string) []string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		local := false
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
				found = append(found, n.Data+" "+a.Key)
			case a.Key == "src" || a.Key == "href" || a.Key == "action":
				local = strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//") || strings.HasPrefix(a.Val, "#")
				if !local {
					found = append(found, n.Data+" "+a.Val)
				}
			}
		}
		if n.Data == "script" && !local || n.Data == "iframe" || n.Data == "object" || n.Data == "style" {
			found = append(found, n.Data)
		}
	}
	return found
}

// No page with what it loads is larger than 150 KiB, whatever an agent writes.
func TestNoPageShipsMoreThan150KiB(t *testing.T) {
	loads := 0
	for _, a := range loadAssets() {
		loads += len(a.data)
	}
	for name, text := range map[string]string{"quotes": strings.Repeat(`"`, 1<<17), "controls": strings.Repeat("\u202e",
		1<<15), "words": strings.Repeat("<script>alert(1)</script> ", 1<<12)} { // each, escaped, too large by itself
		if testing.Short() && name != "quotes" {
			continue
		}
		s, id := ofHostile(t, text)
		var many []audit.DecisionRecord
		for i := range 400 {
			d := denied("fs.read", text, fmt.Sprint(i)+text, "path_not_permitted", "override:"+text)
			if i%2 == 0 {
				d = allowed(text, text, fmt.Sprint(i)+text)
			}
			many = append(many, d)
		}
		s.log.add(runID(81), "notes_digest", now, many, audit.Event{
			Kind: audit.KindRunFailed, Outcome: "trap",
			Message: text,
		})
		for i := range 200 {
			s.log.add(runID(100+i), "notes_digest", now.Add(time.Duration(i)*time.Second), nil,
				audit.Event{Kind: audit.KindRunFailed, Outcome: text, Message: text})
		}
		worst := 0
		for _, path := range append(everyPage(s, id), "/ui/runs/"+runID(81), "/ui/runs/"+runID(81)+"?show=denied",
			"/ui/audit?run="+runID(81)) {
			_, body := get(t, s.handler, path, nil)
			if n := len(body) + loads; n > 150<<10 {
				t.Errorf("%s of %s: %d bytes with what it loads", path, name, n)
			} else {
				worst = max(worst, n)
			}
		}
		t.Logf("%s: at most %d bytes", name, worst)
	}
}

func TestShown(t *testing.T) {
	for in, out := range map[string]string{
		"plain":              "plain",
		"a\nb":               "a␊b",
		"\x1b[31m":           "␛[31m",
		"\u202egpj.exe":      "⟨U+202E⟩gpj.exe",
		"\xff\xfe":           "⟨FF⟩⟨FE⟩",
		"\u200b\u00ad\ufeff": "⟨U+200B⟩⟨U+00AD⟩⟨U+FEFF⟩",
		"naïve 日本":           "naïve 日本",
		"\U000e0041":         "⟨U+E0041⟩",
	} {
		if got := shown(in, 1000); got != out {
			t.Errorf("%q: %q, not %q", in, got, out)
		}
	}
	if got := shownBlock("a\n\tb\r", 1000); got != "a\n\tb␍" {
		t.Errorf("a block: %q", got)
	}
	if got := shown(strings.Repeat("x", 5000), 100); got != strings.Repeat("x", 100)+"… (4.8 KiB more)" {
		t.Errorf("cut: %q", got)
	}
}

func FuzzShown(f *testing.F) {
	f.Add(hostile)
	cell := template.Must(template.New("").Funcs(words()).Parse("{{cell .}}"))
	f.Fuzz(func(t *testing.T, s string) {
		got := shown(s, cellRoom)
		for _, r := range got {
			if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
				t.Fatalf("%U is left", r)
			}
		}
		var page bytes.Buffer
		if err := cell.Execute(&page, s); err != nil || page.Len() > cellRoom+64 {
			t.Fatalf("%d bytes of HTML, %v", page.Len(), err)
		}
	})
}

func TestFormsThatAreTooLarge(t *testing.T) {
	_, h := pages(t)
	resp, _ := get(t, h, "/ui/agents/notes_digest/policy", map[string][]string{
		"text": {strings.Repeat("x", most)},
		"do":   {"preview"},
	})
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a form of %d bytes: %d", most, resp.StatusCode)
	}
}
