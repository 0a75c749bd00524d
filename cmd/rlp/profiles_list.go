package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

func capsProfilesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "profiles [NAME]",
		Short: "List the profiles and what each narrows, or print the text of one",
		Long: `A profile is a named file that narrows, caps/profiles/<name>.toml in the home; some
are built in, and a file of the same name takes the place of a built-in one. NAME
prints the text of a profile, to copy and to edit. A profile applies to every launch (security.profile) or to one (--profile).`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("rlp caps profiles takes one NAME at most")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printProfile(a, args[0])
			}
			return listProfiles(a)
		},
	}
}

func printProfile(a *app, name string) error {
	h, _, err := a.settings()
	if err != nil {
		return err
	}
	names, err := compose.ProfileNames(h)
	if err != nil {
		return inputErr(err)
	}
	if !slices.Contains(names, name) {
		return inputErr(fmt.Errorf("there is no profile %q; these are: %s", name, strings.Join(names, ", ")))
	}
	builtin, _ := policy.ProfileText(name)
	text := []byte(builtin)
	if _, err := os.Lstat(h.Profile(name)); builtin == "" || !errors.Is(err, fs.ErrNotExist) {
		if text, err = tomlfile.ReadFile(h.Profile(name), 0); err != nil {
			return inputErr(err)
		}
	}
	_, err = a.stdout.Write(text)
	return err
}

func listProfiles(a *app) error {
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	names, err := compose.ProfileNames(h)
	if err != nil {
		return inputErr(err)
	}
	rows, bad := []ask.Profile{}, false
	for _, name := range names {
		row := ask.ProfileAt(name, h.Profile(name), a.reader().Options(h, cfg))
		bad = bad || policy.HasErrors(row.Findings)
		rows = append(rows, row)
	}
	if a.json {
		err = a.printJSON(rows)
	} else {
		printProfiles(a, rows)
	}
	code := launcher.StatusOK
	if bad {
		code = launcher.StatusFinding
	}
	return ending(code, err)
}

func printProfiles(a *app, rows []ask.Profile) {
	say := func(format string, args ...any) { fmt.Fprintln(a.stdout, printable(fmt.Sprintf(format, args...))) }
	for _, r := range rows {
		say("%s  (%s)", r.Name, r.Source)
		if r.Description != "" {
			say("  %s", r.Description)
		}
		for _, f := range r.Findings {
			say("  %s", f)
		}
		for _, s := range r.Narrows {
			say("    %s", s)
		}
		for l := range caps.NumLimits {
			if v, ok := r.Limits[l.String()]; ok {
				say("    %s = %d", l, v)
			}
		}
	}
}
