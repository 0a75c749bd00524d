package pii

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// rulesDigest is what [Rules] stands for: what it makes of the planted data in
// each encoding. Stores keep what masks make of values, under the number.
const rulesDigest = "de70a9d78560eff8127fc4994741a151fd04cdb30f2870e3a8b3d292549071f3"

// Rules that mask differently have another number: raise it with the digest.
func TestRulesHaveANumber(t *testing.T) {
	m := New(testKey)
	h := sha256.New()
	for _, domain := range []string{"contacts", "notes"} {
		for _, value := range []string{
			contact + `"}`, `{"name":"Ada","size":3}`, `{"name":"Ada","dob":"1815"}`,
			"Tel. 5551234, born 1815-12-10\nAddress: 12 High St",
			"a at b dot org (a (at) b.org) 4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00 078-05-1120",
			"0049 30 1234567 01.02.2024 10.0.0.1",
		} {
			h.Write(m.mask(domain, []byte(value)))
		}
		for _, p := range planted {
			for _, e := range encodings {
				h.Write(m.mask(domain, []byte(e.encode(p.text))))
			}
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != rulesDigest {
		t.Errorf("rules %d mask differently than they did: raise Rules, and write the digest %s", Rules, got)
	}
}
