package values

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/kb/wire"
)

// BenchmarkSearch asks a domain of 100,000 values for one to three words, which
// are as common and as rare as words are.
func BenchmarkSearch(b *testing.B) {
	values := 100_000
	if testing.Short() {
		values = 2000
	}
	e := openValues(b, Options{
		MaskVersion: "bench",
		Mask:        func(_ string, v []byte) []byte { return v },
	})
	rnd := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(rnd, 1.1, 4, 50_000)
	text := func(n int) string {
		var t strings.Builder
		for range n {
			fmt.Fprintf(&t, "word%d ", zipf.Uint64())
		}
		return t.String()
	}
	done := make(chan error, 64)
	for i := range values {
		go func(key, value string) {
			_, err := wire.Ask(context.Background(), e, &changeRequest{Domain: "notes", Key: key, Value: []byte(value)})
			done <- err
		}(fmt.Sprintf("key%06d", i), text(30))
		if i >= 64 {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
	}
	for range 64 {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	for name, raw := range map[string]bool{"masked": false, "raw": true} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				q := &searchRequest{Domain: "notes", Text: text(1 + rnd.IntN(3)), Raw: raw}
				begun := time.Now()
				if _, err := wire.Ask(b.Context(), e, q); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms/op")
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms/op")
		})
	}
	b.Run("commonest", func(b *testing.B) {
		for b.Loop() {
			if _, err := wire.Ask(b.Context(), e, &searchRequest{Domain: "notes", Text: "word0 word1 word2"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
