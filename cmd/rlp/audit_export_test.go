package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
)

// recorder is a home whose journal the test writes.
func recorder(t *testing.T) (string, *journal.Journal) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	if _, err := home.Open(dir, kb.DefaultTenant); err != nil {
		t.Fatal(err)
	}
	at, err := kb.JournalDir(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Create(journal.Options{Dir: at, Head: audit.Head{
		RunID: "0198d2c4-7f1e-7000-8000-00000000000a", TraceID: strings.Repeat("ab", 16), Tenant: kb.DefaultTenant,
		Agent: "writer",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	if err := j.Event(&audit.Event{Kind: audit.KindRunStart}); err != nil {
		t.Fatal(err)
	}
	return dir, j
}

// write adds n records to a journal, each of another target.
func write(t *testing.T, j *journal.Journal, from, n int) {
	t.Helper()
	var names [3]audit.Name
	for i, w := range []string{"fs.read", "path_open", "granted"} {
		name, err := j.Intern(w)
		if err != nil {
			t.Fatal(err)
		}
		names[i] = name
	}
	for i := range n {
		d := audit.Decision{Cap: names[0], Op: names[1], Reason: names[2], Keep: true, Target: fmt.Sprintf("/data/%d",
			from+i)}
		if _, err := j.Decide(&d); err != nil {
			t.Fatal(err)
		}
	}
}

// An export that follows is killed wherever it happens to be, again and again:
// the file that it writes to holds each record once, none is missing, and it is
// what the log says.
func TestFollowingExportIsKilled(t *testing.T) {
	dir, j := recorder(t)
	out, cursor := filepath.Join(dir, "..", "out"), filepath.Join(dir, "..", "cursor")
	args := []string{"--home", dir, "audit", "export", "--cursor", cursor, "--output", out}
	kills := 5
	if testing.Short() {
		kills = 2
	}
	random := rand.New(rand.NewPCG(6, 6))
	for i := range kills {
		write(t, j, 400*i, 400)
		began := sizeOf(out)
		c := exec.Command("rlp", append(args, "--follow")...)
		var said bytes.Buffer
		c.Stderr = &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() { gone <- c.Wait() }()
		// It has written so much of what is new, or a little of it, or nothing yet.
		more := random.Int64N(3) * random.Int64N(60_000)
		for tick := time.NewTicker(time.Millisecond); sizeOf(out) < began+more; {
			select {
			case err := <-gone:
				t.Fatalf("it ended by itself: %v: %s", err, said.String())
			case <-tick.C:
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-gone
	}
	if err := j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("rlp", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	want, err := exec.Command("rlp", "--home", dir, "audit", "list", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(want, []byte("\n")); n != 400*kills+2 || !bytes.Equal(got, want) {
		t.Errorf("the log has %d records, the file %d lines", n, bytes.Count(got, []byte("\n")))
	}
}

// Who has nothing but an exported file makes the root of the log's tree of it,
// by RFC 6962 alone, and any change of a byte makes another.
func TestExportedLinesMakeTheRoot(t *testing.T) {
	dir, j := recorder(t)
	write(t, j, 0, 700)
	if err := j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "..", "out")
	said, err := exec.Command("rlp", "--home", dir, "audit", "export", "--output", out, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Size int
		Root string
	}
	if err := json.Unmarshal(said, &report); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	if root := rootOf(lines); len(lines) != report.Size || len(lines) != 702 ||
		hex.EncodeToString(root[:]) != report.Root {
		t.Errorf("the tree of %d lines has the root %x, rlp says %s of %d", len(lines), root, report.Root, report.Size)
	}
	lines[350][20] ^= 1
	if root := rootOf(lines); hex.EncodeToString(root[:]) == report.Root {
		t.Error("a changed line has the same root")
	}
}

// rootOf is the Merkle tree hash of RFC 6962, section 2.1.
func rootOf(lines [][]byte) [32]byte {
	if len(lines) == 1 {
		return sha256.Sum256(append([]byte{0}, lines[0]...))
	}
	k := 1
	for 2*k < len(lines) {
		k *= 2
	}
	left, right := rootOf(lines[:k]), rootOf(lines[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Spans go where OpenTelemetry's own settings say, with the headers that they
// say, as records are made; interrupting ends it, and nothing is sent twice.
func TestSpansAreFollowed(t *testing.T) {
	got := make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(body)
	}))
	defer s.Close()
	dir, j := recorder(t)
	cursor := filepath.Join(dir, "..", "cursor")
	c := exec.Command("rlp", "--home", dir, "audit", "export", "--format", "otlp", "--cursor", cursor, "--follow")
	c.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+s.URL+"/base",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20token")
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill() //nolint:errcheck // it has ended
	next := func(want string) {
		t.Helper()
		select {
		case body := <-got:
			if !strings.HasPrefix(body, "/base/v1/traces Bearer token ") || !strings.Contains(body, want) {
				t.Errorf("%q, without %s", body, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing came: %s", text.String())
		}
	}
	write(t, j, 1, 1)
	next("/data/1")
	write(t, j, 2, 1)
	next("/data/2")
	if err := j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	next("invoke_agent writer")
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil || !strings.Contains(text.String(), "exported 4 records") ||
		strings.Contains(text.String(), "token") {
		t.Errorf("%v: %s", err, text.String())
	}
	again := exec.Command("rlp", "--home", dir, "audit", "export", "--format", "otlp", "--cursor", cursor, "--output",
		s.URL)
	if text, err := again.CombinedOutput(); err != nil || len(got) != 0 {
		t.Errorf("%v: %s; %d more requests", err, text, len(got))
	}
}
