package main

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/serve/access"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/lanes"
)

// A wordSource says what a shell may offer for one word of the command line. What
// cannot be found out is not offered: completing says nothing of errors, and makes
// no home where there is none.
type wordSource func(context.Context, *app) []string

// flagWords are what the values of flags are, by the name of the flag. One whose
// usage names its values, as in `allow|deny`, needs no row.
var flagWords = map[string]wordSource{
	"profile": profileWords, "agent": agentWords, "run": runWords, "family": familyWords,
	"may": func(context.Context, *app) []string {
		return access.RightsOf(service.Launch | service.Read | service.Operate)
	},
}

// argumentWords are what the arguments of commands are. A command that is not here
// takes files, or nothing.
var argumentWords = map[string]wordSource{
	"rlp agent remove":  agentWords,
	"rlp audit show":    runWords,
	"rlp runs show":     runWords,
	"rlp runs wait":     runWords,
	"rlp runs cancel":   runWords,
	"rlp runs diff":     runWords,
	"rlp token revoke":  tokenWords,
	"rlp replay":        runWords,
	"rlp caps profiles": func(context.Context, *app) []string { return policy.BuiltinProfiles() },
	"rlp lanes":         func(context.Context, *app) []string { return lanes.Names() },
}

// namesBundle are the commands that take a path, or the name of an installed agent.
func namesBundle() []string {
	return []string{
		"rlp launch", "rlp agent inspect", "rlp caps diff", "rlp caps explain", "rlp caps lint", "rlp caps override",
		"rlp caps show", "rlp caps suggest", "rlp audit scan",
	}
}

// complete teaches a command, and those below it, what to offer to a shell.
func completeWords(a *app, c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { completeFlag(a, c, f) })
	words, ok := argumentWords[c.CommandPath()]
	switch {
	case ok:
		c.ValidArgsFunction = offerWords(a, words)
	case slices.Contains(namesBundle(), c.CommandPath()):
		names := offerWords(a, agentWords)
		c.ValidArgsFunction = func(c *cobra.Command, taken []string, begun string) (
			found []cobra.Completion, and cobra.ShellCompDirective,
		) {
			if begun != "" && len(taken) == 0 {
				found, _ = names(c, taken, begun)
			}
			return found, cobra.ShellCompDirectiveDefault // and files, where none is called so
		}
	}
	for _, below := range c.Commands() {
		completeWords(a, below)
	}
}

var alternatives = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`([a-z_]+(?:\\|[a-z_]+)+)`") })

func completeFlag(a *app, c *cobra.Command, f *pflag.Flag) {
	words, ok := flagWords[f.Name]
	if m := alternatives().FindStringSubmatch(f.Usage); m != nil {
		fixed := strings.Split(m[1], "|")
		words, ok = func(context.Context, *app) []string { return fixed }, true
	}
	if ok {
		_ = c.RegisterFlagCompletionFunc(f.Name, offerWords(a, words)) // one that has its own keeps it
	}
}

// offer is a source in the form that cobra asks. It has a second: people wait.
func offerWords(a *app, words wordSource) cobra.CompletionFunc {
	return func(c *cobra.Command, taken []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx := c.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		found := slices.DeleteFunc(words(ctx, a), func(w string) bool {
			return !strings.HasPrefix(w, begun) || slices.Contains(taken, w)
		})
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// present is the home, if it is there.
func presentWords(a *app) (home.Home, bool) {
	dir, err := home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil {
		return home.Home{}, false
	}
	if _, err := os.Stat(dir); err != nil {
		return home.Home{}, false
	}
	if _, err := ident.ParseTenant(a.tenant); err != nil {
		return home.Home{}, false
	}
	h, err := home.Open(dir, a.tenant)
	return h, err == nil
}

func profileWords(_ context.Context, a *app) []string {
	h, ok := presentWords(a)
	if !ok {
		return policy.BuiltinProfiles()
	}
	names, _ := compose.ProfileNames(h)
	return names
}

func agentWords(_ context.Context, a *app) []string {
	h, ok := presentWords(a)
	if !ok {
		return nil
	}
	names, _ := bundles.Installed(h.Agents())
	return names
}

// tokenWords are those that can be revoked yet.
func tokenWords(_ context.Context, a *app) []string {
	h, ok := presentWords(a)
	if !ok {
		return nil
	}
	list, _ := access.OpenStore(h.Tokens(), time.Now).List()
	var ids []string
	for _, l := range list {
		if l.Token == nil || l.Token.Revoked.IsZero() {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

func familyWords(context.Context, *app) []string {
	var names []string
	for f := range caps.NumFamilies {
		names = append(names, f.String())
	}
	return names
}

// mostRuns is how many runs a shell offers.
const mostRuns = 50

// runWords are the newest runs.
func runWords(ctx context.Context, a *app) []string {
	if _, ok := presentWords(a); !ok || emptyHome(a) != nil {
		return nil
	}
	var runs []string
	_ = a.withStore(ctx, auditlog.Filter{}, func(ctx context.Context, s *kb.Store, _ kb.Filter) error {
		for r, err := range s.Runs(ctx, kb.RunQuery{Limit: mostRuns}) {
			if err != nil {
				return err
			}
			runs = append(runs, r.RunID)
		}
		return nil
	})
	return runs
}
