//go:build !slim

package blake3

import "github.com/zeebo/blake3"

// Hasher hashes what is written to it.
type Hasher = blake3.Hasher

// New is a hasher under a key.
func New(key *[32]byte) *Hasher {
	h, err := blake3.NewKeyed(key[:])
	if err != nil {
		panic(err) // the key has the one length that there is
	}
	return h
}

// Sum256 is the digest of data.
func Sum256(data []byte) [32]byte { return blake3.Sum256(data) }
