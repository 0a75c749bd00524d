//go:build !unix

package home

import "io/fs"

const (
	oNoFollow = 0
	oNonBlock = 0
)

func isLink(error) bool { return false }

func owned(string, fs.FileInfo) error { return nil }

func mine(string, fs.FileInfo) error { return nil }
