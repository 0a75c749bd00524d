package compose

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/program"
	"runloop.dev/rlp/launcher/run"
)

// A Given is a policy that a command line gives an agent which has none of its own.
type Given struct {
	Policy string // a file with what it asks for beside Flags.Allow; "": none
	Preset string // the name of a preset that says so; "": none
}

// A madeUp is an agent without files: what said holds is its digest. Its base is the
// given policy joined with --allow and with own, what it asks for by itself.
type madeUp struct {
	id   ident.Agent
	said any
	own  []string
	Given
}

// bundle is that of m, which is in the place of --allow, too.
func (m *madeUp) bundle(a *Reader, f *Flags) (*bundles.Bundle, error) {
	text, err := json.Marshal(m.said)
	if err != nil {
		return nil, InputErr(err)
	}
	sum := sha256.Sum256(text)
	b := &bundles.Bundle{Manifest: &bundles.Manifest{Agent: m.id}, Digest: hex.EncodeToString(sum[:]), Bare: true}
	if m.Given != (Given{}) {
		if err := a.give(m.Given, b); err != nil {
			return nil, err
		}
	}
	dir, err := a.WorkingDir()
	if err != nil {
		return nil, InputErr(err)
	}
	at := program.Place{Dir: withoutLinks(dir), User: a.userHome()}
	allowed, err := at.Capabilities(f.Allow)
	if err != nil {
		return nil, Usagef("--allow %w", err)
	}
	f.Bare, f.Allow = AllowOfModule, append(m.own, allowed...)
	return b, nil
}

// give reads the given policy.
func (a *Reader) give(g Given, b *bundles.Bundle) error {
	if g.Policy != "" && g.Preset != "" {
		return Usagef("--policy and --preset: a base is one of them; --allow adds to it")
	}
	if b.PolicyPresent = true; g.Preset != "" {
		list, err := Presets(a, g.Preset)
		if err != nil {
			return err
		}
		b.Policy, b.PolicyPath = []byte(list[0].Text), list[0].Source
		return nil
	}
	h, err := a.Home()
	if err != nil {
		return err
	}
	if b.PolicyPath, err = a.from(g.Policy); err != nil {
		return InputErr(err)
	}
	if err := Own(h, b.PolicyPath); err != nil {
		return err
	}
	if b.Policy, err = tomlfile.ReadFile(b.PolicyPath, 0); err != nil {
		return InputErr(fmt.Errorf("reading --policy: %w", err))
	}
	return nil
}

// A Program is a program of this machine that is launched as an agent.
type Program struct {
	Name    string   // the agent's id; "": by the program's own name
	Command []string // as it was written: the program and its arguments
	Given
	Publish []uint          // ports of this host's loopback addresses lead to the same ones of the program
	Endless bool            // it has no wall time unless somebody gives it one
	Live    *lane.Live      // its streams pass through; nil: they are held for the report
	Learn   *program.Learnt // gathers what it uses; nil: nobody does

	file string // of the program, without links
	sum  string // the SHA-256 of it, in hex; "": the file is whatever lies there
	dir  string // the current folder of whoever launches, without links
}

// ofBundle has the program of the bundle be what is launched.
func (c *Composition) ofBundle(dir string) {
	m, file := c.Bundle.Manifest, program.Entry(c.Bundle, dir)
	c.Program = &Program{Command: append([]string{file}, m.Args...), file: file, sum: m.Entry.SHA256}
	c.Policy.Confined = true
}

// Program composes the launch of a program that is made up on a command line.
func (a *Reader) Program(p *Program, f Flags) (*Composition, error) {
	if len(p.Command) == 0 || p.Command[0] == "" {
		return nil, Usagef("name the program behind --, such as rlp run -- /usr/bin/python3 task.py")
	}
	var agent ident.Agent
	var err error
	if p.Name != "" {
		if agent, err = ident.ParseAgent(p.Name); err != nil {
			return nil, Usagef("--name: %w", err)
		}
	} else if agent, err = ident.AgentOf(filepath.Base(p.Command[0])); err != nil {
		return nil, Usagef("%w; give it another by --name", err)
	}
	return (&madeUp{agent, p.Command, nil, p.Given}).compose(a, &Composition{Program: p}, f)
}

// compose completes a composition of what is made up.
func (m *madeUp) compose(a *Reader, c *Composition, f Flags) (*Composition, error) {
	if c.Program != nil {
		m.own = append(m.own, "time:read:*")
		for _, port := range c.Program.Publish {
			m.own = append(m.own, "network:tcp:"+program.Published(port))
		}
		if err := c.Program.find(a); err != nil {
			return nil, err
		}
	}
	b, err := m.bundle(a, &f)
	if err != nil {
		return nil, err
	}
	c.Origin = a.Origin
	c.Origin.Bundle = b
	if c, err = a.Complete(c, f); err != nil || c.Program == nil {
		return c, err
	}
	c.Policy.Endless, c.Policy.Confined = c.Program.Endless, true
	if err := program.Publishable(c.Program.Publish, c.Config.Serve.Listen); err != nil {
		return nil, Usagef("--publish %w", err)
	}
	return c, nil
}

// find finds the program's file, and where it is launched.
func (p *Program) find(a *Reader) error {
	h, err := a.Home()
	dir, failed := a.WorkingDir()
	if err = cmp.Or(err, failed); err != nil {
		return InputErr(err)
	}
	p.dir = withoutLinks(dir)
	if p.file, err = program.Find(p.Command[0], p.dir, a.getenv("PATH"), h.Dir()); err != nil {
		return InputErr(err)
	}
	return nil
}

// decisive are the files that decide what a made-up agent is: its program cannot
// write them, so that the next launch starts the same.
func (p *Program) decisive() (list []string) {
	for _, path := range append(append(p.Learn.Kept(), p.Policy, p.file), p.Command[:min(1, len(p.Command))]...) {
		if filepath.IsAbs(path) || path != "" && path == p.Policy {
			list = append(list, path)
		}
	}
	return list
}

// programFit finds the lane of a program that is the agent, tries it with the
// network that the program gets, and says in spec why nothing here keeps the program
// to its plan. It returns what gives the lane up.
func (a *Runner) programFit(ctx context.Context, c *Composition, spec *run.Spec) (func() error, error) {
	none := func() error { return nil }
	out := egress.New(egress.Config{})
	p := c.Program
	start := &program.Start{
		File: p.file, SHA256: p.sum, Argv: append(p.Command[:len(p.Command):len(p.Command)], spec.Args...),
		Home: c.Home.Work(spec.Agent, program.HomeName), Dir: p.dir, Env: a.guestVariable,
		Live: p.Live, Learn: p.Learn, Ports: p.Publish, Routes: c.Policy.Routes, Outside: out, Now: time.Now,
	}
	if err := start.There(c.Path); err != nil {
		return nil, InputErr(err)
	}
	var err error
	if start.Trusted, err = spec.Taint.Hosts(); err != nil {
		return nil, err
	}
	spec.Shows, spec.Reads = lane.IsSystem, p.Live.Reads()
	if c.Wrap != nil { // whose body starts it when it is asked for something
		c.Wrap.start = start
	} else {
		spec.Body = start.Body()
	}
	plan, err := run.NewPlan(c.Policy)
	if err != nil {
		return none, nil //nolint:nilerr // the launch itself says what is wrong with the policy
	}
	if spec.Unfit = program.Unkept(plan, c.Policy.Layers, spec.Seed); spec.Unfit != "" {
		return none, nil
	}
	start.Leads = program.Leads{Home: a.userHome(), Resolve: func(path string) (string, []string, error) {
		w, err := program.Walk(path)
		return w.End, w.Links, err
	}}
	for _, said := range program.Unpublished(plan.Effective, p.Publish) {
		c.Origin.warnf("%s", said)
	}
	cfg := a.laneConfig(c, spec.Identity)
	start.Closed, _ = program.Closed(c.Policy.Layers)
	cfg.Folders = start.Leads.Settled(program.Folders(plan.Effective, start.Closed))
	cfg.Leased, cfg.Untrusted = program.Leased(plan.Effective), spec.Taint.Folders()
	cfg.Protected, cfg.Executes = program.Protected(), program.Executables(plan.Effective) != nil
	cfg.Network, cfg.Bounds = true, program.Bounds(cfg.Bounds, plan.Limits)
	l, err := lane.Open(ctx, c.Config.Exec.Lane, cfg)
	var unsupported *lane.UnsupportedError
	if errors.As(err, &unsupported) {
		spec.Unfit = fmt.Sprintf("no lane confines %s: %s", spec.Agent, unsupported.Text())
		return none, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding a lane for %s: %w", spec.Agent, err)
	}
	controls := l.Controls()
	spec.Lane = program.LaneReport(l.Name(), controls)
	if label := controls[lane.Links]; label.Level != lane.Enforced {
		spec.Warnings = append(spec.Warnings, fmt.Sprintf("the lane %s judges no links (%s): the program may make and move "+
			"them in what it writes", l.Name(), label.Why))
	}
	start.Lane = l
	return func() error { out.Close(); return l.Close() }, nil
}

// Presets are the presets of a home, sorted; of one name where names has it alone. An
// error says which file is wrong, or which presets there are.
func Presets(r *Reader, names ...string) ([]program.Preset, error) {
	h, cfg, err := r.Settings()
	if err != nil {
		return nil, err
	}
	all, err := PresetNames(h)
	if err == nil {
		var list []program.Preset
		if list, err = program.Presets(all, names, h.Preset, r.Options(h, cfg)); err == nil {
			return list, nil
		}
	}
	return nil, InputErr(err)
}

// A Wrap is one server of tools that a client is given under a policy, as an agent.
type Wrap struct {
	Program                    // with its command; or
	URL     string             // where it is
	Secrets []config.MCPSecret // the variables, or the bearer token, that have a secret's value

	// Serve speaks with the client until that is at its end.
	Serve func(ctx context.Context, w *Wrapped) error
	// Ask asks the client's person, whose word may not count; nil: nobody can be asked.
	Ask hostcalls.Confirm

	start *program.Start // starts the program
	calls *run.Calls     // of the session
}

// agent is the name of the session as an agent's.
func (w *Wrap) agent() (ident.Agent, error) {
	agent, err := ident.ParseAgent(w.Name)
	if err != nil {
		return agent, Usagef("rlp mcp wrap %s: NAME is %w", w.Name, err)
	}
	return agent, w.whole()
}

// whole refuses what is no server.
func (w *Wrap) whole() error {
	if (len(w.Command) > 0) == (w.URL != "") {
		return Usagef("rlp mcp wrap %s takes either -- COMMAND ARGS... or --url URL", w.Name)
	}
	if w.URL != "" {
		if len(w.Publish) > 0 {
			return Usagef("--publish goes with a COMMAND: a server at a URL is not in this host's sandbox")
		}
		if err := config.ServerAddress(w.URL); err != "" {
			return Usagef("--url %s", err)
		}
		if len(w.Secrets) > 1 || len(w.Secrets) == 1 && w.Secrets[0].Variable != "" {
			return Usagef("a server at a URL takes one --secret ID, its bearer token, without a variable's name")
		}
		return nil
	}
	for i, s := range w.Secrets {
		if s.Variable == "" {
			w.Secrets[i].Variable = config.SecretVariable(s.ID)
		}
	}
	return nil
}

// asks is what the session asks for by itself: its server, the secrets that it is
// given, and to read what its command names by absolute paths.
func (w *Wrap) asks() ([]string, error) {
	list := []string{"mcp:call:" + w.Name}
	for _, s := range w.Secrets {
		list = append(list, "secrets:read:"+s.ID)
	}
	if len(w.Command) == 0 {
		return list, nil
	}
	for _, arg := range w.Command[1:] {
		if !filepath.IsAbs(arg) || filepath.Clean(arg) != arg || lane.IsSystem(arg) {
			continue
		}
		at, err := lane.Resolve(arg)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, InputErr(fmt.Errorf("%s: %w", arg, err))
		}
		list = append(list, "fs:read:"+at.File)
	}
	return list, nil
}

// admits makes w one of the settings' servers, for this composition alone. A name
// that leads to another one is refused, so that one name is one server in every
// policy and record.
func (w *Wrap) admits(cfg *config.Config, path string) error {
	if w.Name == hostcalls.ToolServer {
		return Usagef("rlp mcp wrap %s: the name is taken by the tools that bundles bring; take another one", w.Name)
	}
	if _, taken := cfg.MCP[w.Name]; taken {
		return Usagef("rlp mcp wrap %s: %s has [mcp.servers.%s]; take another name, or remove that", w.Name, path,
			w.Name)
	}
	servers := maps.Clone(cfg.MCP)
	if servers == nil {
		servers = map[string]config.MCPServer{}
	}
	servers[w.Name] = config.MCPServer{Command: w.Command, URL: w.URL, Secrets: w.Secrets}
	cfg.MCP = servers
	return nil
}
