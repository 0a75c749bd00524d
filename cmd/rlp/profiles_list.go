package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

func (a *app) capsProfilesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "profiles [NAME]",
		Short: "List the profiles and what each narrows, or print the text of a built-in one",
		Long: `A profile is a named file that narrows, caps/profiles/<name>.toml in the home. One
of these names that is not there is built in; NAME prints its text, to copy and to
edit. A profile applies to every launch (security.profile) or to one (--profile).`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("rlp caps profiles takes one NAME at most")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.printProfile(args[0])
			}
			return a.listProfiles()
		},
	}
}

func (a *app) printProfile(name string) error {
	text, ok := policy.ProfileText(name)
	if !ok {
		return inputErr(fmt.Errorf("no profile %q is built in; these are: %s", name, strings.Join(policy.BuiltinProfiles(),
			", ")))
	}
	_, err := fmt.Fprint(a.stdout, text)
	return err
}

func (a *app) listProfiles() error {
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
		a.printProfiles(rows)
	}
	code := launcher.StatusOK
	if bad {
		code = launcher.StatusFinding
	}
	return ending(code, err)
}

func (a *app) printProfiles(rows []ask.Profile) {
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
