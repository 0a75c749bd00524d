//go:build linux || darwin

package jail

import (
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/effect/wasi/wasitest"
)

// TestSuite holds the jail to what every file system of a guest is held to.
func TestSuite(t *testing.T) {
	eachResolver(t, func(t *testing.T, walk bool) {
		wasitest.TestFS(t, func(t *testing.T) (wasi.FS, string) {
			p := newPlace(t)
			j, _ := open(t, walk, rule{p.grant, all})
			return j, p.grant
		})
	})
}
