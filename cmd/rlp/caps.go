//go:build !slim

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher"
)

func (a *app) capsCommand() *cobra.Command {
	c := &cobra.Command{Use: "caps", Short: "See what an agent asks for, what is left of it, and why", Args: cobra.NoArgs, RunE: showHelp}
	c.AddCommand(a.capsLintCommand(), a.capsShowCommand(), a.capsDiffCommand(), a.capsExplainCommand(), a.capsSuggestCommand(), a.capsWhatifCommand(), a.capsOverrideCommand(), a.capsProfilesCommand(), a.capsFamiliesCommand(), a.capsSchemaCommand())
	return c
}

func (a *app) capsShowCommand() *cobra.Command {
	var f policyFlags
	c := &cobra.Command{
		Use: "show BUNDLE", Short: "Print base, layers and what is left", Args: exactly("a BUNDLE"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, plan, err := a.plan(args[0], f)
			if err != nil {
				return err
			}
			tools, err := c.attachments(plan)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(showDocument(c, plan, tools))
			}
			a.unsetNote(c)
			if err := a.printPlan(c.policy, c.paths); err != nil {
				return err
			}
			a.printTools(tools)
			return nil
		},
	}
	f.register(c.Flags())
	return c
}

func (a *app) capsDiffCommand() *cobra.Command {
	var f policyFlags
	c := &cobra.Command{
		Use: "diff BUNDLE", Short: "Print what each layer took away, or asked for in vain", Args: exactly("a BUNDLE"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, plan, err := a.plan(args[0], f)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{
					"agent": c.bundle.Manifest.Agent.String(), "kept": orEmpty(plan.Effective.Strings()),
					"changes": launcher.Flatten(plan.Changes), "bounded": boundedBy(plan.Effective),
				})
			}
			a.unsetNote(c)
			a.printDiff(plan)
			return nil
		},
	}
	f.register(c.Flags())
	return c
}

func (a *app) capsExplainCommand() *cobra.Command {
	var f policyFlags
	var ask requestFlags
	var q inquiry
	c := &cobra.Command{
		Use:   "explain BUNDLE REQUEST",
		Short: "Say why a request would be allowed or denied: every layer's vote",
		Long: `Explain prints the decision on a REQUEST, the scope that holds it, every layer's
vote with file and line, and the smallest edit that would change the decision,
which was tried on a copy of the policy.

With --run it does so for a run that was recorded, from the layers in its record,
as they held at its end, or at one of its records (--at): taint, reloads and
leases narrow a run while it goes on.

A REQUEST is ` + requestForms + `.`,
		Example: `  rlp caps explain agents/notes_digest kb:write:contacts
  rlp caps explain agents/notes_digest /tmp/out/x --write --deny fs:write:/tmp
  rlp caps explain agents/mailer https://api.example.com/send --method POST
  rlp caps explain agents/notes_digest 'kb_put drafts' --run 0198d2c4-7f1e --at 12`,
		Args: exactly("a BUNDLE", "a REQUEST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.asked = args[1]
			var err error
			if q.requests, err = readRequest(args[1], ask); err != nil {
				return err
			}
			if q.at > 0 && q.run == "" {
				return usagef("--at is a record of a run: say which with --run")
			}
			c, plan, err := a.plan(args[0], f)
			if err != nil {
				return err
			}
			if q.run != "" {
				return a.explainPast(cmd.Context(), c, q)
			}
			return a.explain(c, plan, c.policy, q, nil)
		},
	}
	f.register(c.Flags())
	ask.register(c.Flags())
	c.Flags().StringVar(&q.run, "run", "", "explain what the recorded run `ID` was answered")
	c.Flags().Uint64Var(&q.at, "at", 0, "as it held at the record `RUN_SEQ` of the run")
	return c
}

func (a *app) capsSchemaCommand() *cobra.Command {
	kinds := []string{string(policy.KindPolicy), string(policy.KindManifest), string(policy.KindOverride), string(policy.KindProfile), string(policy.KindGrant)}
	return &cobra.Command{
		Use: "schema [" + strings.Join(kinds, "|") + "]", Short: "Print the JSON Schema of a document, for editors",
		ValidArgs: kinds, Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && !slices.Contains(kinds, args[0]) {
				return usagef("rlp caps schema takes one of %s", strings.Join(kinds, ", "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			kind := policy.KindPolicy
			if len(args) == 1 {
				kind = policy.Kind(args[0])
			}
			_, err := a.stdout.Write(policy.Schema(kind))
			return err
		},
	}
}

// plan composes and plans: what these commands print is what launch enforces.
func (a *app) plan(path string, f policyFlags) (*composition, launcher.Plan, error) {
	c, err := a.compose(path, f)
	if err != nil {
		return nil, launcher.Plan{}, err
	}
	plan, err := launcher.NewPlan(c.policy)
	if err != nil {
		return nil, launcher.Plan{}, inputErr(err)
	}
	return c, plan, nil
}

// unsetNote says on stderr which placeholders are left out of what is printed.
func (a *app) unsetNote(c *composition) {
	for _, p := range c.unset {
		fmt.Fprintf(a.stderr, "rlp: left out, for it has no value: {%s}, %s; give it with --param %s=PATH\n", p.Name, printable(p.Description), p.Name)
	}
}

type layerDocument struct {
	Name    string            `json:"name"`
	Changes []launcher.Change `json:"changes"`
	Limits  map[string]int64  `json:"limits"`
}

func showDocument(c *composition, plan launcher.Plan, tools []launcher.Attachment) map[string]any {
	layers := []layerDocument{}
	changes := launcher.Flatten(plan.Changes)
	for _, l := range c.policy.Layers {
		d := layerDocument{Name: l.Name, Changes: []launcher.Change{}, Limits: l.Limits.Map()}
		for _, ch := range changes {
			if ch.Layer == l.Name {
				d.Changes = append(d.Changes, ch)
			}
		}
		layers = append(layers, d)
	}
	unset := []string{}
	for _, p := range c.unset {
		unset = append(unset, p.Name)
	}
	terms := termsOf(plan.Effective)
	return map[string]any{
		"agent": c.bundle.Manifest.Agent.String(), "version": c.bundle.Manifest.Version, "bundle_digest": c.bundle.Digest,
		"base": orEmpty(plan.Base.Strings()), "layers": layers, "effective": orEmpty(plan.Effective.Strings()),
		"except": launcher.GrantStrings(plan.Effective.Except()), "limits": plan.Limits.Map(), "params_unset": unset, "tools": tools,
		"redirected": redirectDocuments(c.paths), "limits_lower": c.policy.LowerLimits(plan.Limits), "hidden_tools": terms.Hidden, "constraints": terms.Constraints, "leases": terms.Leases,
	}
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// printPlan prints a plan for a person.
func (a *app) printPlan(p launcher.Policy, paths launcher.Paths) error {
	plan, err := launcher.NewPlan(p)
	if err != nil {
		return inputErr(err)
	}
	fmt.Fprintln(a.stdout, "base")
	a.list(beside(plan.Base, paths))
	for _, l := range p.Layers {
		var lines []string
		for _, ch := range launcher.Flatten(plan.Changes) {
			if ch.Layer == l.Name {
				lines = append(lines, changeLine(ch))
			}
		}
		if len(lines) > 0 {
			fmt.Fprintln(a.stdout, printable(l.Name))
			a.list(lines)
		}
	}
	fmt.Fprintln(a.stdout, "effective")
	a.list(plan.Effective.Strings())
	for _, s := range launcher.GrantStrings(plan.Effective.Except()) {
		fmt.Fprintf(a.stdout, "  except %s\n", printable(s))
	}
	fmt.Fprintln(a.stdout, "limits")
	for l := range caps.NumLimits {
		if v, ok := plan.Limits.Get(l); ok {
			fmt.Fprintf(a.stdout, "  %s = %d\n", l, v)
		}
	}
	for _, low := range p.LowerLimits(plan.Limits) {
		fmt.Fprintf(a.stdout, "  %s\n", printable(low.String()))
	}
	a.printTerms(plan.Effective)
	return nil
}

// beside are the capabilities of a base, each path beside what it was written as
// where links led it elsewhere.
func beside(base caps.Set, paths launcher.Paths) []string {
	var lines []string
	for _, g := range base.Grants() {
		for _, line := range g.Strings() {
			for _, r := range paths.Redirects {
				if r.Family == g.Family && r.Path == g.Scope && r.Layer == "base" {
					line += fmt.Sprintf("  (written %s, %s)", r.Written, r.Pos)
				}
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// A redirectDocument is a path of the policy that a link leads elsewhere.
type redirectDocument struct {
	Written string   `json:"written"`
	Path    string   `json:"path"`
	Link    string   `json:"link,omitempty"` // the first on the way; none of the root folder's own
	Layer   string   `json:"layer"`
	Source  caps.Pos `json:"source"`
}

// redirectDocuments are those of some families; of none: of all.
func redirectDocuments(paths launcher.Paths, of ...caps.Family) []redirectDocument {
	list := []redirectDocument{}
	for _, r := range paths.Redirects {
		if len(of) == 0 || slices.Contains(of, r.Family) {
			list = append(list, redirectDocument{r.Written, r.Path, r.Link, r.Layer, r.Pos})
		}
	}
	return list
}

func (a *app) list(lines []string) {
	if len(lines) == 0 {
		lines = []string{"nothing"}
	}
	for _, l := range lines {
		fmt.Fprintf(a.stdout, "  %s\n", printable(l))
	}
}

func changeLine(c launcher.Change) string {
	s := fmt.Sprintf("%-8s %s", c.Kind, c.Capability)
	if c.Source != "" {
		s += "  (" + c.Source + ")"
	}
	return s
}

func (a *app) printDiff(plan launcher.Plan) {
	for _, s := range plan.Effective.Strings() {
		fmt.Fprintf(a.stdout, "%-8s %s\n", "kept", printable(s))
	}
	for _, c := range launcher.Flatten(plan.Changes) {
		line := fmt.Sprintf("%-8s %s  (%s", c.Kind, c.Capability, c.Layer)
		if c.Source != "" {
			line += " " + c.Source
		}
		if c.Kind == caps.Ignored.String() {
			line += ": not in the base"
		}
		fmt.Fprintln(a.stdout, printable(line+")"))
	}
	for _, s := range boundedBy(plan.Effective) {
		fmt.Fprintf(a.stdout, "%-8s %s\n", "bounded", printable(s))
	}
}
