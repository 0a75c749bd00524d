package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"runloop.dev/rlp/launcher"
)

// A browser is one tab of a real one, on the pages of a server.
type browser struct {
	testing.TB
	ctx  context.Context
	base string

	mu   sync.Mutex
	said []string // what it complained of
}

// chromium is the browser of this machine; "" where .ci/setup has not put one.
func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// look opens a tab of which no more is judged than what the browser shows, lays out
// or runs: under the race detector, which sees nothing of that, it is nil.
func look(t testing.TB, h http.Handler) *browser {
	t.Helper()
	if testing.Short() {
		return nil
	}
	return open(t, h)
}

// open opens a tab, on h if there is one; nil where there is no browser, and the test is smaller.
func open(t testing.TB, h http.Handler) *browser {
	t.Helper()
	path := chromium()
	if path == "" {
		t.Log("chromium is not installed (.ci/setup installs it): pages are not tried in a browser")
		return nil
	}
	base := ""
	if h != nil {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		base = srv.URL
	}
	opts := append([]chromedp.ExecAllocatorOption{}, chromedp.Headless, chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck, chromedp.DisableGPU,
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 860),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.WSURLReadTimeout(time.Minute))
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // which root has none of
	}
	alloc, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{TB: t, ctx: ctx, base: base}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, struct{}{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// hear keeps what the browser complains of, such as a policy that was broken.
func (b *browser) hear(ev any) {
	if e, ok := ev.(*log.EventEntryAdded); ok && e.Entry.Level == log.EntryLevelError {
		b.mu.Lock()
		b.said = append(b.said, e.Entry.Text+" "+e.Entry.URL)
		b.mu.Unlock()
	}
}

// quiet fails if the browser complained since the last time.
func (b *browser) quiet() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.said {
		b.Errorf("the browser says: %s", s)
	}
	b.said = nil
}

// patience bounds one step on a machine that is busy.
const patience = 40 * time.Second

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for i, step := range steps {
		if err := chromedp.Do(ctx, step); err != nil {
			b.Fatalf("step %d: %v\n%s", i, err, b.text())
		}
	}
}

func (b *browser) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return s
}

func evaluate[T any](b *browser, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%.80s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression))
		if err == nil {
			return
		}
		if ctx.Err() != nil { // else the page went to another meanwhile
			b.Fatalf("it never is so that %s: %v\n%s", expression, err, b.text())
		}
	}
}

func (b *browser) visit(path string) {
	b.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

func (b *browser) keys(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// dark, phone and script set what the browser is like.
func (b *browser) dark(on bool) {
	b.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	p := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{
		Name:  "prefers-color-scheme",
		Value: scheme,
	}, {Name: "prefers-reduced-motion", Value: "reduce"}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, p); err != nil {
		b.Fatal(err)
	}
}

func (b *browser) size(width, height int64) {
	b.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

func (b *browser) script(on bool) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: !on}); err != nil {
		b.Fatal(err)
	}
}

// The way from a run to what would change its denial, by keys alone, and to an
// override that is tried and saved.
func TestFromADenialToAnOverride(t *testing.T) {
	s := newStage(t)
	b := open(t, s.handler)
	if b == nil {
		return
	}
	b.visit("/ui/runs?agent=notes_digest")
	b.keys("j")
	b.keys("j")
	b.keys("k")
	if n := evaluate[int](b, "document.querySelectorAll('.here').length"); n != 1 {
		t.Errorf("%d rows are chosen", n)
	}
	b.keys(kb.Enter)
	b.until("location.pathname.startsWith('/ui/runs/') && document.querySelector('.calls') !== null")
	b.keys("d")
	b.until("document.activeElement.closest('[data-denied]') !== null")
	b.keys("d")
	b.keys(kb.Enter)
	b.until("document.querySelector('h1').textContent === 'Why was this denied?'")
	b.until("document.body.innerText.includes('add to line 2 of')")
	b.do(chromedp.Click(chromedp.CSS(".panel .button")))
	b.until("location.pathname.endsWith('/policy') && document.querySelector('.hint') !== null")
	b.keys("/")
	b.until("document.activeElement.id === 'text'")
	b.keys("# mine\n")
	b.do(chromedp.Click(chromedp.CSS("button[value=preview]")))
	b.until("document.activeElement.id === 'change'")
	if got := string(s.trials[len(s.trials)-1].Text); !strings.Contains(got, "# mine") {
		t.Errorf("tried was %q", got)
	}
	b.do(chromedp.Click(chromedp.CSS("button[value=save]")))
	b.until("location.search === '?saved=" + digestSaved + "' && document.querySelector('.message.good') !== null")
	b.quiet()
}

func TestRunsAreLive(t *testing.T) {
	s := newStage(t)
	b := open(t, s.handler)
	if b == nil {
		return
	}
	b.visit("/ui/runs")
	b.until("document.querySelector('[data-status]').textContent === 'Live'")
	id := s.submit(t, "tree_audit")
	row := fmt.Sprintf("document.querySelector('a[href=\"/ui/runs/%s\"]')", id)
	b.until(row + " !== null")
	b.until(row + ".closest('tr').textContent.includes('running')")
	b.do(chromedp.Evaluate[chromedp.Void](row + ".click()"))
	b.until("document.querySelector('button.danger') !== null && document.querySelector('[data-status]').textContent " +
		"=== 'Live'")
	s.finish(t, id, &launcher.Report{Stdout: "done with it"})
	b.until("document.body.innerText.includes('done with it') && document.querySelector('button.danger') === null")
	b.quiet()
}

func TestKeys(t *testing.T) {
	s := newStage(t)
	b := open(t, s.handler)
	if b == nil {
		return
	}
	b.visit("/ui/runs")
	b.keys(kb.Tab)
	b.until("document.activeElement.className === 'skip' && document.activeElement.getBoundingClientRect().width > 50")
	b.keys(kb.Enter)
	b.until("location.hash === '#main'")
	b.keys("?")
	b.until("document.getElementById('keys').open")
	b.keys(kb.Escape)
	b.until("!document.getElementById('keys').open")
	b.keys("/")
	b.until("document.activeElement.id === 'q'")
	b.keys("jg?")
	// which the driver types, whatever the page says
	got := strings.TrimPrefix(evaluate[string](b, "document.activeElement.value"), "/")
	if got != "jg?" {
		t.Errorf("in a field, keys are letters: %q", got)
	}
	b.keys(kb.Escape)
	b.keys("j")
	if outline := evaluate[string](b,
		"getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth"); outline != "solid3px" {
		t.Errorf("the focus is seen as %q", outline)
	}
	for key, path := range map[string]string{
		"a": "/ui/agents", "s": "/ui/audit", "l": "/ui/log", "n": "/ui/lanes",
		"r": "/ui/runs", "h": "/",
	} {
		b.keys("g" + key)
		b.until(fmt.Sprintf("location.pathname === %q && document.readyState === 'complete'", path))
	}
	b.visit("/ui/audit")
	b.keys("j")
	b.keys(kb.Enter)
	b.until("document.querySelector('.records details[open] .fields') !== null")
	b.quiet()
}
