package auditlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/launcher/compose"
)

// publicKey is the public half of the key of the tenant's log, which is that of
// its signing key when there is one. Nil: there is no key yet.
func publicKey(h home.Home) (*evidence.PublicKey, error) {
	key, err := evidence.ReadKey(h.Root(), h.Tenant())
	if err == nil {
		return key.Public(), key.CheckPublic(h.Root())
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	path := filepath.Join(h.Root(), evidence.PublicFile)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return NamedKey(path)
}

// NamedKey is the public key that an operator names: its line, or a file that
// has it.
func NamedKey(name string) (*evidence.PublicKey, error) {
	key, err := evidence.ParsePublic(name)
	if err == nil {
		return key, nil
	}
	f, openErr := os.Open(name)
	if openErr != nil {
		return nil, compose.InputErr(fmt.Errorf("%w; and no file of this name can be read: %w", err, openErr))
	}
	defer f.Close()
	text, readErr := io.ReadAll(io.LimitReader(f, 4<<10))
	if readErr != nil {
		return nil, compose.InputErr(fmt.Errorf("reading a public key: %w", readErr))
	}
	if key, err = evidence.ParsePublic(string(text)); err != nil {
		return nil, compose.InputErr(fmt.Errorf("%s: %w", name, err))
	}
	return key, nil
}
