// Package knowledge reads and changes the knowledge base of a tenant for whoever
// operates: values with who wrote them, masked unless they are asked for as they are
// stored; documents that are imported; backups.
//
// It prints nothing.
package knowledge

import (
	"context"
	"errors"
	"io/fs"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/source"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// A Session is the store as one question or change uses it.
type Session struct {
	*kb.Store
	home  home.Home
	view  *kb.View
	masks *compose.Masks
}

// With opens the store for one command of the operator's.
func With(ctx context.Context, r *compose.Reader, o kb.Origin, do func(s *Session) error) (err error) {
	h, cfg, err := r.StoreSettings()
	if err != nil {
		return err
	}
	opened, err := kb.Open(ctx, compose.StoreOptions(h, cfg))
	if err != nil {
		return &compose.Error{Status: run.StatusUnavailable, Err: err}
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return status(do(&Session{opened, h, opened.View(o), compose.NewMasks(h)}))
}

// status gives what the store answers the exit status that it has.
func status(err error) error {
	var se *compose.Error
	switch {
	case err == nil || errors.As(err, &se):
		return err
	case errors.Is(err, kb.ErrUnavailable), errors.Is(err, kb.ErrVersion), errors.Is(err, kb.ErrSchema):
		return &compose.Error{Status: run.StatusUnavailable, Err: err}
	case errors.Is(err, kb.ErrBackup), errors.Is(err, source.ErrInput):
		return compose.InputErr(err)
	case errors.Is(err, kb.ErrDomain), errors.Is(err, kb.ErrInvalid):
		return &compose.Error{Status: run.StatusUsage, Err: err}
	}
	return err
}

func absentIn(err error, domain, key string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &missingError{domain, key}
	}
	return err
}

// A missingError says that a key holds nothing.
type missingError struct{ domain, key string }

func (e *missingError) Error() string {
	return "nothing is stored at " + e.domain + "/" + e.key + "; rlp kb list " + e.domain + " shows what is"
}
