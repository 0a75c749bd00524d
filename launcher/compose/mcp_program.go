package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/launcher/program"
	"runloop.dev/rlp/launcher/run"
)

// An mcpProgram is a server that rlp has started, in a lane of its own.
type mcpProgram struct {
	*lane.Process
	lane lane.Lane // nil: it is the run's
}

// Bounds of a server's program.
const (
	mcpStderr = 16 << 10 // bytes that are kept for the log
	mcpBow    = 300 * time.Millisecond
	// mcpLifetime is longer than runs are: a server ends with its run, or is
	// started again.
	mcpLifetime = 24 * time.Hour
)

// start starts the configured command: nothing of it comes from the agent, and
// it is given nothing of the agent's.
func (m *mcpServer) start(ctx context.Context, secrets []string) (*mcpProgram, error) {
	if m.wrapped() {
		return m.startWrapped(secrets)
	}
	c, spec := m.all.c, m.all.spec
	m.started++
	suffix := fmt.Sprintf("-%s-%d", m.name, m.started)
	work := c.Home.Work(spec.Agent, spec.RunID+suffix)
	cfg := m.all.by.laneConfig(c, spec.Identity)
	cfg.Work, cfg.ID = work, spec.RunID+"-m"+strconv.Itoa(m.all.starts)
	name := c.Config.Exec.Lane
	if name == "auto" && len(c.Config.Exec.Asked) > 0 {
		name = "container"
	}
	l, err := lane.Open(ctx, name, cfg)
	if err != nil {
		return nil, &mcpTrouble{"no lane here confines it", err}
	}
	p, err := m.startIn(l, cfg, secrets)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	said := "enforced"
	if control := l.Controls()[lane.Filesystem]; control.Level != lane.Enforced {
		said = control.Level.String() + ": " + control.Why
	}
	m.all.spec.Log.Info("mcp server started", "server", m.name, "exec_lane", l.Name(), "filesystem", said)
	return &mcpProgram{p, l}, nil
}

// startWrapped starts the program that is wrapped, as rlp run starts one.
func (m *mcpServer) startWrapped(secrets []string) (*mcpProgram, error) {
	w := m.all.c.Wrap
	w.start.Given = nil
	for i, s := range m.cfg.Secrets {
		w.start.Given = program.WithVariable(w.start.Given, s.Variable, secrets[i])
	}
	p, err := w.start.Speak(w.calls, mcpStderr)
	if stopped := (*run.Stopped)(nil); errors.As(err, &stopped) {
		return nil, &mcpTrouble{"its program cannot be started: " + stopped.Message, nil}
	} else if err != nil {
		return nil, &mcpTrouble{"its program cannot be started", err}
	}
	m.all.spec.Log.Info("mcp server started", "server", m.name, "exec_lane", m.all.spec.Lane.Name)
	return &mcpProgram{Process: p}, nil
}

// over reports whether nothing is left of the program.
func (p *mcpProgram) over() bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

func (m *mcpServer) startIn(l lane.Lane, cfg lane.Config, secrets []string) (*lane.Process, error) {
	spec, work := m.all.spec, cfg.Work
	found, folders, err := m.seen(l)
	if err != nil {
		return nil, err
	}
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + work, "TMPDIR=" + work, "RLP_TENANT=" + spec.Tenant, "RLP_RUN_ID=" +
		spec.RunID}
	for _, name := range m.cfg.Env {
		if value, set := m.all.by.guestVariable(name); set {
			env = program.WithVariable(env, name, value)
		}
	}
	for i, s := range m.cfg.Secrets {
		env = program.WithVariable(env, s.Variable, secrets[i])
	}
	p, err := lane.Start(context.Background(), l, &lane.Command{
		Program: found.File, Argv: m.cfg.Command, Env: env, Folders: folders, Leased: cfg.Leased, Timeout: mcpLifetime,
		MaxOutput: mcpStderr,
	})
	if err != nil {
		return nil, &mcpTrouble{"its program cannot be started", err}
	}
	return p, nil
}

// seen is the program, and what it sees of the operator's files: those that the
// command names by absolute paths, to be read. No agent may write them, for a
// setting names them; rlp's home is nobody's.
func (m *mcpServer) seen(l lane.Lane) (lane.Found, []lane.Folder, error) {
	programs := &programs{lane: l, home: m.all.c.Home.Dir()}
	found, err := programs.find(m.cfg.Command[0])
	if err != nil {
		return found, nil, &mcpTrouble{"its program is not there, or is none", err}
	}
	var folders []lane.Folder
	for _, arg := range m.cfg.Command[1:] {
		if !filepath.IsAbs(arg) || filepath.Clean(arg) != arg {
			continue
		}
		at, err := lane.Resolve(arg)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return found, nil, &mcpTrouble{"a path of its command leads nowhere", fmt.Errorf("%s: %w", arg, err)}
		}
		if dir := m.all.c.Home.Dir(); Within(at.File, dir) || Within(dir, at.File) {
			return found, nil, &mcpTrouble{"its command names rlp's home", errors.New(arg)}
		}
		folders = append(folders, lane.Folder{Path: at.File, Access: lane.ReadOnly})
	}
	slices.SortFunc(folders, func(a, b lane.Folder) int { return strings.Compare(a.Path, b.Path) })
	return found, slices.Compact(folders), nil
}

// Within reports whether a clean path is dir or below it.
func Within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// end ends the program: it is told that there is no more, and a moment later
// ended with all that it started. What it said on stderr goes into the log.
func (p *mcpProgram) end(s *mcpServers, name string) error {
	_ = p.Stdin.Close()
	late := time.NewTimer(mcpBow)
	defer late.Stop()
	select {
	case <-p.Done():
	case <-late.C:
	}
	r, err := p.End()
	said := p.Stderr()
	if r != nil || err != nil || len(said.Data) > 0 {
		status := -1
		if r != nil {
			status = r.ExitCode
		}
		s.spec.Log.Info("mcp server ended", "server", name, "exit_code", status, "stderr", string(said.Data), "stderr_cut",
			said.Cut)
	}
	if p.lane == nil {
		return err
	}
	return errors.Join(err, p.lane.Close())
}

// body is the run: what the server is given is judged, and then its client served.
func (a *Runner) body(c *Composition, spec *run.Spec) run.Body {
	return func(ctx context.Context, calls *run.Calls) error {
		w, given := c.Wrap, []config.MCPSecret{}
		w.calls = calls
		for _, s := range w.Secrets {
			var no *hostcalls.Answer
			switch _, err := calls.Call(ctx, "secret_handle", s.ID); {
			case err == nil:
				given = append(given, s)
			case !errors.As(err, &no):
				return err
			case no.Errno == hostcalls.Acces.String() && no.Reason != caps.SecretUnknown.String():
				c.Origin.warnf("%s is not given to %s: %s", s.ID, w.Name, no)
			default:
				return &run.Stopped{Outcome: run.Refused, Status: run.StatusUnavailable, Message: fmt.Sprintf(
					"the secret %s cannot be given to %s: %s; rlp secrets put %s keeps one", s.ID, w.Name, no, s.ID)}
			}
		}
		own := c.Config.MCP[w.Name]
		own.Secrets = given
		c.Config.MCP[w.Name] = own
		servers, ok := spec.Components.MCP.(*mcpServers)
		if !ok {
			return errors.New("the session has no server")
		}
		offers := func() []mcpclient.Tool { return servers.offersOf(w.Name) }
		err := w.Serve(ctx, &Wrapped{name: w.Name, calls: calls, offers: offers})
		return errors.Join(err, servers.close()) // what its program was about to say is recorded
	}
}
