//go:build unix

package guest

import "context"

// Claim takes the claim on a module, if it is to be had.
func Claim(ctx context.Context, dir string, wasm []byte, b Bound) (has bool, free func(), err error) {
	t, err := openCache(dir, &Config{Module: wasm}).claim(ctx, b)
	return t.file != nil, func() { t.end(nil) }, err
}
