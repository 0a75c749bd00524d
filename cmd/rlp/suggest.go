package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/draft"
	"runloop.dev/rlp/launcher/program"
)

type suggestFlags struct {
	override bool
	folders  int
}

func capsSuggestCommand(a *app) *cobra.Command {
	var f suggestFlags
	c := &cobra.Command{
		Use:   "suggest BUNDLE|RUN...",
		Short: "Print the least policy that allows what recorded runs did",
		Long: `Suggest prints the least policy.caps that allows what recorded runs were allowed
and used, each line with the calls that needed it. A BUNDLE stands for every
recorded run of exactly that bundle, a RUN (or its beginning) for itself.

With --override it is an operator's override, which also takes away what a
policy.caps cannot leave out, such as deleting where an agent only wrote. What the
override that is there says beside its [capabilities], such as [params] and
[limits], stays in it; rlp caps override says what it would change, and saves it.

It grants no folder because of files in it (but with --folders), no wildcard
because of hosts, and no domain beside those that were used. What it cannot but
grant beside what was used is said in a comment, and so is what was asked for
and denied.`,
		Example: `  rlp caps suggest agents/notes_digest > policy.caps
  rlp caps suggest --override agents/notes_digest |
    rlp caps override agents/notes_digest - --save --narrow
  rlp caps suggest 0198d2c4-7f1e --folders 5`,
		Args: atLeastOne("BUNDLE or a RUN"),
		RunE: func(c *cobra.Command, args []string) error {
			if f.folders < 0 {
				return usagef("--folders %d: so many files make a folder, from 1 on; 0 makes none", f.folders)
			}
			return a.withStore(c.Context(), auditlog.Filter{}, func(ctx context.Context, s *kb.Store, _ kb.Filter) error {
				return suggestPolicy(ctx, a, s, args, f)
			})
		},
	}
	c.Flags().BoolVar(&f.override, "override", false,
		"print an operator's override, which narrows, in place of a policy.caps")
	c.Flags().IntVar(&f.folders, "folders", 0,
		"where `N` or more files of one folder were used, grant the folder; 0: never")
	return c
}

func suggestPolicy(ctx context.Context, a *app, s *kb.Store, args []string, f suggestFlags) error {
	made, err := draft.Recorded{Reader: a.reader(), Store: s}.SuggestOf(ctx, args, ask.Wanted{
		Override: f.override, Folders: f.folders,
	})
	if err != nil {
		return err
	}
	noteSuggestion(a.say, made)
	if a.json {
		return a.printJSON(made)
	}
	_, err = fmt.Fprint(a.stdout, made.Policy)
	return err
}

// noteSuggestion says on stderr what a reader of the document must know.
func noteSuggestion(say func(string), made *ask.Suggestion) {
	warn := func(format string, args ...any) {
		say(printable(fmt.Sprintf(format, args...)))
	}
	for _, n := range made.Incomplete {
		warn("incomplete: %s", n)
	}
	for _, u := range made.NotGranted {
		warn("used, and not granted, for no policy can name it: %s", u)
	}
	if n := len(made.Missing); n > 0 {
		warn("paths in it that do not exist now: %d, such as %s; a launch refuses a granted path that does not exist, unless "+
			"security.path_profile is \"relaxed\" (--folders 1 grants the folders of files in their place)",
			n, made.Missing[0])
	}
	if made.OtherBuilds > 0 {
		warn("left out: %s of other builds of %s", counted(made.OtherBuilds, "run"), made.Agent)
	}
}

// learn begins to learn what a program uses, where that was asked for.
func learn(a *app, f *runFlags) (*draft.Learning, error) {
	if f.learn == "" {
		return nil, nil
	}
	if f.dryRun {
		return nil, usagef("--learn and --dry-run: nothing is used by what is not started")
	}
	h, err := a.reader().Home()
	if err != nil {
		return nil, err
	}
	f.program.Learn = &program.Learnt{Home: h.Dir(), File: f.learn}
	return draft.Learn(a.reader(), &f.program)
}

// learnt writes what a run used.
func learnt(ctx context.Context, a *app, c *compose.Composition, l *draft.Learning, run string) error {
	if l == nil {
		return nil
	}
	return a.withStore(ctx, auditlog.Filter{}, func(ctx context.Context, s *kb.Store, _ kb.Filter) error {
		made, err := l.Write(ctx, draft.Recorded{Reader: a.reader(), Store: s}, c, run)
		if err != nil {
			a.say(printable("--learn: " + err.Error()))
			return err
		}
		noteSuggestion(a.say, made)
		a.say(printable(fmt.Sprintf("the least policy of what it used is in %s: rlp run --policy %s", l.File, l.File)))
		return nil
	})
}
