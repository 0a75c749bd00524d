package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// answering is a server of this host, and what of its address a capability names.
func answering(t *testing.T, h http.HandlerFunc) (url, place string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, strings.TrimPrefix(s.URL, "http://")
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, text) }
}

// A server behind rlp reaches the hosts that are granted and no others, and the
// services inside, as a program of rlp run does; each connection is in the log.
func TestAWrappedServerReachesWhatIsGranted(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	granted, place := answering(t, says("hello from here"))
	other, _ := answering(t, says("hello from there"))
	open, cs := w.client("rich"), w.client("rich", behind, "--audit-allow", "--allow", "network:http:"+place)
	port := other[strings.LastIndex(other, ":"):]
	for url, want := range map[string]string{
		granted: "200 OK hello from here", other: "refused: ", "http://localhost" + port: "refused: ",
		"http://example.com/": "refused: ", "http://198.51.100.1/": "refused: ", "http://host.rlp/mcp": "405 ",
	} {
		if said, _ := w.says(cs, "fetch", url); !strings.HasPrefix(said, want) {
			t.Errorf("%s: %q, want %q", url, said, want)
		}
	}
	for url, want := range map[string]string{granted: "hello from here", other: "hello from there"} {
		if said, _ := w.says(open, "fetch", url); !strings.HasSuffix(said, want) {
			t.Errorf("control: without rlp %s: %q", url, said)
		}
	}
	if err := cs.Close(); err != nil {
		t.Errorf("it ended with %v: %s", err, &w.said)
	}
	log := start(t, w.env, "rlp", "audit", "list", "--json").stdout
	for _, want := range []string{
		`"cap":"net.connect","op":"connect","target":"` + granted + `"`, `"target":"http://198.51.100.1:80"`,
		`"target":"https://example.com:443"`, `"verb":"connect"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	if r := start(t, w.env, "rlp", "audit", "verify"); r.code != 0 {
		t.Errorf("%+v", r)
	}
}

// What an edit takes while a server is called is taken: its connection is cut, and
// the tool that it takes is refused from the next call on.
func TestAnEditNarrowsAWrappedServer(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	begun, over := make(chan struct{}), make(chan time.Time, 1)
	url, place := answering(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(rw, "begun ")
		_ = http.NewResponseController(rw).Flush()
		close(begun)
		<-r.Context().Done()
		over <- time.Now()
	})
	cs := w.client("rich", behind, "--allow", "network:http:"+place)
	said := make(chan string, 1)
	go func() {
		text, _ := w.says(cs, "fetch", url)
		said <- text
	}()
	<-begun
	w.file("caps/overrides/hub.toml", "[capabilities]\nnet = []\n[deny]\ntools = [\"mcp:hub/poison\"]\n")
	edited := time.Now()
	if text := <-said; !strings.HasPrefix(text, "broken: begun ") {
		t.Errorf("%q", text)
	}
	if took := (<-over).Sub(edited); took > time.Second {
		t.Errorf("cut after %v", took)
	}
	if text, failed := w.says(cs, "poison", ""); !failed || !strings.Contains(text, "tool_hidden") {
		t.Errorf("%q", text)
	}
	if text, failed := w.says(cs, "echo", "x"); failed {
		t.Errorf("%q", text)
	}
}

// The home of a server lasts from session to session, so that tokens do, and what
// takes effect later outside of the sandbox is not written in what it is granted.
//
//rlp:holds N20
func TestWhatAWrappedServerLeaves(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	work := filepath.Join(w.work, "repo")
	hooks := filepath.Join(work, ".git", "hooks")
	if err := errors.Join(os.MkdirAll(hooks, 0o700), os.MkdirAll(filepath.Join(work, ".vscode"), 0o700)); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(w.home, "work", "hub", "home", "token")
	args := []string{behind, "--allow", "fs:write:" + work}
	cs := w.client("rich", args...)
	if said, _ := w.says(cs, "write", token); said != "written" {
		t.Fatalf("%s", said)
	}
	for name, want := range map[string]string{
		".git/hooks/post-checkout": "refused", ".vscode/tasks.json": "refused", ".envrc": "refused", "beside": "written",
	} {
		if said, _ := w.says(cs, "write", filepath.Join(work, name)); !strings.HasPrefix(said, want) ||
			exists(filepath.Join(work, name)) != (want == "written") {
			t.Errorf("%s: %s", name, said)
		}
	}
	if err := cs.Close(); err != nil {
		t.Errorf("it ended with %v: %s", err, &w.said)
	}
	if said, _ := w.says(w.client("rich", behind), "read", token); said != "written" {
		t.Errorf("the next session: %s", said)
	}
	other := w.started(rlpWrap(w, "other", "rich"))
	if said, _ := w.says(other, "read", token); !strings.HasPrefix(said, "refused") {
		t.Errorf("another server: %s", said)
	}
	if said, _ := w.says(w.client("rich"), "write", filepath.Join(hooks, "post-checkout")); said != "written" {
		t.Errorf("control: without rlp: %s", said)
	}
}
