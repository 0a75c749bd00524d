package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/strictjson"
)

// A Filter is what an export leaves out, as it was asked for. It does not
// change while a cursor lives: what was passed over is not come back to.
type Filter struct {
	Run      string `json:"run,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Cap      string `json:"cap,omitempty"`
	Decision string `json:"decision,omitempty"`
	Since    string `json:"since,omitempty"` // as it was written
	SinceMS  int64  `json:"since_ms,omitempty"`
}

// same reports whether both were asked for in the same words.
func (f Filter) same(g Filter) bool {
	f.SinceMS, g.SinceMS = 0, 0
	return f == g
}

// A Head is a size of the log and the root of its tree then.
type Head struct {
	Size uint64
	Root [32]byte
}

// A Cursor says how far an export has come, of which log, and where its output
// ended then.
type Cursor struct {
	V      int    `json:"v"`
	Format Format `json:"format"`
	Tenant string `json:"tenant"`
	Filter Filter `json:"filter"`
	Seq    uint64 `json:"seq"`  // the last record that was exported or passed over
	Size   uint64 `json:"size"` // of the log when Root was its root; never below Seq
	Root   []byte `json:"root"`
	Output *Place `json:"output,omitempty"` // of a file
}

const (
	cursorVersion = 1
	maxCursor     = 64 << 10
)

// ErrCursor says that a cursor is not for what was asked.
var ErrCursor = errors.New("the cursor is not for this export")

// A CursorFile holds one cursor, for one export at a time.
type CursorFile struct {
	path string
	lock *os.File
	Cursor
	Fresh bool // there was none
}

// OpenCursor reads the cursor at path, or begins one as want says.
func OpenCursor(path string, want Cursor) (*CursorFile, error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	c := &CursorFile{path: path, lock: lock}
	if err := home.Lock(lock, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s: another export is going on from it", path)
	}
	if err := c.read(want); err != nil {
		lock.Close()
		return nil, err
	}
	return c, nil
}

func (c *CursorFile) read(want Cursor) error {
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		want.V = cursorVersion
		c.Cursor, c.Fresh = want, true
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := io.ReadAll(io.LimitReader(f, maxCursor+1))
	if err != nil {
		return err
	}
	if err := strictjson.Unmarshal(p, &c.Cursor); err != nil || len(p) > maxCursor {
		return fmt.Errorf("%s: %w: it is no cursor of an export (%v)", c.path, ErrCursor, err)
	}
	return c.check(want)
}

// check refuses to go on with anything but what was begun.
func (c *CursorFile) check(want Cursor) error {
	differs := func(what string, was, is any) error {
		return fmt.Errorf("%s: %w: it was made with %s %v, and this is %v; give another file to begin anew", c.path,
			ErrCursor, what, was, is)
	}
	switch {
	case c.V != cursorVersion:
		return differs("version", c.V, cursorVersion)
	case c.Format != want.Format:
		return differs("--format", c.Format, want.Format)
	case c.Tenant != want.Tenant:
		return differs("--tenant", c.Tenant, want.Tenant)
	case !c.Filter.same(want.Filter):
		return differs("the filters", describe(c.Filter), describe(want.Filter))
	case c.Seq > c.Size, len(c.Root) != 32 && c.Size > 0:
		return fmt.Errorf("%s: %w: it makes no sense", c.path, ErrCursor)
	}
	return nil
}

func describe(f Filter) string {
	f.SinceMS = 0
	p, _ := json.Marshal(f) //nolint:errchkjson // of texts alone
	return string(p)
}

// Check is an error unless the log is the one that was exported: root is of the
// first size records now, nil when there are not so many.
func (c *CursorFile) Check(root *[32]byte) error {
	if c.Size == 0 || root != nil && bytes.Equal(root[:], c.Root) {
		return nil
	}
	if root == nil {
		return fmt.Errorf("the log is not the one that was exported: it had %d records (%s)", c.Size, c.path)
	}
	return fmt.Errorf("the log below seq %d is not the one that was exported (%s); rlp audit verify says what is wrong "+
		"with it", c.Size+1, c.path)
}

// save replaces the cursor. What it says is durable has to be.
func (c *CursorFile) save() error {
	p, err := json.MarshalIndent(c.Cursor, "", "  ")
	if err != nil {
		return err
	}
	return home.WritePrivate(c.path, append(p, '\n'))
}

// Close lets others use the cursor.
func (c *CursorFile) Close() error { return c.lock.Close() }
