package console

import (
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher"
)

// axeVersion and axeSum say which rules pages are held to: npm's own sum.
const (
	axeVersion = "4.14.1"
	axeSum     = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axe fetches axe-core by npm's ordinary client; "" where there is none, and the
// test is smaller.
func axe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	npm, err := exec.LookPath("npm")
	if err == nil {
		c := exec.Command(npm, "pack", "--silent", "axe-core@"+axeVersion)
		c.Dir = dir
		_, err = c.Output()
	}
	pack := filepath.Join(dir, "axe-core-"+axeVersion+".tgz")
	data, unread := os.ReadFile(pack)
	if err != nil || unread != nil {
		t.Logf("npm could not bring axe-core (%v): pages are not held to its rules", err)
		return ""
	}
	if sum := sha512.Sum512(data); base64.StdEncoding.EncodeToString(sum[:]) != axeSum {
		t.Fatal("axe-core is not the one that its sum says")
	}
	if out, err := exec.Command("tar", "-xzf", pack, "-C", dir, "package/axe.min.js").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rules, err := os.ReadFile(filepath.Join(dir, "package", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(rules)
}

// edited posts the form of an override, so that its preview is on the page.
func (b *browser) edited() {
	b.Helper()
	b.visit("/ui/agents/notes_digest/policy")
	b.do(chromedp.SetValue(chromedp.CSS("#text"),
		"[capabilities]\nfs_rw = []              # it may write nothing\nkb_write = [\"contacts\"]\n"))
	b.do(chromedp.Click(chromedp.CSS("button[value=preview]")))
	b.until("document.getElementById('change') !== null && document.readyState === 'complete'")
}

const violations = `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 160) + " " + n.failureSummary)))`

// likeness is what pages have in common that have the same elements: axe takes long, and
// looks at one of them.
func likeness(path string) string {
	if strings.HasSuffix(path, runID(80)) && !strings.Contains(path, "?") { // what was denied, beside what was printed
		return path
	}
	path, _, _ = strings.Cut(path, "?")
	return regexp.MustCompile(`[0-9a-f-]{36}|/why/[0-9]+`).ReplaceAllString(path, "ID")
}

// Every page keeps axe-core's rules, light and wide, and dark on a phone: its
// colours do not depend on the width. None is wider than what it is seen on, in any
// colours. RLP_SOAK=1 looks at all four.
func TestPagesAreForEverybody(t *testing.T) {
	s, id := ofHostile(t, hostile)
	b := look(t, s.handler)
	if b == nil {
		return
	}
	rules := axe(t)
	if rules != "" { // the control: the rules are at work
		b.visit("/ui/runs")
		b.do(chromedp.Evaluate[chromedp.Void](rules),
			chromedp.Evaluate[chromedp.Void]("document.documentElement.removeAttribute('lang')"))
		if found := evaluate[[]string](b, violations); len(found) != 1 || !strings.HasPrefix(found[0], "html-has-lang") {
			t.Errorf("a page without a language: %q", found)
		}
	}
	get(t, s.handler, "/ui/lanes", map[string][]string{})
	get(t, s.handler, "/ui/log/verify", map[string][]string{})
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		for _, width := range []int64{1280, 360} {
			if dark != (width == 360) && os.Getenv("RLP_SOAK") == "" {
				continue
			}
			b.size(width, 860)
			seen := map[string]bool{}
			check := func(name string) {
				if wide := evaluate[int](b, "document.documentElement.scrollWidth"); wide > int(width) {
					t.Errorf("%s is %d wide on %d", name, wide, width)
				}
				if rules == "" || seen[likeness(name)] && os.Getenv("RLP_SOAK") == "" {
					return
				}
				seen[likeness(name)] = true
				b.do(chromedp.Evaluate[chromedp.Void](rules))
				for _, v := range evaluate[[]string](b, violations) {
					t.Errorf("%s, dark %v, %d wide: %s", name, dark, width, v)
				}
			}
			for _, path := range everyPage(s, id) {
				if path == "/nothing" {
					continue
				}
				b.visit(path)
				check(path)
			}
			b.edited()
			check("a preview")
		}
	}
	b.quiet()
}

func TestDarkIsDark(t *testing.T) {
	s := newStage(t)
	b := look(t, s.handler)
	if b == nil {
		return
	}
	b.visit("/ui/runs")
	lightness := func(dark bool) int {
		b.dark(dark)
		return evaluate[int](b, "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) "+
			"=> a + b)")
	}
	if l, d := lightness(false), lightness(true); l < 600 || d > 150 {
		t.Errorf("light is %d and dark %d of 765", l, d)
	}
}

// What agents write runs nowhere: no script of theirs, nothing that the policy
// of pages had to stop. The control is a page that has it as it is.
func TestWhatAgentsWriteRunsNowhere(t *testing.T) {
	s, id := ofHostile(t, hostile)
	mux := http.NewServeMux()
	mux.Handle("/", s.handler)
	mux.HandleFunc("GET /control", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><link rel=icon href=data:,><p>" + hostile))
	})
	b := open(t, mux)
	if b == nil {
		return
	}
	b.visit("/control")
	b.until("window.pwned === 1")
	b.said = nil // it is not a page of ours
	for _, path := range everyPage(s, id) {
		if path == "/nothing" {
			continue
		}
		b.visit(path)
		if evaluate[bool](b, "'pwned' in window") {
			t.Errorf("%s: it ran", path)
		}
	}
	b.edited()
	if evaluate[bool](b, "'pwned' in window") {
		t.Error("it ran on a preview")
	}
	b.quiet()
}

// Without scripts every page can be read, and every form works.
func TestWithoutScripts(t *testing.T) {
	s := newStage(t)
	b := open(t, s.handler)
	if b == nil {
		return
	}
	b.script(false)
	read := func(texts ...string) {
		t.Helper()
		body, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS("body")))
		if err != nil {
			t.Fatal(err)
		}
		want(t, body, texts...)
	}
	b.visit("/ui/runs")
	read("notes_digest", "Load the page again", "!Press ?", "Times are UTC")
	b.do(chromedp.Click(chromedp.CSS("tbody tr a")), chromedp.WaitVisible(chromedp.CSS(".facts")))
	read("Outcome", "Calls")
	b.visit("/ui/runs/" + runID(0))
	b.do(chromedp.Click(chromedp.CSS("[data-denied]:nth-child(4) a")), chromedp.WaitVisible(chromedp.CSS(".edits")))
	read("add to line 2 of")
	b.visit("/ui/agents/notes_digest/policy")
	b.do(chromedp.Click(chromedp.CSS("button[value=preview]")), chromedp.WaitVisible(chromedp.CSS("#change")))
	read("It takes away")
	b.do(chromedp.Click(chromedp.CSS("button[value=save]")), chromedp.WaitVisible(chromedp.CSS(".message.good")))
	b.visit("/ui/audit?decision=deny")
	b.do(chromedp.Click(chromedp.CSS(".records summary")), chromedp.WaitVisible(chromedp.CSS(".records .fields")))
	b.visit("/ui/log")
	b.do(chromedp.Click(chromedp.CSS("main button")), chromedp.WaitVisible(chromedp.CSS("#verified")))
	read("It is what was recorded")
	b.visit("/")
	read("What is denied most", "!Live")
	b.do(chromedp.Click(chromedp.CSS("form[action='/ui/launch'] button")), chromedp.WaitVisible(chromedp.CSS("form.launch")))
	b.do(chromedp.SetValue(chromedp.CSS("textarea[name=json]"), `{"a": 1}`),
		chromedp.Click(chromedp.CSS("form.launch button")))
	id := <-s.begun
	b.do(chromedp.WaitVisible(chromedp.CSS("a[href='/ui/audit?run=" + id + "']")))
	s.finish(t, id, &launcher.Report{})
}

// A list with little to say beside the names breaks none of them, while there is
// room for it.
func TestNamesStandOnOneLine(t *testing.T) {
	s := newStage(t)
	s.log.add(runID(900), "repo_janitor", now, nil, audit.Event{
		Kind: audit.KindRunFailed, Outcome: "failed",
		Message: strings.Repeat("a message that is long ", 20),
	})
	b := look(t, s.handler)
	if b == nil {
		return
	}
	for _, width := range []int64{1180, 900} {
		b.size(width, 760)
		b.visit("/ui/runs")
		const lines = "[...document.querySelectorAll('[data-open]')].map(a => a.getClientRects().length)"
		if n := evaluate[[]int](b, lines); len(n) == 0 || slices.Max(n) > 1 {
			t.Errorf("%d wide: the names have %d lines", width, n)
		}
		if wide := evaluate[int](b, "document.documentElement.scrollWidth"); wide > int(width) {
			t.Errorf("the list is %d wide on %d", wide, width)
		}
	}
}
