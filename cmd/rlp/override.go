package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/draft"
)

func capsOverrideCommand(a *app) *cobra.Command {
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
			return writeOverride(a, args, t)
		},
	}
	fs := c.Flags()
	fs.BoolVar(&t.Save, "save", false, "put it in the place of the override that is there")
	fs.BoolVar(&t.Narrow, "narrow", false, "refuse to save what gives anything back")
	fs.StringVar(&t.Was, "was", "",
		"refuse to save unless the override that is there has this `DIGEST`; none: there is none")
	return c
}

func writeOverride(a *app, args []string, t ask.Trial) (err error) {
	if len(args) == 2 {
		if t.Text, err = draftOf(a, args[1]); err != nil {
			return err
		}
	}
	d, err := draft.Override(a.reader(), args[0], t)
	if err != nil {
		return ofFile(err)
	}
	return printOverride(a, d)
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
func draftOf(a *app, path string) ([]byte, error) {
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
	return append([]byte{}, data...), draft.NotTooLong(data)
}

func printOverride(a *app, d *ask.Override) error {
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
