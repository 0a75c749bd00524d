package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

func (a *app) capsOverrideCommand() *cobra.Command {
	var t ask.Trial
	c := &cobra.Command{
		Use:   "override BUNDLE [FILE]",
		Short: "Print the override of an agent, or say what another one would change, and save it",
		Long: `Override prints the operator's own override of an agent. With a FILE (- is stdin) it
says what that would change in its place: what it takes away, and what of the
agent's own policy it gives back that is taken away now. Nothing can be had by it
that the agent does not ask for itself.

With --save it takes the place of the override, in one step, once it was read
without an error and the agent could be launched under it; what was there before
is kept beside it. It holds for every tenant, and for runs under way from their
next turn on.`,
		Example: `  rlp caps override agents/notes_digest
  rlp caps suggest --override agents/notes_digest | rlp caps override agents/notes_digest - --save`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("%s takes a BUNDLE, and a FILE if there is one to try", c.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && (t.Save || t.Narrow || t.Was != "") {
				return usagef("--save, --narrow and --was are about a FILE; name one, or - for stdin")
			}
			return a.override(args, t)
		},
	}
	fs := c.Flags()
	fs.BoolVar(&t.Save, "save", false, "put it in the place of the override that is there")
	fs.BoolVar(&t.Narrow, "narrow", false, "refuse to save what gives anything back")
	fs.StringVar(&t.Was, "was", "",
		"refuse to save unless the override that is there has this `DIGEST`; none: there is none")
	return c
}

func (a *app) override(args []string, t ask.Trial) (err error) {
	if len(args) == 2 {
		if t.Text, err = a.draft(args[1]); err != nil {
			return err
		}
	}
	d, err := a.overrideAt(args[0], t)
	if err != nil {
		return ofFile(err)
	}
	return a.printOverride(d)
}

// overrideAt is the override of the bundle at a path, and what another in its place
// would change, or does.
func (a *app) overrideAt(bundle string, t ask.Trial) (*ask.Override, error) {
	now, err := a.compose(bundle, compose.Flags{})
	if err != nil {
		return nil, err
	}
	d := &ask.Override{Agent: now.Bundle.Manifest.Agent.String()}
	d.Path = now.Home.Override(d.Agent)
	if t.Save {
		free, err := home.HoldDir(filepath.Dir(d.Path))
		if err != nil {
			return nil, inputErr(fmt.Errorf("saving the override: %w", err))
		}
		defer free()
	}
	data, err := compose.ReadNarrowing(d.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, inputErr(err)
	}
	d.Text, d.Digest = string(data), ask.Digest(data)
	if t.Save { // what is composed is what was read, whoever saved in between
		if now, err = a.composeUnder(bundle, d.Path, data); err != nil {
			return nil, err
		}
	}
	if t.Text == nil {
		return d, nil
	}
	if d.Change, err = a.tryOverride(now, d.Path, t.Text); err != nil || !t.Save {
		return d, err
	}
	if err := t.MayReplace(d); err != nil {
		return nil, err
	}
	if d.Change.Previous, err = home.Replace(d.Path, data, t.Text); err != nil {
		return nil, inputErr(fmt.Errorf("saving the override: %w", err))
	}
	d.Change.Saved = true
	return d, nil
}

// tryOverride says what text in the place of the override at path would change.
func (a *app) tryOverride(now *compose.Composition, path string, text []byte) (*ask.Draft, error) {
	if err := notTooLong(text); err != nil {
		return nil, err
	}
	then, err := a.composeUnder(now.Path, path, text)
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
	return &ask.TextError{Line: p.Line, Column: p.Column, Why: hinted(p.Message, p.Hint), Err: err}
}

// ofFile is err as what is wrong in the file that a text would be.
func ofFile(err error) error {
	var text *ask.TextError
	if errors.As(err, &text) {
		return text.Err
	}
	return err
}

// draft reads an override that is not among the others; - is stdin.
func (a *app) draft(path string) ([]byte, error) {
	if path != "-" {
		if err := a.reader().OwnPaths(path); err != nil {
			return nil, err
		}
		data, err := tomlfile.ReadFile(path, 0)
		if err != nil {
			return nil, inputErr(fmt.Errorf("reading an override: %w", err))
		}
		return data, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.stdin, tomlfile.DefaultMax+1))
	if err != nil {
		return nil, inputErr(fmt.Errorf("reading an override from stdin: %w", err))
	}
	return append([]byte{}, data...), notTooLong(data)
}

func notTooLong(text []byte) error {
	if len(text) > tomlfile.DefaultMax {
		return &ask.Error{
			Status: launcher.StatusInput, Err: fmt.Errorf("the override has more than %d bytes", tomlfile.DefaultMax),
		}
	}
	return nil
}

// composeUnder composes a bundle as if text were the override at path; nil: what
// is there.
func (a *app) composeUnder(bundle, path string, text []byte) (*compose.Composition, error) {
	with := *a
	if text != nil {
		with.drafts = map[string][]byte{path: text}
	}
	return with.compose(bundle, compose.Flags{})
}

func (a *app) printOverride(d *ask.Override) error {
	if a.json {
		return a.printJSON(d)
	}
	if d.Change == nil {
		_, err := io.WriteString(a.stdout, d.Text)
		return err
	}
	return atOnce(a.stdout, func(w io.Writer) {
		for _, list := range []struct {
			word  string
			items []string
		}{
			{"takes", d.Change.Taken},
			{"gives back", d.Change.Given},
			{"limit", d.Change.Limits},
			{"left out, for it has no value:", d.Change.Unset},
		} {
			for _, s := range list.items {
				fmt.Fprintf(w, "%s %s\n", list.word, printable(s))
			}
		}
		for _, n := range d.Change.Notes {
			fmt.Fprintln(w, printable(n))
		}
		switch {
		case d.Change.Narrower:
			fmt.Fprintln(w, "it leaves nothing that is not left now")
		default:
			fmt.Fprintln(w, "it leaves something that is taken away now")
		}
		if d.Change.Saved {
			fmt.Fprintf(w, "saved as %s\n", printable(d.Path))
		}
	})
}
