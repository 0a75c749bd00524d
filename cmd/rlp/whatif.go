//go:build !slim

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/config"
	"runloop.dev/rlp/internal/foresight"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/internal/jail"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
)

type whatifFlags struct {
	policyFlags
	run, agent, since string
	strict            bool
	limit             int
}

func (a *app) capsWhatifCommand() *cobra.Command {
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
			audit := auditFlags{run: f.run, agent: f.agent, since: f.since}
			return a.withStore(c.Context(), audit, func(ctx context.Context, s *kb.Store, filter kb.Filter) error {
				return a.whatif(ctx, s, filter, f)
			})
		},
	}
	fs := c.Flags()
	fs.StringArrayVar(&f.overrides, "override", nil, "an override `FILE`, which need not lie among the others; - is stdin")
	fs.StringArrayVar(&f.profiles, "profile", nil, "the profile `NAME`")
	fs.StringArrayVar(&f.allow, "allow", nil, "bound the family of `CAP` to it; may be given again")
	fs.StringArrayVar(&f.deny, "deny", nil, "take `CAP` away; may be given again")
	fs.StringArrayVar(&f.limits, "limit", nil, "set a limit by `KEY=N`")
	fs.StringVar(&f.run, "run", "", "only the run `ID`")
	fs.StringVar(&f.agent, "agent", "", "only the agent `NAME`")
	fs.StringVar(&f.since, "since", "", "only from then on: a time (2026-01-02T15:04:05Z) or an age (90m, 24h, 7d)")
	fs.IntVar(&f.limit, "show", 100, "print at most `N` requests; 0: all")
	fs.BoolVar(&f.strict, "strict", false, "exit with 1 when something would be blocked, or may be")
	return c
}

func (a *app) whatif(ctx context.Context, s *kb.Store, filter kb.Filter, f whatifFlags) error {
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	layers, err := a.candidates(h, cfg, f.policyFlags)
	if err != nil {
		return err
	}
	domains := append(policy.BuiltinDomains(), cfg.KB.Domains...)
	p, _, err := launcher.Canonical(launcher.Policy{Layers: layers}, launcher.Resolvers{Files: jail.Canonical, Programs: (&composition{home: h, config: cfg}).canonicalProgram})
	if err != nil {
		return inputErr(err)
	}
	p.Base = foresight.Everything(domains)
	plan, err := launcher.NewPlan(p)
	if err != nil {
		return inputErr(err)
	}
	sight := foresight.New(plan.Effective)
	if err := decideAgain(ctx, s, filter, sight); err != nil {
		return err
	}
	forecast := sight.Forecast()
	if forecast.Runs == 0 && f.run != "" {
		return inputErr(fmt.Errorf("the audit log has no run %s that was asked for; rlp audit list shows all", f.run))
	}
	if forecast.Runs == 0 {
		fmt.Fprintln(a.stderr, "rlp: no recorded run is one of those that were asked for, so that nothing was decided again; rlp audit list shows all")
	}
	if a.json {
		err = a.printJSON(forecastDocument(layers, forecast, untried(plan.Effective)))
	} else {
		a.printForecast(layers, forecast, f.limit)
		for _, u := range untried(plan.Effective) {
			fmt.Fprintf(a.stdout, "not tried: %s\n", printable(u))
		}
	}
	status := launcher.StatusOK
	if f.strict && forecast.Blocked+forecast.Depends+int64(len(forecast.Passed)) > 0 {
		status = launcher.StatusFinding
	}
	return ending(status, err)
}

// untried is what a candidate says and no record can be held against.
func untried(candidates caps.Set) []string {
	list := []string{}
	if len(candidates.Leases()) > 0 {
		list = append(list, "[leases]: a record does not say when a lease would have ended, or been used up")
	}
	if len(candidates.Constraints().Map()) > 0 {
		list = append(list, "[constraints]: a record does not say what they bound")
	}
	return list
}

// candidates are the layers that are tried.
func (a *app) candidates(h home.Home, cfg config.Config, f policyFlags) ([]*caps.Layer, error) {
	c := &composition{home: h, config: cfg}
	if err := own(h, f.overrides...); err != nil {
		return nil, err
	}
	if slices.Contains(f.overrides, "-") {
		text, err := a.draft("-")
		if err != nil {
			return nil, err
		}
		a.drafts = map[string][]byte{"-": text}
	}
	var layers []*caps.Layer
	for _, path := range f.overrides {
		l, err := a.overrideLayer(c, path, false, &policy.Given{Values: map[string]policy.Value{}})
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	for _, name := range f.profiles {
		p, err := a.profile(c, name)
		if err != nil {
			return nil, err
		}
		layers = append(layers, p.Layer)
	}
	if len(f.allow)+len(f.deny)+len(f.limits) > 0 {
		l, err := callerLayer(f, append(policy.BuiltinDomains(), cfg.KB.Domains...))
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	if len(layers) == 0 {
		return nil, usagef("whatif needs a policy to try: --override FILE, --profile NAME, --allow, --deny or --limit")
	}
	return layers, nil
}

// decideAgain puts the records that filter asks for to sight.
func decideAgain(ctx context.Context, s *kb.Store, filter kb.Filter, sight *foresight.Foresight) error {
	decided := func(_ *audit.Glance, r *foresight.Record) error {
		sight.Decide(r)
		return nil
	}
	return eachRecord(ctx, s, filter, decided, func(r *audit.Record) error {
		if r.Event.Kind != audit.KindRunStart {
			sight.End(r.Head.RunID, r.Event.Usage)
			return nil
		}
		held, err := heldAtStart(r.Event)
		if err != nil {
			held = caps.Set{} // then every method is considered
		}
		sight.Begin(foresight.Run{ID: r.Head.RunID, Held: held})
		return nil
	})
}

// A blockDocument is one request that would be blocked, or may be.
type blockDocument struct {
	Cap    string   `json:"cap"`
	Op     string   `json:"op"`
	Tool   string   `json:"tool,omitempty"`
	Target string   `json:"target"`
	Count  int64    `json:"count"`
	Runs   int      `json:"runs"`
	Layer  string   `json:"layer,omitempty"`
	Source caps.Pos `json:"source"`
	Reason string   `json:"reason,omitempty"`
	Doubt  string   `json:"doubt,omitempty"`
	First  struct {
		Run    string `json:"run_id"`
		RunSeq uint64 `json:"run_seq"`
		Seq    uint64 `json:"seq"`
	} `json:"first"`
}

func forecastDocument(layers []*caps.Layer, f foresight.Forecast, untried []string) map[string]any {
	blocked, depends := []blockDocument{}, []blockDocument{}
	for _, b := range f.Blocks {
		d := blockDocument{Cap: b.Cap, Op: b.Op, Tool: b.Tool, Target: b.Target, Count: b.Count, Runs: b.Runs, Layer: b.Layer, Source: b.Pos, Doubt: b.Doubt.String()}
		if b.Layer != "" {
			d.Reason = b.Code.String()
		}
		d.First.Run, d.First.RunSeq, d.First.Seq = b.Run, b.RunSeq, b.Seq
		if b.Verdict == foresight.Blocked {
			blocked = append(blocked, d)
		} else {
			depends = append(depends, d)
		}
	}
	limits := []map[string]any{}
	for _, p := range f.Passed {
		limits = append(limits, map[string]any{"run_id": p.Run, "limit": p.Limit.String(), "used": p.Used, "most": p.Most})
	}
	return map[string]any{
		"candidates": layerNames(layers), "runs": f.Runs, "runs_blocked": f.RunsBlocked,
		"decisions": map[string]int64{"stay": f.Stays, "blocked": f.Blocked, "depend": f.Depends, "denied": f.Denied},
		"blocked":   blocked, "depends": depends, "not_listed": f.More, "limits_passed": limits, "not_tried": untried, "runs_incomplete": f.Unrecorded,
	}
}

func layerNames(layers []*caps.Layer) []string {
	names := []string{}
	for _, l := range layers {
		names = append(names, l.Name)
	}
	return names
}

func (a *app) printForecast(layers []*caps.Layer, f foresight.Forecast, most int) {
	fmt.Fprintf(a.stdout, "under %s, of %d runs:\n", printable(strings.Join(layerNames(layers), ", ")), f.Runs)
	fmt.Fprintf(a.stdout, "  %d allowed calls stay allowed, %d would be blocked (in %d runs), %d may be; %d were denied, and stay so\n",
		f.Stays, f.Blocked, f.RunsBlocked, f.Depends, f.Denied)
	for i, b := range f.Blocks {
		if most > 0 && i == most {
			fmt.Fprintf(a.stdout, "  ... %d more; --show 0 prints all\n", len(f.Blocks)-i)
			break
		}
		a.printBlock(b)
	}
	if f.Unrecorded > 0 {
		fmt.Fprintf(a.stdout, "incomplete: %d runs were recorded without all that they were allowed (audit_on_allow = false)\n", f.Unrecorded)
	}
	if f.More > 0 {
		fmt.Fprintf(a.stdout, "  ... and %d calls with still others\n", f.More)
	}
	for _, p := range f.Passed {
		fmt.Fprintf(a.stdout, "limit   run %s used %s %d, more than %d\n", p.Run, p.Limit, p.Used, p.Most)
	}
}

func (a *app) printBlock(b *foresight.Block) {
	word := "block "
	if b.Verdict == foresight.Depends {
		word = "may   "
	}
	op := b.Op
	if b.Tool != "" {
		op += " " + b.Tool
	}
	fmt.Fprintf(a.stdout, "%s  %s %s %s  %dx in %d runs; first: run %s record %d\n", word, b.Cap, printable(op), printable(b.Target), b.Count, b.Runs, b.Run, b.RunSeq)
	if b.Layer != "" {
		fmt.Fprintf(a.stdout, "          by %s  %s: %s\n", printable(b.Layer), printable(b.Pos.String()), b.Code)
	}
	if d := b.Doubt.String(); d != "" {
		fmt.Fprintf(a.stdout, "          %s\n", printable(d))
	}
}
