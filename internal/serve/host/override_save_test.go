package host

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/launcher/ask"
)

// Of several who edited the same override, one saves: who comes second would
// otherwise give back what the first took away, and be told that it narrows.
func TestOneOfSeveralSavesAnOverride(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "narrowed", `kb_write = ["notes", "drafts"]`+"\n", hosttest.Importing(t))
	try := func(trial ask.Trial) (*ask.Override, error) {
		return h.TryOverride(t.Context(), h.who, "narrowed", trial)
	}
	text := []byte("[capabilities]\nkb_write = [\"notes\", \"drafts\"]\n")
	for round := range 10 {
		if _, err := try(ask.Trial{Text: text, Save: true}); err != nil {
			t.Fatal(err)
		}
		now, err := h.Override(t.Context(), h.who, "narrowed")
		if err != nil {
			t.Fatal(err)
		}
		var saved atomic.Int32
		var winner atomic.Pointer[[]byte]
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				mine := fmt.Appendf(nil, "[capabilities]\nkb_write = [\"notes\"]\n[limits]\nwall_time_ms = %d\n", 1000+10*round+i)
				if _, err := try(ask.Trial{Text: mine, Save: true, Narrow: true, Was: now.Digest}); err == nil {
					saved.Add(1)
					winner.Store(&mine)
				}
			})
		}
		all.Wait()
		if saved.Load() != 1 {
			t.Fatalf("round %d: %d of 4 saved what each made of the same override", round, saved.Load())
		}
		if is, err := os.ReadFile(now.Path); err != nil || !bytes.Equal(is, *winner.Load()) {
			t.Fatalf("round %d: %v, and what is there is not what was saved: %s", round, err, is)
		}
	}
}
