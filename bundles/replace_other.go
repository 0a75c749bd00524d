//go:build !linux

package bundles

// replace puts the directory temp in the place of built.
func replace(temp, built string) error { return replaceByMoving(temp, built) }
