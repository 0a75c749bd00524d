// Package lint finds mistakes in what operators wrote: [Files] in policies,
// manifests, overrides, profiles and bundles, [Scan] in what a home and its agents
// grant together.
//
// It changes nothing, launches nothing and prints nothing.
package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// toolsFile is what the tools of a bundle are usually called.
const toolsFile = "tools.json"

// A Query says what is linted, and with what.
type Query struct {
	Paths    []string
	Profiles []string // applied to bundles
	Agent    string   // the installed agent that overrides are held against; "": none
	// Self is the program that looks into modules.
	Self func() (string, error)
}

// A Result is what was found in all paths.
type Result struct {
	Findings []policy.Finding
	Composed []*compose.Composition // the bundles
	Plans    []run.Plan             // and what a launch of each would hold
	Unread   bool                   // a file could not be read
}

// A linter gathers what is found.
type linter struct {
	Result
	query   Query
	reader  *compose.Reader
	home    home.Home
	opt     policy.Options
	trusted []string     // hosts whose answers mark no run
	named   []caps.Entry // what no agent may do to the files that the settings name
}

// Files looks at files and bundles.
func Files(r *compose.Reader, q Query) (*Result, error) {
	h, cfg, err := r.Settings()
	if err != nil {
		return nil, err
	}
	l := &linter{query: q, reader: r, home: h, opt: r.Options(h, cfg), trusted: cfg.Security.Caps.TrustedHosts}
	if l.named, err = r.Named(cfg); err != nil {
		return nil, err
	}
	l.opt.Resolve = leads
	installed, err := installedAgent(h, q.Agent)
	if err != nil {
		return nil, err
	}
	if err := compose.Own(h, q.Paths...); err != nil {
		return nil, err
	}
	for _, path := range q.Paths {
		l.path(compose.Locate(h, path), installed)
	}
	if cfg.Security.PathProfile != "relaxed" {
		l.refuseAsLaunches()
	}
	policy.Sort(l.Findings)
	return &l.Result, nil
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
	for i := range l.Findings {
		if c := l.Findings[i].Code; c == policy.CodePathLink || c == policy.CodePathDotDot {
			l.Findings[i].Severity = policy.SeverityError
		}
	}
}

func installedAgent(h home.Home, agent string) (string, error) {
	if agent == "" {
		return "", nil
	}
	id, err := ident.ParseAgent(agent)
	if err != nil {
		return "", compose.Usagef("--agent: %w", err)
	}
	dir := filepath.Join(h.Agents(), id.String())
	if _, err := os.Stat(dir); err != nil {
		return "", compose.InputErr(fmt.Errorf("--agent %s: no such agent is installed, for there is no %s; rlp agent list shows "+
			"those that are", id, dir))
	}
	return dir, nil
}

func (l *linter) path(path, installed string) {
	info, gone := os.Stat(path)
	if l.isFolder(path) {
		l.folder(path)
		return
	}
	if gone == nil && (info.IsDir() || isPacked(path)) {
		l.bundle(path, nil)
		return
	}
	data, err := tomlfile.ReadFile(path, lintMax(path))
	if err != nil {
		f := policy.FileFinding(path, err)
		if errors.Is(gone, fs.ErrNotExist) {
			f.Hint = "name a bundle's folder or archive, or one of its files, an override, a profile or an installed agent"
			if text := compose.Unnamed(l.home, path, gone); text != gone { //nolint:errorlint // is it another
				f.Message = text.Error()
			}
		}
		l.Findings = append(l.Findings, f)
		l.Unread = true
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
	l.Findings = append(l.Findings, policy.Lint(kind, path, data, l.opt)...)
	if kind == policy.KindPolicy {
		if base, _ := policy.ParseBase(path, data, l.opt); base != nil {
			l.Findings = append(l.Findings, metBySettings(base.Entries, l.named)...)
			l.Findings = append(l.Findings, trustedElsewhere(base.Entries, l.trusted)...)
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
	l.Findings = append(l.Findings, policy.Finding{
		Path: path, Severity: policy.SeverityError, Code: "override_name",
		Message: "no agent's override is called so; nothing reads this file",
		Hint:    "<agent_id>.toml, in lower case, or _default.toml",
	})
}

func (l *linter) profileName(path string) {
	if stem, isTOML := strings.CutSuffix(filepath.Base(path), ".toml"); isTOML && policy.IsProfileName(stem) {
		return
	}
	l.Findings = append(l.Findings, policy.Finding{
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

// isPacked reports whether a file is one that agents are shipped in.
func isPacked(path string) bool {
	for _, end := range []string{".tar", ".tar.gz", ".tgz", ".zip", ".wasm"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
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
	l.undeclared(dir)
	return found
}

// undeclared names the placeholders of the policy in a source folder that its manifest
// does not declare; what is wrong in one of the two is told already.
func (l *linter) undeclared(dir string) {
	file := filepath.Join(dir, bundles.DefaultPolicyName)
	text, err := tomlfile.ReadFile(file, 0)
	m, badManifest := bundles.SourceManifest(dir)
	if err != nil || badManifest != nil {
		return
	}
	if base, _ := policy.ParseBase(file, text, l.opt); base != nil {
		l.Findings = append(l.Findings, base.CheckPlaceholders(compose.Declared(m))...)
	}
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
		l.Findings = append(l.Findings, pe.Findings...)
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
		l.Unread = true
	}
	l.Findings = append(l.Findings, policy.Finding{
		Path: p.Path, Line: p.Line, Column: p.Column, Severity: policy.SeverityError, Code: "bundle", Message: p.Message,
		Hint: p.Hint,
	})
}

// Told are the errors and, unless only those are told, the warnings, a line each.
func (l *Result) Told(errorsOnly bool) (lines []string) {
	for _, f := range l.Findings {
		if f.Severity == policy.SeverityError || f.Severity == policy.SeverityWarning && !errorsOnly {
			lines = append(lines, f.String())
		}
	}
	return lines
}

// Status is the exit status of a command that found it.
func (l *Result) Status(strict bool) int {
	if l.Unread {
		return run.StatusInput
	}
	for _, f := range l.Findings {
		if f.Severity == policy.SeverityError || strict && f.Severity == policy.SeverityWarning {
			return run.StatusFinding
		}
	}
	return run.StatusOK
}
