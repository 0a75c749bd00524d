package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// A report that is sent piece by piece is the one that would be sent whole, letter
// by letter, whatever was printed and returned.
func TestReportsByPieces(t *testing.T) {
	a := &responder{opt: &Options{Now: time.Now}}
	a.zips.New = func() any { return gzip.NewWriter(nil) }
	for name, text := range map[string]string{
		"plain":   strings.Repeat("x", 10*pieceOfText+1),
		"control": strings.Repeat("\x01\n\"\\<>&\u2028", 5000),
		"letters": strings.Repeat("aé€𝄞", 4000),
		"shifted": "a" + strings.Repeat("𝄞", 8000),
		"bytes":   strings.Repeat("\xff\xc3\x80\x80\x80\x80\x80", 3000),
		"broken":  strings.Repeat("x", pieceOfText-2) + strings.Repeat("\xf0\x9d\x84", 4000),
	} {
		for _, r := range []*launcher.Report{
			{Stdout: text, Stderr: "end", Result: json.RawMessage(`{"stdout":"","stderr":""}`)},
			{Stderr: text, Message: `"stdout":"","stderr":""`},
			{Stdout: text, Stderr: text},
		} {
			want, err := encoded(r)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			(&out{a, w, httptest.NewRequest(http.MethodGet, "/", nil)}).report(r, func(r *launcher.Report) any { return r })
			if got := w.Body.Bytes(); !bytes.Equal(got, want) || w.Code != http.StatusOK ||
				w.Header().Get("Content-Length") != "" {
				t.Errorf("%s: %d bytes of %d: %.200q", name, len(got), len(want), got)
			}
			zipped := httptest.NewRequest(http.MethodGet, "/", nil)
			zipped.Header.Set("Accept-Encoding", "gzip")
			w = httptest.NewRecorder()
			(&out{a, w, zipped}).report(r, func(r *launcher.Report) any { return r })
			if got := unzipped(t, w.Body); !bytes.Equal(got, want) {
				t.Errorf("%s: compressed, %d bytes of %d", name, len(got), len(want))
			}
		}
	}
}

// Who reads no reports has no more of them than its share: its further runs wait,
// those of others do not, and all of it is sent once it reads.
func TestReportsThatNobodyReads(t *testing.T) {
	const size = 100 << 10
	h := printing(size)
	withService(t, h, Options{Patience: time.Hour}, service.Options{Workers: 4, Queue: 100, Unread: 16 * size},
		func(t *testing.T, p *pipes, s *service.Service) {
			ask := func(who string) *piped { return p.dial(t, postRun(who)) }
			whole := func(c *piped) error {
				resp, err := http.ReadResponse(c.in, nil)
				if err != nil {
					return err
				}
				var r launcher.Report
				if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
					return err
				}
				if len(r.Stdout) != size || resp.StatusCode != http.StatusOK {
					return fmt.Errorf("%s, %d bytes", resp.Status, len(r.Stdout))
				}
				return nil
			}
			var mine []*piped
			for range 20 {
				mine = append(mine, ask(""))
			}
			synctest.Wait()
			if l := s.Load(); l.Done < 4 || l.Done > 8 || l.Running != 0 || l.Waiting != 20-int(l.Done) {
				t.Fatalf("of 20 runs, of a share of four reports: %+v", l)
			}
			if err := whole(ask("other")); err != nil {
				t.Errorf("another caller: %v", err)
			}
			read := make(chan error)
			for _, c := range mine {
				go func() { read <- whole(c) }()
			}
			for range mine {
				if err := <-read; err != nil {
					t.Errorf("one that was read late: %v", err)
				}
			}
		})
}

// When all callers together have too many, who has most loses the oldest, with its
// connection: no later answer is taken for it.
func TestReportsBeyondAllAreCutOff(t *testing.T) {
	const size = 100 << 10
	h := printing(size)
	withService(t, h, Options{Patience: time.Hour}, service.Options{Workers: 4, Queue: 100, Unread: 2*size + size/2},
		func(t *testing.T, p *pipes, _ *service.Service) {
			first := p.dial(t, postRun(""))
			synctest.Wait()
			second := p.dial(t, postRun("other"))
			synctest.Wait()
			third := p.dial(t, postRun("launcher"))
			synctest.Wait()
			resp, err := http.ReadResponse(first.in, nil)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
			}
			if err == nil {
				t.Error("the first was sent whole")
			}
			for _, c := range []*piped{second, third} {
				if resp, said, _ := c.answer(t); resp.StatusCode != http.StatusOK || len(said) < size {
					t.Errorf("%s, %d bytes", resp.Status, len(said))
				}
			}
		})
}

// printing is a host whose agents print so much.
func printing(size int) *host {
	return &host{launch: func(_ context.Context, c *service.Caller, q *service.Request, b service.Begin) (*launcher.Report,
		error,
	) {
		r := reportOf(c, q, b, launcher.OK)
		r.Stdout = strings.Repeat("x", size)
		return r, nil
	}}
}

// postRun is a request for a run.
func postRun(who string) string {
	const body = `{"agent":"a"}`
	return fmt.Sprintf("POST /run HTTP/1.1\r\nHost: x\r\nX-Who: %s\r\nContent-Type: application/json\r\nContent-Length: "+
		"%d\r\n\r\n%s", who, len(body), body)
}

// unzipped is what was compressed.
func unzipped(t *testing.T, from io.Reader) []byte {
	t.Helper()
	z, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
