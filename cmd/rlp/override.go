//go:build !slim

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/foresight"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/internal/jail"
	"runloop.dev/rlp/internal/tomlfile"
	"runloop.dev/rlp/launcher"
)

type overrideFlags struct {
	was          string
	save, narrow bool
}

func (a *app) capsOverrideCommand() *cobra.Command {
	var f overrideFlags
	c := &cobra.Command{
		Use:   "override BUNDLE [FILE]",
		Short: "Print the override of an agent, or say what another one would change, and save it",
		Long: `Override prints the operator's own override of an agent. With a FILE (- is stdin) it
says what that would change in its place: what it takes away, and what of the
agent's own policy it gives back that is taken away now. Nothing can be had by it
that the agent does not ask for itself.

With --save it takes the place of the override, in one step, once it was read
without an error and the agent could be launched under it; what was there before
is kept beside it. It holds for every tenant, and for runs under way from their
next turn on.`,
		Example: `  rlp caps override agents/notes_digest
  rlp caps suggest --override agents/notes_digest | rlp caps override agents/notes_digest - --save`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("%s takes a BUNDLE, and a FILE if there is one to try", c.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && (f.save || f.narrow || f.was != "") {
				return usagef("--save, --narrow and --was are about a FILE; name one, or - for stdin")
			}
			return a.override(args, f)
		},
	}
	fs := c.Flags()
	fs.BoolVar(&f.save, "save", false, "put it in the place of the override that is there")
	fs.BoolVar(&f.narrow, "narrow", false, "refuse to save what gives anything back")
	fs.StringVar(&f.was, "was", "", "refuse to save unless the override that is there has this `DIGEST`; none: there is none")
	return c
}

// An overrideDocument is what rlp caps override prints.
type overrideDocument struct {
	Agent  string         `json:"agent"`
	Path   string         `json:"path"`
	Text   string         `json:"text"`
	Digest string         `json:"digest"` // SHA-256 of the text; "none": there is no override
	Change *overrideDraft `json:"change,omitempty"`
}

// An overrideDraft is what would be, or is, in the place of an override.
type overrideDraft struct {
	Digest   string   `json:"digest"`
	Narrower bool     `json:"narrower"` // it leaves nothing that is not left now
	Taken    []string `json:"taken"`
	Given    []string `json:"given_back"`
	Wider    []string `json:"wider"` // why it is not narrower: what any agent could have by it, not this one alone
	Left     []string `json:"left"`
	Unset    []string `json:"params_unset"` // what they stand for is in none of the lists
	Limits   []string `json:"limits"`
	Notes    []string `json:"notes"`
	Saved    bool     `json:"saved"`
	Previous string   `json:"previous,omitempty"` // where what was there before is kept
}

const noOverride = "none"

func digestOf(data []byte) string {
	if data == nil {
		return noOverride
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (a *app) override(args []string, f overrideFlags) error {
	now, err := a.compose(args[0], policyFlags{})
	if err != nil {
		return err
	}
	d := overrideDocument{Agent: now.bundle.Manifest.Agent.String()}
	d.Path = now.home.Override(d.Agent)
	if f.save {
		free, err := home.HoldDir(filepath.Dir(d.Path))
		if err != nil {
			return inputErr(fmt.Errorf("saving the override: %w", err))
		}
		defer free()
	}
	data, err := readNarrowing(d.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return inputErr(err)
	}
	d.Text, d.Digest = string(data), digestOf(data)
	if f.save { // what is composed is what was read, whoever saved in between
		if now, err = a.composeUnder(args[0], d.Path, data); err != nil {
			return err
		}
	}
	if len(args) == 1 {
		return a.printOverride(d)
	}
	text, err := a.draft(args[1])
	if err != nil {
		return err
	}
	if d.Change, err = a.tryOverride(now, d.Path, text); err != nil {
		return err
	}
	if f.save {
		if err := d.mayBeSaved(f); err != nil {
			return err
		}
		if d.Change.Previous, err = home.Replace(d.Path, data, text); err != nil {
			return inputErr(fmt.Errorf("saving the override: %w", err))
		}
		d.Change.Saved = true
	}
	return a.printOverride(d)
}

// mayBeSaved refuses what the flags forbid.
func (d *overrideDocument) mayBeSaved(f overrideFlags) error {
	if f.was != "" && f.was != d.Digest {
		return inputErr(fmt.Errorf("%s is not the one any more that was edited; look at it again, and edit that", d.Path))
	}
	if f.narrow && !d.Change.Narrower {
		return inputErr(fmt.Errorf("it gives back what is taken away now, and --narrow forbids that: %s", strings.Join(d.Change.Wider, "; ")))
	}
	return nil
}

// draft reads an override that is not among the others; - is stdin.
func (a *app) draft(path string) ([]byte, error) {
	if path != "-" {
		if err := a.ownPaths(path); err != nil {
			return nil, err
		}
		data, err := tomlfile.ReadFile(path, 0)
		if err != nil {
			return nil, inputErr(fmt.Errorf("reading an override: %w", err))
		}
		return data, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.stdin, tomlfile.DefaultMax+1))
	switch {
	case err != nil:
		return nil, inputErr(fmt.Errorf("reading an override from stdin: %w", err))
	case len(data) > tomlfile.DefaultMax:
		return nil, inputErr(fmt.Errorf("the override on stdin has more than %d bytes", tomlfile.DefaultMax))
	}
	return append([]byte{}, data...), nil
}

// tryOverride says what text in the place of the override at path would change.
func (a *app) tryOverride(now *composition, path string, text []byte) (*overrideDraft, error) {
	then, err := a.composeUnder(now.path, path, text)
	if err != nil {
		return nil, err
	}
	old, made := overrideOf(now, path), overrideOf(then, path)
	before, err := launcher.NewPlan(now.policy)
	if err != nil {
		return nil, inputErr(err)
	}
	after, err := launcher.NewPlan(then.policy)
	if err != nil {
		return nil, inputErr(err)
	}
	both := then.policy
	if old != nil {
		both.Layers = append(slices.Clip(both.Layers), old)
	}
	shared, err := launcher.NewPlan(both)
	if err != nil {
		return nil, inputErr(err)
	}
	d := &overrideDraft{Digest: digestOf(text), Left: orEmpty(after.Effective.Strings()), Unset: paramNames(then.unset), Limits: []string{}, Notes: []string{}}
	d.Taken = without(before.Effective.Strings(), shared.Effective.Strings())
	d.Given = without(after.Effective.Strings(), shared.Effective.Strings())
	was, is := before.Limits.Map(), after.Limits.Map()
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if was[name] != is[name] {
			d.Limits = append(d.Limits, fmt.Sprintf("%s: %d, now %d", name, is[name], was[name]))
		}
	}
	for _, f := range then.findings {
		d.Notes = append(d.Notes, f.String())
	}
	d.Wider, err = a.wider(now, then, old, made)
	d.Wider, d.Narrower = orEmpty(d.Wider), len(d.Wider) == 0
	return d, err
}

// composeUnder composes a bundle as if text were the override at path; nil: what
// is there.
func (a *app) composeUnder(bundle, path string, text []byte) (*composition, error) {
	with := *a
	if text != nil {
		with.drafts = map[string][]byte{path: text}
	}
	return with.compose(bundle, policyFlags{})
}

// wider lists what made leaves and old does not, whatever it is that an agent
// asks for, in the words of an override.
func (a *app) wider(now, then *composition, old, made *caps.Layer) ([]string, error) {
	everything := launcher.Policy{Base: foresight.Everything(append(policy.BuiltinDomains(), now.config.KB.Domains...))}
	held := func(layers ...*caps.Layer) (launcher.Plan, error) {
		p := everything
		for _, l := range layers {
			if l != nil {
				p.Layers = append(p.Layers, l)
			}
		}
		p, _, err := launcher.Canonical(p, launcher.Resolvers{Files: jail.Canonical, Programs: now.canonicalProgram})
		if err != nil {
			return launcher.Plan{}, inputErr(err)
		}
		plan, err := launcher.NewPlan(p)
		if err != nil {
			return launcher.Plan{}, inputErr(err)
		}
		return plan, nil
	}
	alone, err := held(made)
	if err != nil {
		return nil, err
	}
	both, err := held(made, old)
	if err != nil {
		return nil, err
	}
	return append(widerParams(now, then), alone.Beyond(both)...), nil
}

// widerParams are the placeholders that stand for something else, or for nothing
// on one side: of what they stand for nothing can be compared.
func widerParams(now, then *composition) (list []string) {
	was, is := paramNames(now.unset), paramNames(then.unset)
	for _, name := range append(without(is, was), without(was, is)...) {
		list = append(list, fmt.Sprintf("[params] %s, which has a value in one of the two alone", name))
	}
	for _, name := range slices.Sorted(maps.Keys(then.params)) {
		if before, ok := now.params[name]; ok && before != then.params[name] {
			list = append(list, fmt.Sprintf("[params] %s = %q, now %q", name, then.params[name], before))
		}
	}
	return list
}

func paramNames(params []policy.Param) []string {
	list := []string{}
	for _, p := range params {
		list = append(list, p.Name)
	}
	return list
}

func overrideOf(c *composition, path string) *caps.Layer {
	for _, l := range c.policy.Layers {
		if l.Name == "override:"+filepath.Base(path) {
			return l
		}
	}
	return nil
}

func without(list, others []string) []string {
	return orEmpty(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) }))
}

func (a *app) printOverride(d overrideDocument) error {
	if a.json {
		return a.printJSON(d)
	}
	if d.Change == nil {
		_, err := io.WriteString(a.stdout, d.Text)
		return err
	}
	return atOnce(a.stdout, func(w io.Writer) {
		for _, list := range []struct {
			word  string
			items []string
		}{{"takes", d.Change.Taken}, {"gives back", d.Change.Given}, {"limit", d.Change.Limits}, {"left out, for it has no value:", d.Change.Unset}} {
			for _, s := range list.items {
				fmt.Fprintf(w, "%s %s\n", list.word, printable(s))
			}
		}
		for _, n := range d.Change.Notes {
			fmt.Fprintln(w, printable(n))
		}
		switch {
		case d.Change.Narrower:
			fmt.Fprintln(w, "it leaves nothing that is not left now")
		default:
			fmt.Fprintln(w, "it leaves something that is taken away now")
		}
		if d.Change.Saved {
			fmt.Fprintf(w, "saved as %s\n", printable(d.Path))
		}
	})
}
