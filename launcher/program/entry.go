package program

import (
	"fmt"
	"os"
	"path/filepath"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
)

// Entry is the file, without links, of the program of a bundle whose path begins in dir
// where it is relative.
func Entry(b *bundles.Bundle, dir string) string {
	m := b.Manifest
	if m.OfMachine() {
		return m.Entry.Path
	}
	at := b.Path
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	if real, err := filepath.EvalSymlinks(at); err == nil {
		at = real
	}
	return filepath.Join(at, filepath.FromSlash(m.Entry.Path))
}

// Clock is what each program asks for by itself: nothing keeps it from clocks.
func Clock(m *bundles.Manifest) caps.Entry {
	return caps.Entry{
		Grant: caps.Grant{Family: caps.Time, Modes: caps.AllModes(caps.Time), Scope: "*"}, Pos: caps.Pos(m.Entry.Pos),
		Implied: true,
	}
}

// There refuses a program that is in an archive, which named is then: none is unpacked
// to be launched.
func (s *Start) There(named string) error {
	if _, err := os.Lstat(s.File); err == nil || s.SHA256 == "" {
		return nil
	}
	return fmt.Errorf("%s: a program is launched from the folder of its bundle; rlp agent install %[1]s makes one", named)
}
