package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"runloop.dev/rlp/internal/meter"
)

const (
	// engineVersion is the engine's, which knows its own version only in a
	// binary with build information.
	engineVersion = "v1.12.0"

	// cacheLeast is the size under which compiling is faster than looking.
	cacheLeast = 1 << 10

	temporarySuffix = ".tmp" // the engine's, too

	// staleAfter is how long a temporary file may belong to someone.
	staleAfter = time.Hour
)

// cacheFormat names what a module is compiled to: its first part changes
// whenever this package would make something else of the same module, its
// second whenever the metering would.
func cacheFormat() string { return fmt.Sprintf("2-meter-%d-wazero-%s", meter.Version, engineVersion) }

// ErrCache says that a cache directory cannot be trusted. The module was
// compiled without it.
var ErrCache = errors.New("compilation cache not used")

// cache is the native code of one module, in a directory of its own named by
// this package's format and the module's digest. Below it the engine keeps a
// directory for its version and a file for the processor's features, written
// beside and renamed, so that two processes may do so at once.
//
// Native code is run as it is read. So before the engine looks, everything
// that is there must be of this user, writable by no other, and as it was
// written; what is not is removed.
type cache struct {
	root   string // as given
	dir    string // the module's own
	engine wazero.CompilationCache
	found  map[string]fs.FileInfo
	used   bool
	err    error
}

// openCache never fails: without a cache there is only more to do.
func openCache(root string, module []byte) *cache {
	c := &cache{root: root}
	if root == "" || len(module) < cacheLeast {
		return c
	}
	digest := sha256.Sum256(module)
	c.dir = filepath.Join(root, cacheFormat(), hex.EncodeToString(digest[:]))
	if err := c.open(); err != nil {
		c.giveUp(err)
	}
	return c
}

func (c *cache) open() error {
	for _, dir := range []string{c.root, filepath.Dir(c.dir), c.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if why := distrust(info); why != "" || !info.IsDir() {
			return fmt.Errorf("%s: %s", dir, max(why, "not a directory"))
		}
	}
	var err error
	if c.found, err = c.sweep(); err != nil {
		return err
	}
	c.engine, err = wazero.NewCompilationCacheWithDir(c.dir)
	return err
}

// sweep removes what cannot be trusted and what was left behind, and returns
// the files that remain.
func (c *cache) sweep() (map[string]fs.FileInfo, error) {
	found, err := c.list()
	for p := range found {
		if err == nil && !intact(p) {
			delete(found, p)
			err = ignoreMissing(os.Remove(p))
		}
	}
	return found, err
}

// list is the files that belong to this user alone; others are removed.
func (c *cache) list() (map[string]fs.FileInfo, error) {
	found := map[string]fs.FileInfo{}
	err := filepath.WalkDir(c.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == c.dir {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		temporary := strings.HasSuffix(p, temporarySuffix)
		misplaced := d.IsDir() != (filepath.Dir(p) == c.dir) // the engine's directory, and files in it
		switch {
		case distrust(info) != "", misplaced, temporary && time.Since(info.ModTime()) > staleAfter:
			if err := os.RemoveAll(p); err != nil {
				return err
			}
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir() && !temporary && !strings.HasSuffix(p, sumSuffix):
			found[p] = info
		}
		return nil
	})
	return found, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process was faster
	}
	return err
}

// hit reports whether there was something for the engine to read.
func (c *cache) hit() bool { return len(c.found) > 0 }

// discard throws the module's native code away. Only files are removed: another
// process may be about to put a good one beside them.
func (c *cache) discard() {
	for p := range c.found {
		if err := os.Remove(p); ignoreMissing(err) != nil {
			c.giveUp(err)
			return
		}
	}
	c.found = nil
	if err := c.open(); err != nil {
		c.giveUp(err)
	}
}

// giveUp goes on without a cache.
func (c *cache) giveUp(err error) {
	c.engine, c.found = nil, nil
	c.err = fmt.Errorf("%w: %w", ErrCache, err)
}

// settle finds out, after compiling, whether the cache served: a file that was
// there is there untouched, and none was added. What was added gets its
// checksum; without one it will not be used, which is no error.
func (c *cache) settle() {
	if c.engine == nil {
		return
	}
	now, err := c.list()
	if err != nil {
		return
	}
	used := c.hit() && len(now) == len(c.found)
	for p, info := range now {
		before, ok := c.found[p]
		if ok && os.SameFile(before, info) && before.ModTime().Equal(info.ModTime()) {
			continue
		}
		used = false
		_ = writeSum(p)
	}
	c.used = used
}
