package guest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The files of what is kept of a module, beside the folder in which the engine
// has the native code.
const (
	moduleFile = "outline.wasm"
	sumFile    = "sum"
)

// errDamaged is what is found in place of what was written.
var errDamaged = errors.New("not as it was written")

// readEntry reads the outline of a folder's module, once it is clear that all
// that is in it may be trusted and is as it was written, and says how large it
// and the native code are.
func readEntry(dir string, is identity) (short []byte, size int64, err error) {
	native, err := look(dir)
	if err != nil {
		return nil, 0, err
	}
	info, err := os.Stat(native)
	if err != nil {
		return nil, 0, err
	}
	short, err = os.ReadFile(filepath.Join(dir, moduleFile))
	if err != nil {
		return nil, 0, err
	}
	want, err := os.ReadFile(filepath.Join(dir, sumFile))
	if err != nil {
		return nil, 0, err
	}
	got, err := sum(native, short, is)
	if err != nil {
		return nil, 0, err
	}
	if !bytes.Equal(got, want) {
		return nil, 0, fmt.Errorf("%s: %w", dir, errDamaged)
	}
	return short, info.Size() + int64(len(short)), nil
}

// look finds the one file of native code in a folder that holds nothing but
// what belongs there and to this user alone.
func look(dir string) (native string, err error) {
	found := 0
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if why := distrust(info); why != "" {
			return fmt.Errorf("%s: %s", p, why)
		}
		parent := filepath.Dir(p)
		switch {
		case p == dir, d.IsDir() && parent == dir:
			return nil
		case !d.IsDir() && parent == dir && (d.Name() == moduleFile || d.Name() == sumFile):
			return nil
		case !d.IsDir() && filepath.Dir(parent) == dir:
			native = p
			found++
			return nil
		}
		return fmt.Errorf("%s: does not belong there", p)
	})
	if err == nil && found != 1 {
		err = fmt.Errorf("%s: %d files of native code", dir, found)
	}
	return native, err
}

// identity is what the native code in a folder is of: a module, for someone, as
// this package compiles it. A folder by the name of another has another sum.
type identity struct {
	scope, digest string
}

func (cfg *Config) identity() identity { return identity{cfg.Scope, cfg.digest()} }

// sum is what a folder must agree with: whose it is, of which module and by which
// metering and engine; the digest of the outline; what lies around the native
// code, which the engine does not guard; and the name of that file, which the
// engine makes of the outline and what the processor can do.
func sum(native string, short []byte, is identity) ([]byte, error) {
	edge, err := edges(native)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(short)
	h := sha256.New()
	for _, part := range []string{
		cacheFormat(), is.scope, is.digest, filepath.Base(native), string(edge[:]),
		string(digest[:]),
	} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return h.Sum(nil), nil
}

// writeSum puts the sum of a folder into it: from then on it is whole.
func writeSum(dir string, short []byte, is identity) error {
	native, err := look(dir)
	if err != nil {
		return err
	}
	s, err := sum(native, short, is)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sumFile), s, 0o600)
}
