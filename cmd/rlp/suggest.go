//go:build !slim

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/internal/foresight"
	"runloop.dev/rlp/internal/jail"
	"runloop.dev/rlp/kb"
)

type suggestFlags struct {
	override bool
	folders  int
}

func (a *app) capsSuggestCommand() *cobra.Command {
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
  rlp caps suggest --override agents/notes_digest | rlp caps override agents/notes_digest - --save --narrow
  rlp caps suggest 0198d2c4-7f1e --folders 5`,
		Args: atLeastOne("BUNDLE or a RUN"),
		RunE: func(c *cobra.Command, args []string) error {
			if f.folders < 0 {
				return usagef("--folders %d: so many files make a folder, from 1 on; 0 makes none", f.folders)
			}
			return a.withStore(c.Context(), auditFlags{}, func(ctx context.Context, s *kb.Store, _ kb.Filter) error {
				return a.suggest(ctx, s, args, f)
			})
		},
	}
	c.Flags().BoolVar(&f.override, "override", false, "print an operator's override, which narrows, in place of a policy.caps")
	c.Flags().IntVar(&f.folders, "folders", 0, "where `N` or more files of one folder were used, grant the folder; 0: never")
	return c
}

// A lesson is what recorded runs teach about one agent.
type lesson struct {
	app     *app
	learner *foresight.Learner
	agent   string
	builds  []string // bundle digests
	bundle  string   // a path of the bundle; "" when only runs are known
	runs    map[string]*lessonRun
	notes   []string // what makes it incomplete
	left    int      // runs of other builds
	filled  bool     // the policy has placeholders
}

type lessonRun struct {
	allowed, counted int64
	ended            bool
}

func (a *app) suggest(ctx context.Context, s *kb.Store, args []string, f suggestFlags) error {
	l := &lesson{app: a, learner: foresight.NewLearner(), runs: map[string]*lessonRun{}}
	for _, arg := range args {
		if err := l.take(ctx, s, arg); err != nil {
			return err
		}
	}
	if len(l.runs) == 0 {
		return inputErr(fmt.Errorf("there is no recorded run of %s (%s) in the audit log; launch it first", l.agent, strings.Join(l.builds, ", ")))
	}
	l.complete()
	opt := foresight.Options{Override: f.override, Folders: f.folders, IsFolder: isFolder, Missing: isMissing, Written: l.written(), Head: l.head(f.override)}
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	if path := h.Override(l.agent); f.override {
		data, err := readNarrowing(path)
		if err == nil {
			opt.Carried, err = foresight.Carry(path, data)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return inputErr(err)
		}
	}
	made := l.learner.Suggest(opt)
	if err := check(made.Text, f.override, a.options(h, cfg)); err != nil {
		return err
	}
	l.tell(made)
	if a.json {
		return a.printJSON(l.json(made))
	}
	_, err = fmt.Fprint(a.stdout, made.Text)
	return err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// take takes in the runs that an argument means: those of a bundle where there
// is one at that path, else one run.
func (l *lesson) take(ctx context.Context, s *kb.Store, arg string) error {
	filter := kb.Filter{}
	build := ""
	if _, err := os.Lstat(arg); err == nil {
		b, err := l.app.openBundle(arg)
		if err != nil {
			return err
		}
		filter.Agent, build, l.bundle = b.Manifest.Agent.String(), b.Digest, arg
		l.filled = l.filled || len(b.Manifest.Params) > 0
		if err := l.of(filter.Agent, build); err != nil {
			return err
		}
	} else {
		run, err := wholeRun(ctx, s, arg)
		if err != nil {
			return fmt.Errorf("%s is no bundle: %w", arg, err)
		}
		filter.Run = run
	}
	others := map[string]bool{}
	ours := func(run, of string) bool {
		if build != "" && of != build {
			others[run] = true
			return false
		}
		return true
	}
	err := eachRecord(ctx, s, filter, func(g *audit.Glance, r *foresight.Record) error {
		if !ours(r.Run, string(g.Bundle)) {
			return nil
		}
		return l.decided(g, r)
	}, func(r *audit.Record) error {
		if !ours(r.Head.RunID, r.Head.BundleDigest) {
			return nil
		}
		return l.event(r)
	})
	if err != nil {
		return err
	}
	l.left += len(others)
	if filter.Run != "" && l.runs[filter.Run] == nil {
		return inputErr(fmt.Errorf("%s is neither a bundle nor a run in the audit log; rlp audit list shows all", arg))
	}
	return nil
}

// of keeps a suggestion to one agent.
func (l *lesson) of(agent, build string) error {
	if l.agent != "" && l.agent != agent {
		return usagef("these are runs of two agents, %s and %s; a policy is one agent's", l.agent, agent)
	}
	l.agent = agent
	if !slices.Contains(l.builds, build) {
		l.builds = append(l.builds, build)
	}
	return nil
}

func (l *lesson) decided(g *audit.Glance, r *foresight.Record) error {
	run, err := l.runOf(r.Run, string(g.Agent), string(g.Bundle))
	if err != nil {
		return err
	}
	if !r.Deny && r.Op != "environ_get" { // which is noted, and not counted
		run.allowed++
	}
	l.learner.Decide(r.Run, r.RunSeq, &r.Decision)
	return nil
}

func (l *lesson) event(r *audit.Record) error {
	run, err := l.runOf(r.Head.RunID, r.Head.Agent, r.Head.BundleDigest)
	if err != nil {
		return err
	}
	e := r.Event
	if audit.Ends(e.Kind) {
		run.counted, run.ended = e.Usage["allowed"], e.Usage != nil
		return nil
	}
	held, err := heldAtStart(e)
	if err != nil {
		l.notes = append(l.notes, fmt.Sprintf("what run %s held cannot be read: %v", r.Head.RunID, err))
	}
	l.learner.Begin(foresight.Run{ID: r.Head.RunID, Held: held})
	return nil
}

func (l *lesson) runOf(id, agent, build string) (*lessonRun, error) {
	run := l.runs[id]
	if run == nil {
		if err := l.of(agent, build); err != nil {
			return nil, err
		}
		run = new(lessonRun)
		l.runs[id] = run
	}
	return run, nil
}

func decisionOf(d *audit.DecisionRecord) *foresight.Decision {
	return &foresight.Decision{Cap: d.Cap, Op: d.Op, Target: d.Target, Tool: d.Tool, Reason: d.Reason, Layer: d.Layer, Deny: d.Deny}
}

// complete says of which runs not everything is known.
func (l *lesson) complete() {
	for _, id := range l.learner.Runs() {
		switch run := l.runs[id]; {
		case !run.ended:
			l.notes = append(l.notes, fmt.Sprintf("run %s has not ended, or was killed: what it still did is not known", id))
		case run.allowed < run.counted:
			l.notes = append(l.notes, fmt.Sprintf("run %s was recorded without %d of its %d allowed calls (audit_on_allow = false); launch with --audit-allow",
				id, run.counted-run.allowed, run.counted))
		}
	}
}

func (l *lesson) head(override bool) []string {
	what := "the least policy.caps"
	if override {
		what = "an override"
	}
	ids := l.learner.Runs()
	runs := "run " + ids[0]
	if n := len(ids); n > 1 {
		runs = fmt.Sprintf("%d runs, from %s to %s", n, ids[0], ids[n-1])
	}
	head := []string{fmt.Sprintf("%s: %s of what it used in %s", l.agent, what, runs)}
	for _, b := range l.builds {
		head = append(head, "bundle "+b)
	}
	if l.filled {
		head = append(head, "the placeholders of the bundle are written out, as these runs had them")
	}
	for _, n := range l.notes {
		head = append(head, "incomplete: "+n)
	}
	return head
}

// tell says on stderr what a reader of the document must know.
func (l *lesson) tell(made foresight.Suggestion) {
	warn := func(format string, args ...any) {
		fmt.Fprintf(l.app.stderr, "rlp: %s\n", printable(fmt.Sprintf(format, args...)))
	}
	for _, n := range l.notes {
		warn("incomplete: %s", n)
	}
	for _, u := range made.Unsaid {
		warn("used, and not granted, for no policy can name it: %s", u)
	}
	if n := len(made.Missing); n > 0 {
		warn("%d paths in it are not there now, such as %s; a launch refuses what is granted and not there, unless security.path_profile is \"relaxed\" (--folders 1 grants the folders of files in their place)",
			n, made.Missing[0])
	}
	if l.left > 0 {
		warn("left out: %d runs of other builds of %s", l.left, l.agent)
	}
}

func (l *lesson) json(made foresight.Suggestion) map[string]any {
	wider := []map[string]string{}
	for _, w := range made.Wider {
		wider = append(wider, map[string]string{"capability": w.Grant.String(), "why": w.Why})
	}
	return map[string]any{
		"agent": l.agent, "bundle_digests": l.builds, "runs": l.learner.Runs(), "runs_of_other_builds": l.left, "policy": made.Text,
		"wider": wider, "missing": orEmpty(made.Missing), "not_granted": orEmpty(made.Unsaid), "incomplete": orEmpty(l.notes),
	}
}

// check reads the document as a launch would: what is printed is valid.
func check(text string, override bool, opt policy.Options) error {
	var findings []policy.Finding
	if override {
		_, findings = policy.ParseLayer("override:suggested", "suggested", []byte(text), opt)
	} else {
		_, findings = policy.ParseBase("suggested", []byte(text), opt)
	}
	if err := policy.AsError(findings); err != nil {
		return fmt.Errorf("the suggestion would not be read (is a domain no more in config.toml?): %w", err)
	}
	return nil
}

// written spells paths and programs as the bundle's policy does, where there is
// a bundle: records have them in their canonical form.
func (l *lesson) written() func(caps.Family, string) []string {
	path := l.bundle
	if path == "" {
		h, err := l.app.home()
		if err != nil {
			return nil
		}
		path = filepath.Join(h.Agents(), l.agent)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	c, err := l.app.compose(path, policyFlags{})
	if err != nil {
		return nil // it cannot be launched as it is; the canonical spelling is right as well
	}
	programs := map[string][]string{}
	if len(c.programs) > 0 {
		for _, name := range c.programs[0] {
			if r, err := c.canonicalProgram(name); err == nil && name != "*" {
				programs[r.Path] = append(programs[r.Path], name)
			}
		}
	}
	return func(f caps.Family, name string) []string {
		switch {
		case f == caps.FS:
			return []string{writtenPath(c.paths.Aliases, name)}
		case f == caps.Exec && programs[name] != nil:
			return programs[name]
		}
		return []string{name}
	}
}

func writtenPath(aliases []jail.Alias, name string) string {
	for _, alias := range aliases {
		if rest, ok := strings.CutPrefix(name, alias.Canonical); ok && (rest == "" || rest[0] == '/') {
			return alias.Written + rest
		}
	}
	return name
}

// openBundle opens the bundle of an operator's own tenant.
func (a *app) openBundle(path string) (*bundles.Bundle, error) {
	if err := a.ownPaths(path); err != nil {
		return nil, err
	}
	b, err := bundles.Open(path)
	if err != nil {
		return nil, inputErr(err)
	}
	return b, nil
}
