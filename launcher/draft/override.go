package draft

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// Override is the override of the bundle at a path, and what another in its place
// would change, or does.
func Override(r *compose.Reader, bundle string, t ask.Trial) (*ask.Override, error) {
	now, err := r.Compose(bundle, compose.Flags{})
	if err != nil {
		return nil, err
	}
	d := &ask.Override{Agent: now.Bundle.Manifest.Agent.String()}
	d.Path = now.Home.Override(d.Agent)
	if t.Save {
		free, err := home.HoldDir(filepath.Dir(d.Path))
		if err != nil {
			return nil, compose.InputErr(fmt.Errorf("saving the override: %w", err))
		}
		defer free()
	}
	data, err := compose.ReadNarrowing(d.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, compose.InputErr(err)
	}
	d.Text, d.Digest = string(data), ask.Digest(data)
	if t.Save { // what is composed is what was read, whoever saved in between
		if now, err = composeUnder(r, bundle, d.Path, data); err != nil {
			return nil, err
		}
	}
	if t.Text == nil {
		return d, nil
	}
	if d.Change, err = tryOverride(r, now, d.Path, t.Text); err != nil || !t.Save {
		return d, err
	}
	if err := t.MayReplace(d); err != nil {
		return nil, err
	}
	if d.Change.Previous, err = home.Replace(d.Path, data, t.Text); err != nil {
		return nil, compose.InputErr(fmt.Errorf("saving the override: %w", err))
	}
	d.Change.Saved = true
	return d, nil
}

// tryOverride says what text in the place of the override at path would change.
func tryOverride(r *compose.Reader, now *compose.Composition, path string, text []byte) (*ask.Draft, error) {
	if err := NotTooLong(text); err != nil {
		return nil, err
	}
	then, err := composeUnder(r, now.Path, path, text)
	if err != nil {
		return nil, ofDraft(path, err)
	}
	return ask.Compare(now.Subject(), then.Subject(), text)
}

// ofDraft is err as what is wrong in a text that is tried as the file at path, if
// it is about that.
func ofDraft(path string, err error) error {
	var unresolved *run.PathError
	var placed *compose.PlaceError
	p := compose.ProblemOf(err)
	switch {
	case errors.As(err, &unresolved):
		p = compose.Problem{
			Path: unresolved.Pos.File, Line: unresolved.Pos.Line, Column: unresolved.Pos.Column,
			Message: "there is no resolving the path " + unresolved.Path,
		}
	case errors.As(err, &placed):
		p = compose.Problem{
			Path: placed.Pos.File, Line: placed.Pos.Line, Column: placed.Pos.Column,
			Message: placed.Err.Error(),
		}
	}
	if p.Path != path {
		return err
	}
	return &ask.TextError{Line: p.Line, Column: p.Column, Why: p.Hinted(), Err: err}
}

// composeUnder composes a bundle as if text were the override at path; nil: what
// is there.
func composeUnder(r *compose.Reader, bundle, path string, text []byte) (*compose.Composition, error) {
	with := *r
	if text != nil {
		with.Drafts = map[string][]byte{path: text}
	}
	return with.Compose(bundle, compose.Flags{})
}

// NotTooLong refuses a text that no override may be.
func NotTooLong(text []byte) error {
	if len(text) > tomlfile.DefaultMax {
		return &ask.Error{
			Status: run.StatusInput, Err: fmt.Errorf("the override has more than %d bytes", tomlfile.DefaultMax),
		}
	}
	return nil
}
