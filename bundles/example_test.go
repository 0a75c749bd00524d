package bundles_test

import (
	"fmt"
	"os"
	"path/filepath"

	"runloop.dev/rlp/bundles"
)

// Build packs a folder with a manifest, a policy and a module; Open reads the
// bundle whole and refuses it where a digest differs.
func Example() {
	dir, err := os.MkdirTemp("", "bundle-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"manifest.toml": "[agent]\nname = \"clock\"\nversion = \"0.1.0\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = " +
			"\"agent.wasm\" }\n\n[caps]\nfile = \"policy.caps\"\n",
		"policy.caps": "[capabilities]\ntime = true\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			panic(err)
		}
	}
	path, err := bundles.Build(dir, []byte("\x00asm\x01\x00\x00\x00"))
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := bundles.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Manifest.Agent, b.Manifest.Version, len(b.Digest))
	// Output:
	// clock 0.1.0 64
}
