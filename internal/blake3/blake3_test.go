package blake3

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Both makes agree on texts of each length that is special and of any other,
// written at once and in pieces, with a key and without.
func TestBothAreOne(t *testing.T) {
	data := make([]byte, 40<<10)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	key := [32]byte(data)
	plain, under, other := newPortable(nil), newPortable(&key), New(&key)
	lengths := []int{0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 4096, 5120, 8192, 8193, 31744, len(data)}
	for range 100 {
		lengths = append(lengths, rand.IntN(len(data)))
	}
	for _, n := range lengths {
		for _, h := range []interface {
			Reset()
			Write(p []byte) (int, error)
		}{plain, under, other} {
			h.Reset()
			for rest := data[:n]; len(rest) > 0; {
				piece := rest[:min(len(rest), 1+rand.IntN(3000))]
				if _, err := h.Write(piece); err != nil {
					t.Fatal(err)
				}
				rest = rest[len(piece):]
			}
		}
		if want := Sum256(data[:n]); !bytes.Equal(plain.Sum(nil), want[:]) {
			t.Errorf("%d bytes hash to %x, want %x", n, plain.Sum(nil), want)
		}
		if want := other.Sum(nil); !bytes.Equal(under.Sum(nil), want) {
			t.Errorf("%d bytes hash under a key to %x, want %x", n, under.Sum(nil), want)
		}
	}
}
