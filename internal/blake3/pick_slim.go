//go:build slim

package blake3

// Hasher hashes what is written to it.
type Hasher = portable

// New is a hasher under a key.
func New(key *[32]byte) *Hasher { return newPortable(key) }

// Sum256 is the digest of data.
func Sum256(data []byte) [32]byte {
	h := newPortable(nil)
	_, _ = h.Write(data)
	return [32]byte(h.Sum(nil))
}
