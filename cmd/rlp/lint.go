package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

func (a *app) capsLintCommand() *cobra.Command {
	var agent string
	var profiles []string
	var strict bool
	c := &cobra.Command{
		Use:   "lint PATH...",
		Short: "Check policies, manifests, overrides and bundles, and show what overrides change",
		Long: `Lint checks each PATH: a bundle or agent folder (with the overrides that apply to
it), a policy.caps, a manifest.toml, or an override file. With --agent, override
files are held against that installed agent.

It exits with 1 when there are errors (with --strict, warnings too), and with 65
when a file cannot be read.`,
		Args: atLeastOne("PATH"),
		RunE: func(_ *cobra.Command, paths []string) error {
			l, err := a.lint(paths, profiles, agent)
			if err != nil {
				return err
			}
			for _, c := range l.composed {
				a.unsetNote(c)
			}
			return ending(l.status(strict), l.print(a))
		},
	}
	c.Flags().StringArrayVar(&profiles, "profile", nil, "apply the profile `NAME` to bundles")
	c.Flags().StringVar(&agent, "agent", "", "hold override files against the installed agent `ID`")
	c.Flags().BoolVar(&strict, "strict", false, "let warnings fail too")
	return c
}

// A linter gathers what is found in all paths.
type linter struct {
	plan     func(path string, f compose.Flags) (*compose.Composition, launcher.Plan, error)
	home     home.Home
	opt      policy.Options
	profiles []string
	named    []caps.Entry // what no agent may do to the files that the settings name
	findings []policy.Finding
	composed []*compose.Composition // the bundles, and what a launch of each would be left
	plans    []launcher.Plan
	unread   bool
}

// lint looks at files and bundles.
func (a *app) lint(paths, profiles []string, agent string) (*linter, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(h.Config(), a.env)
	if err != nil {
		return nil, inputErr(err)
	}
	l := &linter{plan: a.plan, home: h, profiles: profiles, opt: a.reader().Options(h, cfg)}
	if l.named, err = a.reader().Named(cfg); err != nil {
		return nil, err
	}
	l.opt.Resolve = leads
	installed, err := installedAgent(h, agent)
	if err != nil {
		return nil, err
	}
	if err := compose.Own(h, paths...); err != nil {
		return nil, err
	}
	for _, path := range paths {
		l.path(path, installed)
	}
	if cfg.Security.PathProfile != "relaxed" {
		l.refuseAsLaunches()
	}
	policy.Sort(l.findings)
	return l, nil
}

// leads is where a path leads, and the first link on the way that is no entry of
// the root folder.
func leads(written string) (to, link string) {
	r, err := jail.Canonical(written)
	if err != nil {
		return "", ""
	}
	return r.Path, r.Redirect()
}

// refuseAsLaunches makes errors of the paths that are not written as they are
// meant, as a launch does.
func (l *linter) refuseAsLaunches() {
	for i := range l.findings {
		if c := l.findings[i].Code; c == policy.CodePathLink || c == policy.CodePathDotDot {
			l.findings[i].Severity = policy.SeverityError
		}
	}
}

func installedAgent(h home.Home, agent string) (string, error) {
	if agent == "" {
		return "", nil
	}
	id, err := ident.ParseAgent(agent)
	if err != nil {
		return "", usagef("--agent: %w", err)
	}
	dir := filepath.Join(h.Agents(), id.String())
	if _, err := os.Stat(dir); err != nil {
		return "", inputErr(fmt.Errorf("--agent %s: no such agent is installed, for there is no %s; rlp agent list shows "+
			"those that are", id, dir))
	}
	return dir, nil
}

func (l *linter) path(path, installed string) {
	info, gone := os.Stat(path)
	if gone == nil && (info.IsDir() || isArchive(path)) {
		l.bundle(path, nil)
		return
	}
	data, err := tomlfile.ReadFile(path, lintMax(path))
	if err != nil {
		f := policy.FileFinding(path, err)
		if errors.Is(gone, fs.ErrNotExist) {
			f.Hint = "name a bundle's folder or archive, or one of its files, an override or a profile; rlp agent list shows " +
				"what is installed"
		}
		l.findings = append(l.findings, f)
		l.unread = true
		return
	}
	if filepath.Base(path) == toolsFile {
		if _, err := bundles.ParseTools(path, data); err != nil {
			l.refusal(path, err)
		}
		return
	}
	kind := policy.Detect(path, data)
	l.name(path)
	if kind == policy.KindOverride && installed != "" {
		l.bundle(installed, []string{path})
		return
	}
	l.findings = append(l.findings, policy.Lint(kind, path, data, l.opt)...)
	if kind == policy.KindPolicy {
		if base, _ := policy.ParseBase(path, data, l.opt); base != nil {
			l.findings = append(l.findings, metBySettings(base.Entries, l.named)...)
		}
	}
	if kind == policy.KindManifest {
		if _, err := bundles.ParseManifest(path, data); err != nil {
			l.refusal(path, err)
		}
	}
}

// name refuses a file among the overrides that no agent's id leads to, and one
// among the profiles that has no profile's name.
func (l *linter) name(path string) {
	abs, err := filepath.Abs(path)
	if err == nil && filepath.Dir(abs) == filepath.Dir(l.home.Profile("x")) {
		l.profileName(path)
	}
	if err != nil || filepath.Dir(abs) != filepath.Dir(l.home.Override("x")) {
		return
	}
	stem, isTOML := strings.CutSuffix(filepath.Base(abs), ".toml")
	if _, err := ident.ParseAgent(stem); isTOML && (err == nil || stem == "_default") {
		return
	}
	l.findings = append(l.findings, policy.Finding{
		Path: path, Severity: policy.SeverityError, Code: "override_name",
		Message: "no agent's override is called so; nothing reads this file",
		Hint:    "<agent_id>.toml, in lower case, or _default.toml",
	})
}

func (l *linter) profileName(path string) {
	if stem, isTOML := strings.CutSuffix(filepath.Base(path), ".toml"); isTOML && policy.IsProfileName(stem) {
		return
	}
	l.findings = append(l.findings, policy.Finding{
		Path: path, Severity: policy.SeverityError, Code: "profile_name",
		Message: "no profile is called so; nothing reads this file",
		Hint:    "<name>.toml, in lower case",
	})
}

func lintMax(path string) int64 {
	switch filepath.Base(path) {
	case bundles.ManifestName:
		return bundles.MaxManifest
	case toolsFile:
		return bundles.MaxToolsBytes
	}
	return 0
}

func isArchive(path string) bool {
	for _, end := range []string{".tar", ".tar.gz", ".tgz", ".zip"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}

// bundle lints a bundle with everything that applies to it. A source folder
// that was not built yet is linted by its files.
func (l *linter) bundle(path string, overrides []string) {
	c, plan, err := l.plan(path, compose.Flags{Overrides: overrides, Profiles: l.profiles})
	if _, unread := bundles.Open(path); err != nil && unread != nil && !isBuilt(path) && l.source(path) {
		return // what is wrong with its files is told by their names
	}
	if err != nil {
		l.refusal(path, err)
		return
	}
	l.composed = append(l.composed, c)
	l.findings = append(l.findings, c.Findings...)
	for _, f := range c.Bundle.Findings {
		l.findings = append(l.findings, policy.Finding{
			Path: f.Path, Line: f.Line, Column: f.Column, Severity: policy.Severity(f.Severity),
			Code: policy.Code(f.Code), Message: f.Message, Hint: f.Hint,
		})
	}
	l.findings = append(l.findings, policy.Extras(plan.Changes)...)
	l.findings = append(l.findings, metBySettings(c.Policy.Base, l.named)...)
	l.findings = append(l.findings, uselessDenies(c, plan)...)
	l.findings = append(l.findings, unaskedImports(c, plan)...)
	l.findings = append(l.findings, lintTools(c, plan)...)
	for _, low := range c.Policy.LowerLimits(plan.Limits) {
		l.findings = append(l.findings, policy.Finding{
			Path: path, Severity: policy.SeverityInfo, Code: "limit_lower",
			Message: low.String(),
		})
	}
	l.plans = append(l.plans, plan)
}

// isBuilt reports whether a source folder holds a bundle.
func isBuilt(path string) bool {
	_, err := os.Lstat(filepath.Join(path, bundles.BuiltName))
	return err == nil
}

// uselessDenies warns of what an operator denies and the base never had: a
// slip there takes nothing away.
func uselessDenies(c *compose.Composition, plan launcher.Plan) []policy.Finding {
	var findings []policy.Finding
	for _, e := range plan.NoTools {
		findings = append(findings, policy.Finding{
			Path: e.Pos.File, Line: e.Pos.Line, Column: e.Pos.Column, Severity: policy.SeverityWarning,
			Code:    "deny_without_effect",
			Message: fmt.Sprintf("the agent has no tool %s, so denying it takes nothing away", e.Scope),
			Hint:    "rlp agent inspect prints the tools of the bundle; those of servers are called mcp:SERVER/NAME",
		})
	}
	for _, layer := range c.Policy.Layers {
		for _, e := range layer.Deny {
			if e.Pos.Line == 0 || e.Implied || e.Grant.Family == caps.Tool {
				continue
			}
			_, changes, err := plan.Base.Narrow(&caps.Layer{Name: layer.Name, Deny: []caps.Entry{e}})
			if err != nil || len(changes) > 0 {
				continue
			}
			findings = append(findings, policy.Finding{
				Path: e.Pos.File, Line: e.Pos.Line, Column: e.Pos.Column, Severity: policy.SeverityWarning,
				Code:    "deny_without_effect",
				Message: fmt.Sprintf("%s is not in the base, so denying it takes nothing away", e.Grant),
				Hint:    "rlp caps show prints what the base holds",
			})
		}
	}
	return findings
}

// source lints the files of a folder that holds no bundle yet.
func (l *linter) source(dir string) bool {
	found := false
	for _, name := range []string{bundles.ManifestName, bundles.DefaultPolicyName, toolsFile} {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			found = true
			l.path(path, "")
		}
	}
	return found
}

// unaskedImports warns of functions that the module imports and whose family
// the bundle does not ask for: they would be denied at every call.
func unaskedImports(c *compose.Composition, plan launcher.Plan) []policy.Finding {
	bad := func(err error) []policy.Finding {
		return []policy.Finding{{Path: c.Bundle.Path, Severity: policy.SeverityError, Code: "module", Message: err.Error()}}
	}
	if err := run.CheckModule(c.Bundle.Manifest.Agent.String(), c.Bundle.Wasm, selfPath); err != nil {
		return bad(err)
	}
	imports, err := guest.Imports(c.Bundle.Wasm)
	if err != nil {
		return bad(err)
	}
	var findings []policy.Finding
	for _, known := range hostcalls.Imports() {
		if known.Family == caps.MCP && len(c.Bundle.Tools) > 0 {
			continue // its own tools are called by it
		}
		if !known.Gated || plan.Base.Any(known.Family) || len(c.Unset) > 0 && known.Family == caps.FS {
			continue
		}
		for _, im := range imports {
			if im.Module == hostcalls.ImportModule && im.Name == known.Name {
				findings = append(findings, policy.Finding{
					Path: c.Bundle.PolicyPath, Severity: policy.SeverityWarning, Code: "import_not_asked",
					Message: fmt.Sprintf("the module imports %s, and the policy asks for no %s", im.Name, known.Family),
					Hint:    fmt.Sprintf("add %s to [capabilities], or build without the call", known.Family),
				})
			}
		}
	}
	return findings
}

// bundleErrors are the errors about a bundle that err joins.
func bundleErrors(err error) []*bundles.Error {
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return nil
	}
	var list []*bundles.Error
	for _, e := range many.Unwrap() {
		if one, ok := e.(*bundles.Error); ok {
			list = append(list, one)
		}
	}
	return list
}

// refusal turns an error into findings.
func (l *linter) refusal(path string, err error) {
	var pe *policy.Error
	if errors.As(err, &pe) {
		l.findings = append(l.findings, pe.Findings...)
		return
	}
	if many := bundleErrors(err); len(many) > 1 { // each has a place of its own
		for _, e := range many {
			l.refusal(path, e)
		}
		return
	}
	p := compose.ProblemOf(err)
	if p.Path == "" {
		p.Path = path
	}
	if p.Line == 0 && errors.Is(err, tomlfile.ErrFile) {
		l.unread = true
	}
	l.findings = append(l.findings, policy.Finding{
		Path: p.Path, Line: p.Line, Column: p.Column, Severity: policy.SeverityError, Code: "bundle", Message: p.Message,
		Hint: p.Hint,
	})
}

func (l *linter) print(a *app) error {
	if a.json {
		if l.findings == nil {
			l.findings = []policy.Finding{}
		}
		return a.printJSON(l.findings)
	}
	for _, f := range l.findings {
		fmt.Fprintln(a.stdout, printable(f.String()))
	}
	for _, p := range l.plans {
		a.printDiff(ask.DiffOf("", p))
	}
	if len(l.findings) == 0 && !a.quiet {
		fmt.Fprintln(a.stdout, "no findings")
	}
	return nil
}

func (l *linter) status(strict bool) int {
	if l.unread {
		return launcher.StatusInput
	}
	for _, f := range l.findings {
		if f.Severity == policy.SeverityError || strict && f.Severity == policy.SeverityWarning {
			return launcher.StatusFinding
		}
	}
	return launcher.StatusOK
}
