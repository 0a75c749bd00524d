// Package draft tries policies that are not in force: [Override] in the place of an
// agent's override, [WhatIf] on recorded runs; [Suggest] makes one of what runs used.
//
// It prints nothing, and changes nothing but the override that is saved.
package draft

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

// A Recorded is a home with what was recorded there.
type Recorded struct {
	Reader *compose.Reader
	Store  *kb.Store
}

// Suggest makes a suggestion in which paths are written as in the bundle at a
// path, or else as the installed agent writes them.
func (d Recorded) Suggest(
	ctx context.Context, used []ask.Used, path string, w ask.Wanted,
) (*ask.Suggestion, error) {
	h, cfg, err := d.Reader.Settings()
	if err != nil {
		return nil, err
	}
	w.IsFolder, w.Options = isFolder, d.Reader.Options(h, cfg)
	w.Written = func(agent string) *ask.Subject {
		if path == "" {
			path = filepath.Join(h.Agents(), agent)
		}
		c, err := d.Reader.Compose(path, compose.Flags{})
		if err != nil {
			return nil // it cannot be launched as it is; the canonical spelling is right as well
		}
		return c.Subject()
	}
	w.Carried = func(agent string) (analysis.Carried, error) {
		data, err := compose.ReadNarrowing(h.Override(agent))
		if errors.Is(err, fs.ErrNotExist) {
			return analysis.Carried{}, nil
		}
		if err != nil {
			return analysis.Carried{}, err
		}
		return analysis.Carry(h.Override(agent), data, ask.WithoutLinks)
	}
	return ask.Suggest(ctx, d.Store, used, w)
}

// SuggestOf makes a suggestion of what args name: the recorded runs of the bundle at
// a path or of an installed agent, or one run by its id or the beginning of it.
func (d Recorded) SuggestOf(ctx context.Context, args []string, w ask.Wanted) (*ask.Suggestion, error) {
	var used []ask.Used
	path := ""
	h, err := d.Reader.Home()
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		u := ask.Used{Name: arg}
		var err error
		if _, gone := os.Lstat(compose.Locate(h, arg)); gone == nil {
			path = arg
			u.Bundle, err = d.Reader.OwnBundle(arg)
		} else if u.Run, err = ask.WholeRun(ctx, d.Store, arg); err != nil {
			err = fmt.Errorf("%w; and %w", compose.Unnamed(h, arg, gone), err)
		}
		if err != nil {
			return nil, err
		}
		used = append(used, u)
	}
	w.Missing = isMissing
	return d.Suggest(ctx, used, path, w)
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
