// Package compose makes a launch of a home, a request and the operator's files, and
// has it run: [Reader.Compose] is the one place that orders layers and protects
// paths, [Runner.Launch] the one sequence in which a run is opened and closed.
//
// Whoever asks (a terminal, the daemon, HTTP, MCP, another run) is an [Origin].
// Nothing that it says widens: each layer only narrows what the bundle asks for.
package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/launcher/program"
	"runloop.dev/rlp/launcher/run"
)

// A Composition is a bundle and everything that narrows it, read and parsed:
// what a plan is made of.
type Composition struct {
	Path       string // of the bundle, or the name of an installed agent, as the operator wrote it
	Home       home.Home
	Config     config.Config
	Bundle     *bundles.Bundle
	Policy     run.Policy
	Paths      run.Paths
	written    run.Policy // before links were followed
	params     map[string]string
	filled     []filling      // the placeholders of the base, and what was given for each
	leases     []caps.Lease   // of the bundle's own policy
	programs   [][]string     // exec as it was written, by each policy that bounds it
	lane       execLane       // where they run; nil where there is none, or no need
	Unset      []policy.Param // placeholders without a value
	Findings   []policy.Finding
	Narrowings []Narrowing // the files that narrow, to be read again between turns

	Origin Origin
	// what is launched where Bundle has no module: a session in front of a server, or a
	// program
	Wrap    *Wrap
	Program *Program
	common  common

	secrets runSecrets // of this run, which those that it launches must not see either; nil: there are none
	// secret is the value of a secret for the host's own use in this run, such
	// as the key of a model provider: it is kept out of all that the run gives
	// away. Nil where no grant and no setting asks for secrets.
	secret func(ctx context.Context, id string) (string, error)
}

// Compose reads all that decides what an agent may do, which is named by its path or as
// it is installed. A placeholder without a value is left in unset; whoever launches
// refuses it.
func (a *Reader) Compose(path string, f Flags) (*Composition, error) {
	return a.Complete(&Composition{Path: path, Origin: a.Origin}, f)
}

// Complete completes a composition that says who launches what.
func (a *Reader) Complete(c *Composition, f Flags) (*Composition, error) {
	if err := a.Settle(c, append([]string{c.Path}, f.Overrides...)...); err != nil {
		return nil, err
	}
	var err error
	if c.Origin.Bundle != nil {
		c.Bundle = c.Origin.Bundle
	} else if c.Bundle, err = openNamed(c.Home, c.Path, f.open); err != nil {
		return nil, err
	} else if at := bundles.InstalledBeside(c.Home.Agents(), c.Path); at != "" {
		c.Origin.warnf("this was %s in the current folder, not the agent that is installed under that name; its path is %s",
			c.Path, at)
	}
	for _, f := range c.Bundle.Findings {
		if f.Code == bundles.CodeStale {
			c.Origin.warnf("%s: %s; to launch it as it is now, %s", f.Path, f.Message, f.Hint)
		}
	}
	base, err := a.base(c, &f)
	if err != nil {
		return nil, err
	}
	given := policy.Given{Values: map[string]policy.Value{}, Home: a.userHome()}
	if given.Dir, err = a.WorkingDir(); err != nil {
		return nil, InputErr(err)
	}
	if given.Dir = withoutLinks(given.Dir); c.Bundle.Manifest.Program {
		c.ofBundle(given.Dir)
	}
	if c.Policy.Layers, err = a.layers(c, f, &given); err != nil {
		return nil, err
	}
	if c.Wrap != nil { // behind what protects the files that settings name: these are the session's own
		if err := c.Wrap.admits(&c.Config, c.Home.Config()); err != nil {
			return nil, err
		}
	}
	c.Policy.Asked = c.Origin.Foreign
	c.Policy.Tools = c.toolScopes(a.Added)
	a.bind(c)
	if err := c.resolve(base, given); err != nil {
		return nil, err
	}
	c.programs = programsNamed(c.Policy)
	c.within()
	if err := a.canonical(c); err != nil {
		return nil, InputErr(err)
	}
	c.blame()
	return c, c.makeArtifacts()
}

// Settle reads the settings that a composition is under, and refuses paths that
// are another tenant's.
func (a *Reader) Settle(c *Composition, paths ...string) (err error) {
	if c.Home, err = a.Home(); err != nil {
		return err
	}
	if err := unsupported(c.Home); err != nil {
		return err
	}
	if err := Own(c.Home, slices.DeleteFunc(paths, func(path string) bool { return path == "" })...); err != nil {
		return err
	}
	if c.Config, err = config.Load(c.Home.Config(), a.Env); err != nil {
		return InputErr(err)
	}
	return nil
}

// toolScopes are the tools that calls can name beside the host calls.
func (c *Composition) toolScopes(added []hostcalls.Added) []string {
	list := []string{}
	for _, f := range added {
		list = append(list, f.Scope())
	}
	for i := range c.Bundle.Tools {
		list = append(list, "tools:"+c.Bundle.Tools[i].ID)
	}
	for name := range c.Config.MCP {
		list = append(list, "mcp:"+name+"/")
	}
	return list
}

// Options are what documents of policies are read with.
func (a *Reader) Options(h home.Home, cfg config.Config) policy.Options {
	return policy.Options{
		Home: a.userHome(), Domains: cfg.KB.Domains, Stat: os.Stat,
		Template: func(name string) ([]byte, error) { return tomlfile.ReadFile(h.Template(name), 0) },
	}
}

// base is policy.caps joined with the manifest's [requires], or what f says that a
// module without a bundle asks for.
func (a *Reader) base(c *Composition, f *Flags) (*policy.Base, error) {
	if c.Bundle.Bare {
		entries, findings, err := f.ofModule(c.domains())
		c.Findings = append(c.Findings, findings...)
		if err != nil || !c.Bundle.PolicyPresent {
			return &policy.Base{Entries: entries}, err
		}
		return a.given(c, entries)
	}
	if len(f.Base) > 0 {
		return nil, Usagef("%s is a bundle, and its policy.caps says what it asks for; leave Base out", c.Path)
	}
	opt := a.Options(c.Home, c.Config)
	var away error // a template that is there, and cannot be read
	opt.Template = func(name string) ([]byte, error) {
		path := c.Home.Template(name)
		if _, err := os.Lstat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		data, err := tomlfile.ReadFile(path, 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			away = cmp.Or(away, fmt.Errorf("the template %q: %w", name, err))
		}
		return data, err
	}
	base := &policy.Base{}
	m := c.Bundle.Manifest
	if c.Bundle.PolicyPresent {
		b, findings := policy.ParseBase(c.Bundle.PolicyPath, c.Bundle.Policy, opt)
		c.Findings = append(c.Findings, findings...)
		if b != nil {
			base = b
		}
		c.Policy.Present = true
	}
	requires, findings := policy.ParseRequires(m.Requires, m.Limits, base.Schema, opt)
	c.Findings = append(c.Findings, findings...)
	if requires != nil {
		base = policy.Join(base, requires)
	}
	if m.Program {
		base.Entries = append(base.Entries, program.Clock(m))
	}
	c.Findings = append(c.Findings, base.CheckPlaceholders(Declared(m))...)
	if away != nil {
		return nil, InputErr(away)
	}
	if err := policy.AsError(c.Findings); err != nil {
		return nil, InputErr(err)
	}
	c.Policy.BaseLimits, c.leases, c.Policy.Routes = base.Limits, base.Leases, base.Routes
	return base, nil
}

// given is a policy that whoever launches gives what has none of its own, joined
// with what they say beside it.
func (a *Reader) given(c *Composition, entries []caps.Entry) (*policy.Base, error) {
	base, findings := policy.ParseBase(c.Bundle.PolicyPath, c.Bundle.Policy, a.Options(c.Home, c.Config))
	c.Findings = append(c.Findings, findings...)
	if err := policy.AsError(findings); err != nil {
		return nil, InputErr(err)
	}
	base = policy.Join(base, &policy.Base{Entries: entries})
	c.Policy.BaseLimits, c.leases, c.Policy.Routes, c.Policy.Present = base.Limits, base.Leases, base.Routes, true
	return base, nil
}

// Declared are the placeholders that a manifest declares.
func Declared(m *bundles.Manifest) []policy.Param {
	var list []policy.Param
	for name, p := range m.Params {
		list = append(list, policy.Param{Name: name, Kind: p.Kind, Description: p.Description, Pos: caps.Pos(p.Pos)})
	}
	slices.SortFunc(list, func(a, b policy.Param) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// layers are everything that narrows, in the order in which explanations name
// it. Values of placeholders in override files end up in given; flags win.
func (a *Reader) layers(c *Composition, f Flags, given *policy.Given) ([]*caps.Layer, error) {
	protected, err := a.Protected(c, f.Overrides)
	if err != nil {
		return nil, err
	}
	layers := []*caps.Layer{protected, {Name: "config", Limits: c.Config.Limits}}
	if len(c.leases) > 0 {
		layers = append(layers, &caps.Layer{Name: run.BaseLayer, Leases: c.leases})
	}
	agent := c.Bundle.Manifest.Agent.String()
	if err := mistaken(c.Home, agent); err != nil {
		return nil, err
	}
	own := []string{c.Home.Override("_default"), c.Home.Override(agent)}
	for i, path := range append(own, f.Overrides...) {
		layer, err := a.OverrideLayer(c, path, i < len(own), given)
		if err != nil {
			return nil, err
		}
		if layer != nil {
			layers = append(layers, layer)
		}
	}
	profiles, err := a.ProfileLayers(c, f.Profiles)
	if err != nil {
		return nil, err
	}
	layers = append(layers, profiles...)
	asked, err := c.asked(given)
	if err != nil {
		return nil, err
	}
	layers = append(layers, asked...)
	caller, err := CallerLayer(f, c.domains())
	if err != nil {
		return nil, err
	}
	return append(layers, caller), paramFlags(f.Params, given)
}

// OverrideLayer reads one override. Only a file that is not there at all is no
// override; whatever else stands in the way of reading it refuses.
func (a *Reader) OverrideLayer(c *Composition, path string, optional bool, given *policy.Given) (*caps.Layer, error) {
	name := "override:" + filepath.Base(path)
	parse := func(data []byte) (*policy.Override, []policy.Finding) {
		return policy.ParseLayer(name, path, data, a.Options(c.Home, c.Config))
	}
	again := Narrowing{name: name, Path: path, parse: func(data []byte) (*caps.Layer, []policy.Finding) {
		o, findings := parse(data)
		if o == nil {
			return nil, findings
		}
		return o.Layer, findings
	}}
	data, drafted := a.Drafts[path]
	var err error
	if !drafted {
		data, err = tomlfile.ReadFile(path, 0)
	}
	if errors.Is(err, fs.ErrNotExist) && optional {
		c.NarrowedBy(again)
		return nil, nil
	}
	if err != nil {
		return nil, InputErr(fmt.Errorf("reading an override: %w", err))
	}
	o, findings := parse(data)
	c.Findings = append(c.Findings, findings...)
	if err := policy.AsError(findings); err != nil {
		return nil, InputErr(err)
	}
	for name, v := range o.Params {
		given.Values[name] = v
	}
	again.data, again.layer = data, o.Layer
	c.NarrowedBy(again)
	return o.Layer, nil
}

// fromFlag is the place of what a flag gave for a placeholder.
func fromFlag(name string) caps.Pos { return caps.Pos{File: "--param " + name} }

func paramFlags(params []string, given *policy.Given) error {
	for _, p := range params {
		name, path, ok := strings.Cut(p, "=")
		if !ok || name == "" || path == "" {
			return Usagef("--param %s: write it as NAME=PATH", p)
		}
		if given.Values[name].Pos == fromFlag(name) {
			return Usagef("--param %s is given twice", name)
		}
		given.Values[name] = policy.Value{Path: path, Pos: fromFlag(name)}
	}
	return nil
}

// resolve puts values in the place of placeholders, as far as there are any.
func (c *Composition) resolve(base *policy.Base, given policy.Given) error {
	params := Declared(c.Bundle.Manifest)
	resolved, err := base.Resolve(params, given)
	var pe *policy.ParamError
	if errors.As(err, &pe) && len(pe.Missing) > 0 && !policy.HasErrors(unlike(pe.Findings, policy.CodeParamUnset)) {
		c.Unset, c.Policy.Base = pe.Missing, base.Entries
		return nil
	}
	if err != nil {
		return InputErr(err)
	}
	c.params, c.Policy.Base = resolved.Params, resolved.Entries
	for _, p := range base.Placeholders {
		c.filled = append(c.filled, filling{p, resolved.Params[p.Name], given.Values[p.Name].Pos})
	}
	return c.checkKinds(params, given)
}

// MustBeSet refuses a launch whose placeholders have no value, and says which
// and how to give them.
func (c *Composition) MustBeSet(command string) error {
	if len(c.Unset) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s needs to know:", c.Bundle.Manifest.Agent)
	example := ""
	for _, p := range c.Unset {
		fmt.Fprintf(&b, "\n  --param %-20s %s", p.Name+"="+strings.ToUpper(p.Kind), p.Description)
		example += " --param " + p.Name + "=" + strings.ToUpper(p.Kind)
	}
	fmt.Fprintf(&b, "\nfor example: rlp %s %s%s\nor write them under [params] in %s", command, c.Path, example,
		c.Home.Override(c.Bundle.Manifest.Agent.String()))
	return Usagef("%s", b.String())
}

// domains are those of the knowledge base.
func (c *Composition) domains() []string {
	return append(policy.BuiltinDomains(), c.Config.KB.Domains...)
}

// unlike are the findings of another code.
func unlike(findings []policy.Finding, code policy.Code) []policy.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f policy.Finding) bool { return f.Code == code })
}
