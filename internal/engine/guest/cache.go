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

	"runloop.dev/rlp/internal/engine/meter"
)

const (
	// engineVersion is the engine's, which knows its own version only in a
	// binary with build information.
	engineVersion = "v1.12.0"

	// compileHere is up to which size a module is compiled in this process and
	// not kept. The worst that we know of that size takes the engine 40 ms and
	// 50 MB (of 4 KiB: 700 ms and 500 MB); an honest one takes less than looking
	// into the cache does.
	compileHere = 1 << 10

	temporarySuffix = ".tmp"

	// staleAfter is how long what is temporary may belong to someone: many
	// times what compiling may take.
	staleAfter = time.Minute * slack
)

// cacheFormat names what a module is compiled to: its first part changes
// whenever this package would make something else of the same module, its
// second whenever the metering would.
func cacheFormat() string { return fmt.Sprintf("6-meter-%d-wazero-%s", meter.Version, engineVersion) }

// ErrCache says that a cache directory cannot be trusted or written. The
// module was compiled without it.
var ErrCache = errors.New("compilation cache not used")

// cache is where the work of compiling one module is found and kept: a folder
// named by this package's format and the module's digest, which holds its
// outline, its native code, and a sum of both and of whose they are.
//
// Native code is run as it is read. So what is there must be of this user,
// writable by no other, and as it was written; what is not is removed. A folder
// is made under another name and renamed, so that processes may do so at once
// and one that dies leaves nothing that is half of anything.
type cache struct {
	base string // for this format; "" is no cache
	dir  string // the module's own
	used bool
	err  error
}

// digest is the module's: hex SHA-256, which whoever verified it knows.
func (cfg *Config) digest() string {
	if cfg.SHA256 != "" {
		return cfg.SHA256
	}
	return digestOf(cfg.Module)
}

func digestOf(module []byte) string {
	sum := sha256.Sum256(module)
	return hex.EncodeToString(sum[:])
}

// openCache never fails: without a cache there is only more to do.
func openCache(root string, cfg *Config) *cache {
	c := &cache{}
	if root == "" || len(cfg.Module) <= compileHere {
		return c
	}
	c.base = filepath.Join(root, cacheFormat())
	c.dir = filepath.Join(c.base, cfg.digest())
	for _, dir := range []string{root, c.base} {
		if err := ownFolder(dir); err != nil {
			c.giveUp(err)
			break
		}
	}
	return c
}

// ownFolder makes a folder, and refuses one that others can change.
func ownFolder(dir string) error {
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
	return nil
}

func (c *cache) exists() bool {
	if c.base == "" {
		return false
	}
	_, err := os.Lstat(c.dir)
	return err == nil
}

// discard throws away what is kept of the module. It is moved first, so that
// nobody finds half of it.
func (c *cache) discard() {
	away, err := os.MkdirTemp(c.base, "old-*"+temporarySuffix)
	if err == nil {
		err = errors.Join(ignoreMissing(os.Rename(c.dir, filepath.Join(away, "entry"))), os.RemoveAll(away))
	}
	if err != nil {
		c.giveUp(err)
	}
}

func (c *cache) giveUp(err error) {
	c.base = ""
	c.err = fmt.Errorf("%w: %w", ErrCache, err)
}

// workshop makes a folder to compile into: beside the others, or, without a
// cache, among the system's temporary files.
func (c *cache) workshop() (string, error) {
	if c.base != "" {
		sweep(c.base, "*"+temporarySuffix)
		dir, err := os.MkdirTemp(c.base, "new-*"+temporarySuffix)
		if err == nil {
			return dir, nil
		}
		c.giveUp(err)
	}
	sweep(os.TempDir(), "rlp-compile-*"+temporarySuffix)
	dir, err := os.MkdirTemp("", "rlp-compile-*"+temporarySuffix)
	if err != nil {
		return "", fmt.Errorf("%w: there is nowhere to put native code (set TMPDIR to a folder that can be written): %w",
			ErrCompiler, err)
	}
	return dir, nil
}

// keep gives a workshop the module's name, unless another process was faster,
// and otherwise removes it.
func (c *cache) keep(dir string) {
	if c.base != "" && os.Rename(dir, c.dir) == nil {
		return
	}
	_ = os.RemoveAll(dir)
}

// sweep removes what processes left behind that were killed.
func sweep(dir, pattern string) {
	list, err := filepath.Glob(filepath.Join(strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(dir),
		pattern))
	if err != nil {
		return
	}
	for _, p := range list {
		info, err := os.Lstat(p)
		if err == nil && distrust(info) == "" && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(p)
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process was faster
	}
	return err
}
