package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
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

// A profileRow is one profile as it is listed. A bad one has findings and
// nothing else beyond name and source.
type profileRow struct {
	Name         string           `json:"name"`
	Source       string           `json:"source"`
	Description  string           `json:"description"`
	IntendedUse  string           `json:"intended_use"`
	Expectations []string         `json:"orchestrator_expectations"`
	Narrows      []string         `json:"narrows"`
	Limits       map[string]int64 `json:"limits"`
	Findings     []policy.Finding `json:"findings"`
}

func (a *app) listProfiles() error {
	h, err := a.home()
	if err != nil {
		return err
	}
	cfg, err := config.Load(h.Config(), a.env)
	if err != nil {
		return inputErr(err)
	}
	names, err := compose.ProfileNames(h)
	if err != nil {
		return inputErr(err)
	}
	rows, bad := []profileRow{}, false
	for _, name := range names {
		row := rowOf(name, h.Profile(name), a.reader().Options(h, cfg))
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

func rowOf(name, file string, opt policy.Options) profileRow {
	row := profileRow{
		Name: name, Source: file, Expectations: []string{}, Narrows: []string{}, Limits: map[string]int64{},
		Findings: []policy.Finding{},
	}
	p, findings, err := policy.LoadProfile(name, file, opt)
	if err != nil {
		findings = []policy.Finding{policy.FileFinding(file, err)}
	}
	row.Findings = append(row.Findings, findings...)
	if p == nil {
		return row
	}
	row.Source, row.Description, row.IntendedUse = p.Source, p.Description, p.IntendedUse
	row.Expectations = append(row.Expectations, p.Expectations...)
	row.Narrows, row.Limits = narrows(p.Layer), p.Layer.Limits.Map()
	return row
}

// narrows says what a layer takes, without a base: each bound with what it
// leaves, each denial, each condition.
func narrows(l *caps.Layer) []string {
	list := []string{}
	said := map[string]bool{}
	say := func(s string) {
		if !said[s] {
			said[s] = true
			list = append(list, s)
		}
	}
	for _, b := range l.Bounds {
		left := []string{}
		for _, e := range l.Allow {
			if e.Grant.Family == b.Family {
				left = append(left, e.Grant.Scope)
			}
		}
		if len(left) == 0 {
			say("no " + b.Family.String())
		} else {
			say(b.Family.String() + " only " + strings.Join(left, ", "))
		}
	}
	for _, e := range l.Deny {
		if e.Grant.Family == caps.Tool {
			say("not the tool " + e.Grant.Scope)
			continue
		}
		for _, s := range e.Grant.Strings() {
			say("not " + s)
		}
	}
	for _, lease := range l.Leases {
		say("leased: " + ask.LeaseText(lease))
	}
	return append(list, ask.Conditions(l.Constraints)...)
}

func (a *app) printProfiles(rows []profileRow) {
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
