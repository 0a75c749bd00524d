package main

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

	"github.com/spf13/pflag"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/config"
	"runloop.dev/rlp/internal/home"
	"runloop.dev/rlp/internal/tomlfile"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/run"
)

// policyFlags are the flags by which one invocation narrows, and fills in the
// placeholders.
type policyFlags struct {
	overrides, profiles, allow, deny, limits, params []string
}

func (f *policyFlags) register(fs *pflag.FlagSet) {
	fs.Var((*textsFlag)(&f.overrides), "override", "a further override `FILE`; narrows only")
	fs.Var((*textsFlag)(&f.profiles), "profile", "apply the profile `NAME`; rlp caps profiles lists them")
	fs.Var((*textsFlag)(&f.allow), "allow", "bound the family of `CAP` to it, such as fs:read:/tmp; may be given again")
	fs.Var((*textsFlag)(&f.deny), "deny", "take `CAP` away, such as kb:write:*; may be given again")
	fs.Var((*textsFlag)(&f.limits), "limit", "set a limit by `KEY=N`, such as wall_time_ms=1000: lowers what others say, lifts a default")
	fs.Var((*textsFlag)(&f.params), "param", "fill in a placeholder of the policy by `NAME=PATH`")
}

// A composition is a bundle and everything that narrows it, read and parsed:
// what a plan is made of.
type composition struct {
	path       string // of the bundle, as the operator wrote it
	home       home.Home
	config     config.Config
	bundle     *bundles.Bundle
	policy     launcher.Policy
	paths      launcher.Paths
	params     map[string]string
	filled     []filling      // the placeholders of the base, and what was given for each
	leases     []caps.Lease   // of the bundle's own policy
	programs   [][]string     // exec as it was written, by each policy that bounds it
	lane       execLane       // where they run; nil where there is none, or no need
	unset      []policy.Param // placeholders without a value
	findings   []policy.Finding
	narrowings []narrowing // the files that narrow, to be read again between turns

	origin origin
	common common

	secrets runSecrets // of this run, which those that it launches must not see either; nil: there are none
	// secret is the value of a secret for the host's own use in this run, such
	// as the key of a model provider: it is kept out of all that the run gives
	// away. Nil where no grant and no setting asks for secrets.
	secret func(ctx context.Context, id string) (string, error)
}

// compose reads all that decides what an agent may do. A placeholder without a
// value is left in unset; whoever launches refuses it.
func (a *app) compose(path string, f policyFlags) (*composition, error) {
	return a.composed(&composition{path: path, origin: a.origin()}, f)
}

// composed completes a composition that says who launches what.
func (a *app) composed(c *composition, f policyFlags) (*composition, error) {
	if err := a.settle(c, append([]string{c.path}, f.overrides...)...); err != nil {
		return nil, err
	}
	var err error
	if c.origin.bundle != nil {
		c.bundle = c.origin.bundle
	} else if c.bundle, err = bundles.Open(c.path); err != nil {
		return nil, inputErr(err)
	}
	base, err := a.base(c)
	if err != nil {
		return nil, err
	}
	given := policy.Given{Values: map[string]policy.Value{}, Home: a.userHome()}
	if given.Dir, err = a.getwd(); err != nil {
		return nil, inputErr(err)
	}
	given.Dir = withoutLinks(given.Dir)
	if c.policy.Layers, err = a.layers(c, f, &given); err != nil {
		return nil, err
	}
	c.policy.Asked = c.origin.foreign
	c.policy.Tools = c.toolScopes()
	a.bind(c)
	if err := c.resolve(base, given); err != nil {
		return nil, err
	}
	c.programs = programsNamed(c.policy)
	c.within()
	if err := a.canonical(c); err != nil {
		return nil, inputErr(err)
	}
	c.blame()
	return c, c.makeArtifacts()
}

// settle reads the settings that a composition is under, and refuses paths that
// are another tenant's.
func (a *app) settle(c *composition, paths ...string) (err error) {
	if c.home, err = a.home(); err != nil {
		return err
	}
	if err := unsupported(c.home); err != nil {
		return err
	}
	if err := own(c.home, slices.DeleteFunc(paths, func(path string) bool { return path == "" })...); err != nil {
		return err
	}
	if c.config, err = config.Load(c.home.Config(), a.env); err != nil {
		return inputErr(err)
	}
	return nil
}

// toolScopes are the tools that calls can name beside the host calls.
func (c *composition) toolScopes() []string {
	list := []string{}
	for i := range c.bundle.Tools {
		list = append(list, "tools:"+c.bundle.Tools[i].ID)
	}
	for name := range c.config.MCP {
		list = append(list, "mcp:"+name+"/")
	}
	return list
}

func (a *app) options(h home.Home, cfg config.Config) policy.Options {
	return policy.Options{
		Home: a.userHome(), Domains: cfg.KB.Domains, Stat: os.Stat,
		Template: func(name string) ([]byte, error) { return tomlfile.ReadFile(h.Template(name), 0) },
	}
}

// base is policy.caps joined with the manifest's [requires].
func (a *app) base(c *composition) (*policy.Base, error) {
	opt := a.options(c.home, c.config)
	var away error // a template that is there, and cannot be read
	opt.Template = func(name string) ([]byte, error) {
		path := c.home.Template(name)
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
	m := c.bundle.Manifest
	if c.bundle.PolicyPresent {
		b, findings := policy.ParseBase(c.bundle.PolicyPath, c.bundle.Policy, opt)
		c.findings = append(c.findings, findings...)
		if b != nil {
			base = b
		}
		c.policy.Present = true
	}
	requires, findings := policy.ParseRequires(m.Requires, m.Limits, base.Schema, opt)
	c.findings = append(c.findings, findings...)
	if requires != nil {
		base = policy.Join(base, requires)
	}
	c.findings = append(c.findings, base.CheckPlaceholders(declared(m))...)
	if away != nil {
		return nil, inputErr(away)
	}
	if err := policy.AsError(c.findings); err != nil {
		return nil, inputErr(err)
	}
	c.policy.BaseLimits, c.leases = base.Limits, base.Leases
	return base, nil
}

func declared(m *bundles.Manifest) []policy.Param {
	var list []policy.Param
	for name, p := range m.Params {
		list = append(list, policy.Param{Name: name, Kind: p.Kind, Description: p.Description, Pos: caps.Pos(p.Pos)})
	}
	slices.SortFunc(list, func(a, b policy.Param) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// layers are everything that narrows, in the order in which explanations name
// it. Values of placeholders in override files end up in given; flags win.
func (a *app) layers(c *composition, f policyFlags, given *policy.Given) ([]*caps.Layer, error) {
	protected, err := a.protected(c, f.overrides)
	if err != nil {
		return nil, err
	}
	layers := []*caps.Layer{protected, {Name: "config", Limits: c.config.Limits}}
	if len(c.leases) > 0 {
		layers = append(layers, &caps.Layer{Name: run.BaseLayer, Leases: c.leases})
	}
	agent := c.bundle.Manifest.Agent.String()
	if err := mistaken(c.home, agent); err != nil {
		return nil, err
	}
	own := []string{c.home.Override("_default"), c.home.Override(agent)}
	for i, path := range append(own, f.overrides...) {
		layer, err := a.overrideLayer(c, path, i < len(own), given)
		if err != nil {
			return nil, err
		}
		if layer != nil {
			layers = append(layers, layer)
		}
	}
	profiles, err := a.profileLayers(c, f.profiles)
	if err != nil {
		return nil, err
	}
	layers = append(layers, profiles...)
	asked, err := c.asked(given)
	if err != nil {
		return nil, err
	}
	layers = append(layers, asked...)
	caller, err := callerLayer(f, append(policy.BuiltinDomains(), c.config.KB.Domains...))
	if err != nil {
		return nil, err
	}
	return append(layers, caller), paramFlags(f.params, given)
}

// overrideLayer reads one override. Only a file that is not there at all is no
// override; whatever else stands in the way of reading it refuses.
func (a *app) overrideLayer(c *composition, path string, optional bool, given *policy.Given) (*caps.Layer, error) {
	name := "override:" + filepath.Base(path)
	parse := func(data []byte) (*policy.Override, []policy.Finding) {
		return policy.ParseLayer(name, path, data, a.options(c.home, c.config))
	}
	again := narrowing{name: name, path: path, parse: func(data []byte) (*caps.Layer, []policy.Finding) {
		o, findings := parse(data)
		if o == nil {
			return nil, findings
		}
		return o.Layer, findings
	}}
	data, drafted := a.drafts[path]
	var err error
	if !drafted {
		data, err = tomlfile.ReadFile(path, 0)
	}
	if errors.Is(err, fs.ErrNotExist) && optional {
		c.narrowedBy(again)
		return nil, nil
	}
	if err != nil {
		return nil, inputErr(fmt.Errorf("reading an override: %w", err))
	}
	o, findings := parse(data)
	c.findings = append(c.findings, findings...)
	if err := policy.AsError(findings); err != nil {
		return nil, inputErr(err)
	}
	for name, v := range o.Params {
		given.Values[name] = v
	}
	again.data, again.layer = data, o.Layer
	c.narrowedBy(again)
	return o.Layer, nil
}

// fromFlag is the place of what a flag gave for a placeholder.
func fromFlag(name string) caps.Pos { return caps.Pos{File: "--param " + name} }

func paramFlags(params []string, given *policy.Given) error {
	for _, p := range params {
		name, path, ok := strings.Cut(p, "=")
		if !ok || name == "" || path == "" {
			return usagef("--param %s: write it as NAME=PATH", p)
		}
		if given.Values[name].Pos == fromFlag(name) {
			return usagef("--param %s is given twice", name)
		}
		given.Values[name] = policy.Value{Path: path, Pos: fromFlag(name)}
	}
	return nil
}

// resolve puts values in the place of placeholders, as far as there are any.
func (c *composition) resolve(base *policy.Base, given policy.Given) error {
	params := declared(c.bundle.Manifest)
	resolved, err := base.Resolve(params, given)
	var pe *policy.ParamError
	if errors.As(err, &pe) && len(pe.Missing) > 0 && !policy.HasErrors(unlike(pe.Findings, policy.CodeParamUnset)) {
		c.unset, c.policy.Base = pe.Missing, base.Entries
		return nil
	}
	if err != nil {
		return inputErr(err)
	}
	c.params, c.policy.Base = resolved.Params, resolved.Entries
	for _, p := range base.Placeholders {
		c.filled = append(c.filled, filling{p, resolved.Params[p.Name], given.Values[p.Name].Pos})
	}
	return c.checkKinds(params, given)
}

// mustBeSet refuses a launch whose placeholders have no value, and says which
// and how to give them.
func (c *composition) mustBeSet(command string) error {
	if len(c.unset) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s needs to know:", c.bundle.Manifest.Agent)
	example := ""
	for _, p := range c.unset {
		fmt.Fprintf(&b, "\n  --param %-20s %s", p.Name+"="+strings.ToUpper(p.Kind), p.Description)
		example += " --param " + p.Name + "=" + strings.ToUpper(p.Kind)
	}
	fmt.Fprintf(&b, "\nfor example: rlp %s %s%s\nor write them under [params] in %s", command, c.path, example,
		c.home.Override(c.bundle.Manifest.Agent.String()))
	return usagef("%s", b.String())
}

// unlike are the findings of another code.
func unlike(findings []policy.Finding, code policy.Code) []policy.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f policy.Finding) bool { return f.Code == code })
}
