package ask

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

// A Suggestion is the least policy that allows what recorded runs did.
type Suggestion struct {
	Agent       string   `json:"agent"`
	Builds      []string `json:"bundle_digests"`
	Incomplete  []string `json:"incomplete"`
	Missing     []string `json:"missing"`     // paths in it that are not there
	NotGranted  []string `json:"not_granted"` // what was used, and no policy can name
	Policy      string   `json:"policy"`
	Runs        []string `json:"runs"`
	OtherBuilds int      `json:"runs_of_other_builds"`
	Wider       []Wider  `json:"wider"`
}

// A Wider is what a suggestion cannot but grant beside what was used.
type Wider struct {
	Capability string `json:"capability"`
	Why        string `json:"why"`
}

// A Used says which runs a suggestion is made of: all of a bundle, or one.
type Used struct {
	Bundle *bundles.Bundle
	Run    string
	Name   string // what it was called
}

// A Wanted is what a suggestion is to be.
type Wanted struct {
	Override bool // an operator's override, and no policy.caps
	Folders  int  // so many files make a folder; 0: never
	// Others says that it is for who does not operate: it names no layer that
	// protects what is the host's own.
	Others   bool
	IsFolder func(path string) bool
	Missing  func(path string) bool // nil: nobody looks
	// Written is the agent as the operator has it, which says how paths are
	// written; nil: as they are recorded.
	Written func(agent string) *Subject
	// Carried is what the override that is there says beside its [capabilities].
	Carried func(agent string) (analysis.Carried, error)
	// Learnt is what the last of the runs did beside what is recorded, Limits what bounded
	// it, AnyProgram why it has to be granted every program, Notes what is said of that.
	Learnt     []analysis.Decision
	Limits     map[string]int64
	AnyProgram string
	Notes      []string
	Options    policy.Options // by which the suggestion is read again
}

// A learner is told of recorded runs of one agent.
type learner struct {
	*analysis.Learner
	agent  string
	builds []string // bundle digests
	runs   map[string]*learnedRun
	notes  []string // what makes it incomplete
	left   int      // runs of other builds
	filled bool     // the policy has placeholders
	others bool
}

type learnedRun struct {
	allowed, counted int64
	ended            bool
}

// Suggest makes the least policy that allows what runs did.
func Suggest(ctx context.Context, log Log, used []Used, w Wanted) (*Suggestion, error) {
	l := &learner{Learner: analysis.NewLearner(), runs: map[string]*learnedRun{}, others: w.Others}
	for _, u := range used {
		if err := l.take(ctx, log, u); err != nil {
			return nil, err
		}
	}
	if len(l.runs) == 0 {
		return nil, inputf("there is no recorded run of %s (%s) in the audit log; launch it first", l.agent,
			strings.Join(l.builds, ", "))
	}
	for i := range w.Learnt {
		l.Decide(used[len(used)-1].Run, 0, &w.Learnt[i])
	}
	l.complete()
	as := w.Written(l.agent)
	isProgram := as != nil && as.Bundle.Manifest.Program
	if isProgram {
		l.notes = append(l.notes, "which files a program reads and writes is not recorded: what it needs of fs and fs_rw has to "+
			"be added")
	}
	opt := analysis.Options{
		Override: w.Override, Folders: w.Folders, IsFolder: w.IsFolder, Missing: w.Missing,
		Written: written(as), Head: append(l.head(w.Override), w.Notes...),
		AnyProgram: w.AnyProgram, Carried: limited(w.Limits), Program: isProgram,
	}
	if w.Override {
		var err error
		if opt.Carried, err = w.Carried(l.agent); err != nil {
			return nil, hostErr(err)
		}
	}
	made := l.Suggest(opt)
	if err := readable(made.Text, w); err != nil {
		return nil, err
	}
	d := &Suggestion{
		Agent: l.agent, Builds: l.builds, Runs: l.Runs(), OtherBuilds: l.left, Policy: made.Text, Wider: []Wider{},
		Missing: orEmpty(made.Missing), NotGranted: orEmpty(made.Unsaid), Incomplete: orEmpty(l.notes),
	}
	for _, wider := range made.Wider {
		d.Wider = append(d.Wider, Wider{wider.Grant.String(), wider.Why})
	}
	return d, nil
}

// limited are limits as a policy has them.
func limited(limits map[string]int64) (c analysis.Carried) {
	for i, key := range slices.Sorted(maps.Keys(limits)) {
		if i == 0 {
			c.Tables = "[limits]\n"
		}
		c.Tables += fmt.Sprintf("%s = %d\n", key, limits[key])
	}
	return c
}

// take takes in the runs that u means.
func (l *learner) take(ctx context.Context, log Log, u Used) error {
	filter := kb.Filter{Run: u.Run}
	build := ""
	if b := u.Bundle; b != nil {
		filter.Agent, build = b.Manifest.Agent.String(), b.Digest
		l.filled = l.filled || len(b.Manifest.Params) > 0
		if err := l.of(filter.Agent, build); err != nil {
			return err
		}
	}
	others := map[string]bool{}
	ours := func(run, of string) bool {
		if build != "" && of != build {
			others[run] = true
			return false
		}
		return true
	}
	err := eachRecord(ctx, log, filter, func(g *audit.Glance, r *analysis.Record) error {
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
		return inputf("%s is neither a bundle nor a run in the audit log; rlp audit list shows all", u.Name)
	}
	return nil
}

// of keeps a suggestion to one agent.
func (l *learner) of(agent, build string) error {
	if l.agent != "" && l.agent != agent {
		return usagef("these are runs of two agents, %s and %s; a policy is one agent's", l.agent, agent)
	}
	l.agent = agent
	if !slices.Contains(l.builds, build) {
		l.builds = append(l.builds, build)
	}
	return nil
}

func (l *learner) decided(g *audit.Glance, r *analysis.Record) error {
	run, err := l.runOf(r.Run, string(g.Agent), string(g.Bundle))
	if err != nil {
		return err
	}
	if !r.Deny && r.Op != "environ_get" { // which is noted, and not counted
		run.allowed++
	}
	if l.others && r.Layer == caps.ProtectedLayer {
		r.Layer = caps.HostLayer
	}
	l.Decide(r.Run, r.RunSeq, &r.Decision)
	return nil
}

func (l *learner) event(r *audit.Record) error {
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
	l.Begin(analysis.Run{ID: r.Head.RunID, Held: held})
	return nil
}

func (l *learner) runOf(id, agent, build string) (*learnedRun, error) {
	run := l.runs[id]
	if run == nil {
		if err := l.of(agent, build); err != nil {
			return nil, err
		}
		run = new(learnedRun)
		l.runs[id] = run
	}
	return run, nil
}

func decisionOf(d *audit.DecisionRecord) *analysis.Decision {
	return &analysis.Decision{
		Cap: d.Cap, Op: d.Op, Target: d.Target, Tool: d.Tool, Reason: d.Reason, Layer: d.Layer, Deny: d.Deny,
	}
}

// complete says of which runs not everything is known.
func (l *learner) complete() {
	for _, id := range l.Runs() {
		switch run := l.runs[id]; {
		case !run.ended:
			l.notes = append(l.notes, fmt.Sprintf("run %s has not ended, or was killed: what it still did is not known", id))
		case run.allowed < run.counted:
			l.notes = append(l.notes, fmt.Sprintf("run %s was recorded without %d of its %d allowed calls (audit_on_allow = "+
				"false); launch with --audit-allow",
				id, run.counted-run.allowed, run.counted))
		}
	}
}

func (l *learner) head(override bool) []string {
	what := "the least policy.caps"
	if override {
		what = "an override"
	}
	ids := l.Runs()
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

// readable reads a suggestion as a launch would: what is printed is valid.
func readable(text string, w Wanted) error {
	var findings []policy.Finding
	if w.Override {
		_, findings = policy.ParseLayer("override:suggested", "suggested", []byte(text), w.Options)
	} else {
		_, findings = policy.ParseBase("suggested", []byte(text), w.Options)
	}
	if err := policy.AsError(findings); err != nil {
		return fmt.Errorf("the suggestion would not be read (is a domain no more in config.toml?): %w", err)
	}
	return nil
}

// written spells paths and programs as the policy of s does: records have them in
// their canonical form.
func written(s *Subject) func(caps.Family, string) []string {
	if s == nil {
		return nil
	}
	programs := map[string][]string{}
	for _, name := range s.Execs {
		if r, err := s.Programs(name); err == nil && name != "*" {
			programs[r.Path] = append(programs[r.Path], name)
		}
	}
	// A path through a link is refused by a launch, and so is an override that has one.
	aliases := slices.DeleteFunc(slices.Clone(s.Paths.Aliases), func(a jail.Alias) bool {
		return slices.ContainsFunc(s.Paths.Redirected(), func(r run.Redirect) bool { return r.Written == a.Written })
	})
	return func(f caps.Family, name string) []string {
		switch {
		case f == caps.FS:
			return []string{writtenPath(aliases, name)}
		case f == caps.Exec && programs[name] != nil:
			return programs[name]
		}
		return []string{name}
	}
}

func writtenPath(aliases []jail.Alias, name string) string {
	for _, alias := range aliases {
		if rest, is := places.Below(name, alias.Canonical); is {
			return alias.Written + rest
		}
	}
	return name
}

// WithoutLinks is where a path leads that leads through a link, for which a launch
// would be refused; any other text as it is.
func WithoutLinks(path string) string {
	if to, err := jail.Canonical(path); err == nil && to.Redirect() != "" {
		return to.Path
	}
	return path
}
