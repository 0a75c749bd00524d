package secrets

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// What it costs to look for values: nothing without any, and with three of
// usual length some nanoseconds a byte.
func BenchmarkScrub(b *testing.B) {
	prose := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog, 42 times a day.\n", 1<<14))
	bytes := make([]byte, 1<<20)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range bytes {
		bytes[i] = byte(rnd.Uint32())
	}
	blob := []byte(strings.Repeat("c29tZSBiYXNlNjQgdGV4dCB3aXRob3V0IGFueSB2YWx1ZSBpbiBpdA", 1<<14))
	none := NewRun(nil)
	three := runWith(b, "sk-live-4eC39HqLyjWDarjtT1zdp7dc", "correct-horse-battery",
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a")
	for _, c := range []struct {
		name string
		run  *Run
		text []byte
	}{
		{"none/prose", none, prose},
		{"three/prose", three, prose},
		{"three/random", three, bytes},
		{"three/base64", three, blob},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				c.run.Scrub(c.text, ignore)
			}
		})
	}
}

// What it costs to ask for a handle: two files read and one value decrypted.
func BenchmarkVaultGet(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "secrets")
	if _, err := Init(dir); err != nil {
		b.Fatal(err)
	}
	p, id := open(b, Config{Provider: "age", Dir: dir}), idOf(b, "runloop/mail/key")
	if err := p.Put(b.Context(), id, []byte("sk-live-4eC39HqLyjWDarjtT1zdp7dc")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Get(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}
