// Package source reads documents out of a folder or a JSONL file.
//
// What is read is parsed and never executed, and nothing in it decides where it
// goes but its own key. The same input gives the same documents in the same
// order under the same keys, wherever it lies and whoever reads it. No link is
// followed, nothing but a regular file is opened, and every size is bounded.
package source

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/blake3"
)

// Bounds of what is read.
const (
	MaxDocument = 1 << 20 // bytes
	MaxKey      = 1 << 10 // bytes
	MaxETag     = 250     // bytes
	MaxDepth    = 64      // folders inside one another
	MaxCount    = 1 << 20 // documents
)

// ErrInput says that what should be read is not what this package reads.
var ErrInput = errors.New("cannot be imported")

// A Document is one thing that was read.
type Document struct {
	Key   string
	Value []byte // as it stands there
	// ETag tells versions of the document apart: the one that it gives itself, or
	// a digest of Value.
	ETag string
	// Source is where it stood: "import:" and a path or a line's file.
	Source string
}

// A Skipped is something that was not read, and why.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Options say how a source is read.
type Options struct {
	Prefix string // of every key
	Hidden bool   // what begins with a dot too
	// Home is a folder that is never entered and never read itself, whatever
	// leads to it: the one that keeps secrets, stores and what is other tenants'.
	// nil: there is none.
	Home fs.FileInfo
}

// Read gives each document of path, a folder or a JSONL file, to visit, and
// returns what it left out. An error of visit ends it, and so does ctx. A JSONL
// file is looked through before its first line is given out: one bad line
// refuses it. A path that is itself a link is refused.
func Read(ctx context.Context, path string, o Options, visit func(Document) error) ([]Skipped, error) {
	f, info, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	defer f.Close()
	switch {
	case info.IsDir() && o.isHome(info):
		return nil, fmt.Errorf("%w: %s is the home of rlp; name a folder in it, such as artifacts", ErrInput, path)
	case info.IsDir():
		w := &walker{ctx: ctx, opt: o, visit: visit}
		err := w.walk(untrailed(path), info)
		return w.skipped, err
	case info.Mode().IsRegular():
		return nil, readLines(ctx, f, o, visit)
	}
	return nil, fmt.Errorf("%w: %s is neither a folder nor a regular file", ErrInput, path)
}

func (o *Options) isHome(info fs.FileInfo) bool { return o.Home != nil && os.SameFile(info, o.Home) }

// badKey says why s cannot be a key, or "".
func badKey(s string) string {
	switch {
	case s == "":
		return "the key is empty"
	case len(s) > MaxKey:
		return "the key is longer than 1 KiB"
	case !utf8.ValidString(s):
		return "the key is not UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "the key holds control characters"
	}
	return ""
}

// digest names a version by its bytes.
func digest(p []byte) string {
	sum := blake3.Sum256(p)
	return "blake3:" + hex.EncodeToString(sum[:16])
}
