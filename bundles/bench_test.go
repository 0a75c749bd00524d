package bundles

import (
	"strings"
	"testing"
)

func BenchmarkOpen(b *testing.B) {
	// As large as a guest built by Go, and about as compressible.
	wasm := testWasm + noise(1<<20) + strings.Repeat("\x00\x20\x01\x6a\x41\x05", 280_000)
	tr := goodTree().with("agent.wasm", wasm).with(ManifestName, manifestFor(wasm, testPolicy))
	packed := tr.tar(b)
	b.Run("sha256", func(b *testing.B) {
		b.SetBytes(int64(len(wasm)))
		for b.Loop() {
			hexSum(wasm)
		}
	})
	for name, path := range map[string]string{
		"dir": tr.dir(b), "tar": archive(b, packed),
		"tar.gz": archive(b, gzipped(b, packed)),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(wasm)))
			b.ReportAllocs()
			for b.Loop() {
				mustOpen(b, path)
			}
		})
	}
}
