package console

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
)

// storedRuns is how many runs the log of the benchmarks has: RLP_SOAK=1 makes it
// the number that the target is about.
func storedRuns() int {
	if os.Getenv("RLP_SOAK") != "" {
		return 100_000
	}
	if testing.Short() {
		return 500
	}
	return 10_000
}

// record puts n runs into the log of a home as launches do, some thousand at a
// time.
func record(t testing.TB, home string, s *kb.Store, n int) {
	t.Helper()
	dir, err := kb.JournalDir(home, kb.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		head := audit.Head{
			RunID:   fmt.Sprintf("0190b1d2-7c4e-7a55-8f00-%012d", i),
			TraceID: "c1794453bf3e4f838760209632c4c693", Tenant: kb.DefaultTenant, Agent: []string{
				"notes_digest",
				"tree_audit",
			}[i%2], BundleDigest: "2e8e442a",
		}
		j, err := journal.Create(journal.Options{Dir: dir, Head: head})
		if err == nil {
			err = j.Event(&audit.Event{Kind: audit.KindRunStart, Effective: heldByNotes()})
		}
		if err == nil {
			err = j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok", Usage: map[string]int64{
				"allowed": 38,
				"denied":  5,
			}})
		}
		if err == nil {
			err = j.Close()
		}
		if err == nil && (i%2000 == 1999 || i == n-1) {
			_, err = s.Ingest(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkPages is a page from its request to its last byte, and what a person
// waits for: from the beginning of a navigation to the first paint in a browser.
func BenchmarkPages(b *testing.B) {
	host := withStored(b, storedRuns())
	h := as(New(Options{Runs: noRuns{}, Host: host, Now: time.Now}), operator())
	for name, path := range map[string]string{
		"home": "/", "newest": "/ui/runs", "older": "/ui/runs?before=0190b1d2-7c4e-7a55-8f00-000000005000",
		"audit": "/ui/audit",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
				if w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
	b.Run("paint", func(b *testing.B) {
		tab := open(b, h)
		if tab == nil {
			return
		}
		paint := 0.0
		tab.visit("/ui/log") // what is loaded once is loaded
		for b.Loop() {
			tab.visit("/ui/runs")
			tab.until("performance.getEntriesByName('first-contentful-paint').length > 0")
			paint += evaluate[float64](tab, "performance.getEntriesByName('first-contentful-paint')[0].startTime")
		}
		b.ReportMetric(paint/float64(b.N), "paint-ms")
	})
}

// A storedHost is one whose log is a store.
type storedHost struct {
	*fakeHost
	store *kb.Store
}

// Log implements [service.Host].
func (h *storedHost) Log(context.Context, *service.Caller) (service.Log, error) { return h.store, nil }

func withStored(b testing.TB, n int) *storedHost {
	b.Helper()
	home := filepath.Join(b.TempDir(), "home")
	s, err := kb.Open(b.Context(), kb.Options{Home: home})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	record(b, home, s, n)
	return &storedHost{newFakeHost(b), s}
}
