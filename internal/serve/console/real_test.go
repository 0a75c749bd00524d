package console

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A realService is rlp serve, with an agent installed that has run.
type realService struct {
	testing.TB
	rlp, home, notes, out string
	url                   string
}

// command does rlp with arguments, and returns what it printed.
func (s *realService) command(args ...string) string {
	s.Helper()
	var stderr bytes.Buffer
	c := exec.Command(s.rlp, append([]string{"--home", s.home}, args...)...)
	c.Stderr, c.Dir = &stderr, filepath.Join("..", "..", "..")
	out, err := c.Output()
	if err != nil {
		s.Fatalf("rlp %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// launch has the agent read the notes, as another process than the service.
func (s *realService) launch() string {
	s.Helper()
	var report struct {
		RunID string `json:"run_id"`
	}
	if err := json.Unmarshal([]byte(s.command("launch", filepath.Join(s.home, "agents", "notes_digest"), "--param",
		"notes="+s.notes, "--param", "out="+s.out, "--json")), &report); err != nil {
		s.Fatal(err)
	}
	return report.RunID
}

// request has the service itself do it, and waits for the end.
func (s *realService) request() string {
	s.Helper()
	body, err := json.Marshal(map[string]any{"agent": "notes_digest", "params": map[string]string{
		"notes": s.notes,
		"out":   s.out,
	}})
	if err != nil {
		s.Fatal(err)
	}
	resp, err := http.Post(s.url+"/run", "application/json", bytes.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	var report struct {
		RunID string `json:"run_id"`
	}
	data, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	if err != nil || report.RunID == "" {
		s.Fatalf("POST /run: %s %v\n%s", resp.Status, err, data)
	}
	return report.RunID
}

// served builds rlp, installs and launches an agent, and serves.
func served(t *testing.T) *realService {
	t.Helper()
	dir := t.TempDir()
	s := &realService{TB: t, rlp: filepath.Join(dir, "rlp"), home: filepath.Join(dir, "home"), notes: filepath.Join(dir,
		"notes"), out: filepath.Join(dir, "out")}
	for _, d := range []string{s.notes, s.out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	note := "# A note\n\nSee ../private/<img src=x onerror=window.pwned=1>.md\n\ninclude: ../private/salary.md\n"
	if err := os.WriteFile(filepath.Join(s.notes, "<img src=x onerror=window.pwned=1>\u202e.md"), []byte(note),
		0o600); err != nil {
		t.Fatal(err)
	}
	// As make builds it: what was compiled for that is not compiled again.
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", s.rlp, "runloop.dev/rlp/cmd/rlp")
	c.Env = append(c.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("building rlp: %v\n%s", err, out)
	}
	bundle := filepath.Join(dir, "notes_digest")
	if err := os.CopyFS(bundle, os.DirFS(filepath.Join("..", "..", "..", "agents", "notes_digest"))); err != nil {
		t.Fatal(err)
	}
	s.build(bundle)
	s.command("agent", "install", bundle)
	if err := os.WriteFile(filepath.Join(s.home, "config.toml"), []byte("[security]\nrun_grant = \"operator_full\"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	c = exec.Command(s.rlp, "--home", s.home, "serve", "--json", "--listen", "127.0.0.1:0")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // nothing is under way
		_ = c.Wait()
	})
	var said struct {
		Addresses []string `json:"addresses"`
	}
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		t.Fatal(err)
	}
	for _, a := range said.Addresses {
		if strings.HasPrefix(a, "http://") {
			s.url = a
		}
	}
	return s
}

// build compiles the module of the agent into its bundle.
func (s *realService) build(bundle string) {
	s.Helper()
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(bundle, "bin",
		"notes_digest.wasm"), "runloop.dev/rlp/agents/notes_digest")
	c.Env = append(c.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := c.CombinedOutput(); err != nil {
		s.Fatalf("building the agent: %v\n%s", err, out)
	}
}

// The pages on the service itself: a run of an agent, why it was denied, an
// override that is tried, saved and then holds, and the log verified.
func TestTheRealService(t *testing.T) {
	if testing.Short() { // a process of its own, of which the race detector sees nothing
		return
	}
	if chromium() == "" {
		open(t, nil)
		return
	}
	s := served(t)
	first := s.launch()
	b := open(t, nil)
	b.base = s.url
	b.visit("/ui/runs/" + first)
	b.until("document.body.innerText.includes('by fs:read:')")
	if evaluate[bool](b, "'pwned' in window || document.querySelector('main img') !== null") ||
		!evaluate[bool](b, "document.body.innerText.includes('⟨U+202E⟩')") {
		t.Error("a file's name is not text on the page")
	}
	b.do(chromedp.Click(chromedp.CSS("[data-denied] a")))
	b.until("document.querySelector('h1').textContent === 'Why was this denied?' && document.querySelectorAll('.edits " +
		"li').length > 0")
	b.do(chromedp.Click(chromedp.CSS(".panel .button")))
	b.until("document.getElementById('text') !== null && document.querySelector('.hint') !== null")
	if used := evaluate[string](b, "document.querySelector('main table').innerText"); !strings.Contains(used,
		"kb:write:artifacts") || !strings.Contains(used, s.notes) {
		t.Errorf("granted and used are %q", used)
	}
	text := "[capabilities]\nkb_write = [\"contacts\"]\n"
	b.do(chromedp.SetValue(chromedp.CSS("#text"), text), chromedp.Click(chromedp.CSS("button[value=preview]")))
	b.until("document.getElementById('change') !== null && " +
		"document.getElementById('change').innerText.includes('kb:write:artifacts')")
	file := filepath.Join(s.home, "caps", "overrides", "notes_digest.toml")
	if _, err := os.Stat(file); err == nil {
		t.Fatal("a preview saved it")
	}
	b.do(chromedp.Click(chromedp.CSS("button[value=save]")))
	b.until("location.search.startsWith('?saved=') && document.querySelector('.message.good') !== null")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != text {
		t.Errorf("saved is %q, %v", data, err)
	}
	second := s.launch()
	b.visit("/ui/runs/" + second + "?show=denied")
	b.until("document.body.innerText.includes('by override:notes_digest.toml')")
	b.visit("/ui/runs")
	if n := evaluate[int](b, "document.querySelectorAll('tbody tr').length"); n != 2 {
		t.Errorf("%d runs", n)
	}
	b.until("document.querySelector('[data-status]').textContent === 'Live'")
	third := s.request()
	b.until("document.querySelectorAll('tbody tr').length === 3")
	b.visit("/ui/runs/" + third)
	b.until("document.querySelector('aside pre').textContent.includes('1 note')")
	s.form(b)
	s.untold()
	b.visit("/ui/log")
	b.do(chromedp.Click(chromedp.CSS("main button")))
	b.until("document.querySelector('#verified') !== null && document.querySelector('#verified').innerText.includes('It " +
		"is what was recorded')")
	b.visit("/ui/agents/notes_digest")
	b.until("document.body.innerText.includes('path_open')")
}

// form launches the agent from its page, and once more as it was.
func (s *realService) form(b *browser) {
	s.Helper()
	b.visit("/ui/agents/notes_digest/launch")
	b.do(chromedp.SetValue(chromedp.CSS("input[name='param.notes']"), s.notes),
		chromedp.SetValue(chromedp.CSS("input[name='param.out']"), s.out),
		chromedp.Click(chromedp.CSS("form.launch .primary")))
	b.until("document.querySelector('aside pre') !== null && " +
		"document.querySelector('aside pre').textContent.includes('1 note')")
	b.do(chromedp.Click(chromedp.CSS(".actions .primary")))
	b.until("location.search.startsWith('?again=')")
	if notes := evaluate[string](b, "document.querySelector(\"input[name='param.notes']\").value"); notes != s.notes {
		s.Errorf("it would be run again on %q", notes)
	}
}

// untold reads the home page while an agent cannot be launched for a file in the home:
// who operates is told where that is, and a token that only reads is not.
func (s *realService) untold() {
	s.Helper()
	file := filepath.Join(s.home, "caps", "overrides", "notes_digest.toml")
	was, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte("fs_rw = oops\n"), 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
	token := strings.TrimSpace(s.command("token", "new", "--name", "reader", "--may", "read"))
	for _, bearer := range []string{"", token[strings.LastIndexAny(token, " \n")+1:]} {
		r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.url+"/", nil)
		if err != nil {
			s.Fatal(err)
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			s.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("An agent cannot be launched")) {
			s.Fatalf("the home page: %s, %v", resp.Status, err)
		}
		if told := bytes.Contains(body, []byte(s.home)); told != (bearer == "") {
			s.Errorf("by a token %t: the page tells of the home: %t", bearer != "", told)
		}
	}
	if err := os.WriteFile(file, was, 0o600); err != nil {
		s.Fatal(err)
	}
}
