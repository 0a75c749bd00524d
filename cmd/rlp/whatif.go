package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/draft"
)

type whatifFlags struct {
	compose.Flags
	run, agent, since string
	strict            bool
	limit             int
}

func capsWhatifCommand(a *app) *cobra.Command {
	var f whatifFlags
	c := &cobra.Command{
		Use:   "whatif",
		Short: "Decide recorded runs again under another policy, and print what it would have blocked",
		Long: `Whatif asks what recorded runs were allowed once more, under a policy that narrows:
an override, a profile, or flags. It prints each request that would be blocked,
how often and in how many runs it was made, a first example, and the line that
would block it. What was denied stays denied: a policy here only narrows.

A record does not hold everything that was judged. Where what it leaves out (the
HTTP method, mostly) could decide either way, the request is told apart.

It exits with 0 whatever it finds; with --strict, with 1 when something would be
blocked, or may be.`,
		Example: `  rlp caps whatif --override notes_digest.toml --agent notes_digest
  rlp caps whatif --profile sandbox_network_restricted --since 7d
  rlp caps whatif --deny 'kb:write:*' --run 0198d2c4-7f1e --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			audit := auditlog.Filter{Run: f.run, Agent: f.agent, Since: f.since}
			return a.withStore(c.Context(), audit, func(ctx context.Context, s *kb.Store, filter kb.Filter) error {
				return tryPolicy(ctx, a, s, filter, f)
			})
		},
	}
	fs := c.Flags()
	fs.StringArrayVar(&f.Overrides, "override", nil, "an override `FILE`, which need not lie among the others; - is stdin")
	fs.StringArrayVar(&f.Profiles, "profile", nil, "the profile `NAME`")
	fs.StringArrayVar(&f.Allow, "allow", nil, "bound the family of `CAP` to it; may be given again")
	fs.StringArrayVar(&f.Deny, "deny", nil, "take `CAP` away; may be given again")
	fs.StringArrayVar(&f.Limits, "limit", nil, "set a limit by `KEY=N`")
	fs.StringVar(&f.run, "run", "", "only the run `ID`")
	fs.StringVar(&f.agent, "agent", "", "only the agent `NAME`")
	fs.StringVar(&f.since, "since", "", "only from then on: a time (2026-01-02T15:04:05Z) or an age (90m, 24h, 7d)")
	fs.IntVar(&f.limit, "show", 100, "print at most `N` requests; 0: all")
	fs.BoolVar(&f.strict, "strict", false, "exit with 1 when something would be blocked, or may be")
	return c
}

func tryPolicy(ctx context.Context, a *app, s *kb.Store, filter kb.Filter, f whatifFlags) error {
	text := []byte(nil)
	if slices.Contains(f.Overrides, "-") {
		var err error
		if text, err = draftOf(a, "-"); err != nil {
			return err
		}
	}
	forecast, err := draft.Recorded{Reader: a.reader(), Store: s}.WhatIf(ctx, filter, f.Flags, text)
	if err != nil {
		return ofFile(err)
	}
	if forecast.Runs == 0 {
		a.say("no recorded run is one of those that were asked for, so that nothing was decided again; rlp audit list shows all")
	}
	if a.json {
		err = a.printJSON(forecast)
	} else {
		printForecast(a.stdout, forecast, f.limit)
	}
	status := launcher.StatusOK
	if d := forecast.Decisions; f.strict && d.Blocked+d.Depend+int64(len(forecast.Passed)) > 0 {
		status = launcher.StatusFinding
	}
	return ending(status, err)
}

func printForecast(w io.Writer, f *ask.Forecast, most int) {
	fmt.Fprintf(w, "under %s, of %s:\n", printable(strings.Join(f.Candidates, ", ")), counted(f.Runs, "run"))
	fmt.Fprintf(w, "  allowed calls: %d stay allowed, %d would be blocked (in %s), %d might be blocked\n"+
		"  denied calls:  %d stay denied\n",
		f.Decisions.Stay, f.Decisions.Blocked, counted(f.Blocking, "run"), f.Decisions.Depend, f.Decisions.Denied)
	for i, b := range slices.Concat(f.Blocked, f.Depends) {
		if most > 0 && i == most {
			fmt.Fprintf(w, "  ... %d more; --show 0 prints all\n", len(f.Blocked)+len(f.Depends)-i)
			break
		}
		word := "block "
		if i >= len(f.Blocked) {
			word = "may   "
		}
		printBlock(w, word, &b)
	}
	if f.Incomplete > 0 {
		fmt.Fprintf(w, "incomplete: %s recorded without all allowed calls (audit_on_allow = false)\n",
			counted(f.Incomplete, "run"))
	}
	if f.NotListed > 0 {
		fmt.Fprintf(w, "  ... and %s with still others\n", counted(f.NotListed, "call"))
	}
	for _, p := range f.Passed {
		fmt.Fprintf(w, "limit   run %s used %s %d, more than %d\n", p.Run, p.Limit, p.Used, p.Most)
	}
	for _, u := range f.NotTried {
		fmt.Fprintf(w, "not tried: %s\n", printable(u))
	}
}

func printBlock(w io.Writer, word string, b *ask.Block) {
	op := b.Op
	if b.Tool != "" {
		op += " " + b.Tool
	}
	fmt.Fprintf(w, "%s  %s %s %s  %dx in %s; first: run %s record %d\n",
		word, b.Cap, printable(op), printable(b.Target), b.Count, counted(b.Runs, "run"), b.First.Run, b.First.Seq)
	if b.Layer != "" {
		fmt.Fprintf(w, "          by %s  %s: %s\n", printable(b.Layer), printable(b.Source.String()), b.Reason)
	}
	if b.Doubt != "" {
		fmt.Fprintf(w, "          %s\n", printable(b.Doubt))
	}
}
