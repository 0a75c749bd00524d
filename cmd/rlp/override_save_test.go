//go:build !slim

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// Of several who edited the same override, one saves: who comes second would
// otherwise give back what the first took away, and be told that it narrows.
func TestOneOfSeveralSavesAnOverride(t *testing.T) {
	h := testingHost(t, "")
	h.install(t, "narrowed", `kb_write = ["notes", "drafts"]`+"\n", importing(t))
	agent := filepath.Join(h.home, "agents", "narrowed")
	ask := func(stdin []byte, args ...string) (overrideDocument, error) {
		var d overrideDocument
		p, err := h.Ask(t.Context(), h.who, stdin, append([]string{"caps", "override", agent}, args...)...)
		if err == nil {
			err = json.Unmarshal(p, &d)
		}
		return d, err
	}
	text := []byte("[capabilities]\nkb_write = [\"notes\", \"drafts\"]\n")
	for round := range 10 {
		if _, err := ask(text, "-", "--save"); err != nil {
			t.Fatal(err)
		}
		now, err := ask(nil)
		if err != nil {
			t.Fatal(err)
		}
		var saved atomic.Int32
		var winner atomic.Pointer[[]byte]
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				mine := fmt.Appendf(nil, "[capabilities]\nkb_write = [\"notes\"]\n[limits]\nwall_time_ms = %d\n", 1000+10*round+i)
				if _, err := ask(mine, "-", "--save", "--narrow", "--was="+now.Digest); err == nil {
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
