//go:build !unix

package home

import "io/fs"

func owned(string, fs.FileInfo) error { return nil }
