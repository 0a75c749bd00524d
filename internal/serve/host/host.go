// Package host does what the service offers its callers, each request as a launch
// of its own of the caller's tenant. What somebody asks only takes away.
package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/schema"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/places"
)

// A host does what the service offers, as every invocation does it: each request
// is one more of them in this process, of the tenant of its caller.
type Host struct {
	runner compose.Runner // of the process
	home   string
	held   heldHome
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex
	calls   map[string][]string   // imports of a module, by its digest
	known   map[string]knownAgent // by path
	tenants map[string]bool       // those that were asked for; true: whose store was opened
	told    map[string]string     // problems of agents that the log has

	named    map[string]named         // by tenant and agent
	launched map[string]*places.Names // the same
	sent     map[string]struct{}      // runs of bundles that others than who operates sent

	room      func(*kb.Store) error // why nothing can be recorded
	ready     readiness
	lane      laneTrial
	unpacking chan struct{}
}

var _ service.Host = (*Host)(nil)

// newHost is a host that launches as r does, but in the home dir.
func New(r *compose.Runner, dir string, log *slog.Logger, now func() time.Time) *Host {
	return &Host{
		runner: *r, home: dir, held: holdHome(dir), log: log, now: now, calls: map[string][]string{},
		known: map[string]knownAgent{}, tenants: map[string]bool{}, told: map[string]string{},
		named: map[string]named{}, launched: map[string]*places.Names{}, sent: map[string]struct{}{},
		room: (*kb.Store).Room, unpacking: make(chan struct{}, unpackedAtime),
		ready: readiness{turn: make(chan struct{}, 1), tried: map[string]trialOfTenant{}},
	}
}

// as launches for a tenant. What somebody at a terminal would be told say is told;
// nil: the process is.
func (h *Host) as(tenant string, say func(text string)) *compose.Runner {
	r, reader := h.runner, *h.runner.Reader
	reader.Tenant, reader.HomeDir, reader.HomeSet, reader.HomeThere = tenant, h.home, true, h.there
	reader.Origin = compose.Origin{}
	if say != nil {
		reader.Say = say
	}
	r.Reader, r.Verbose = &reader, nil
	return &r
}

// unsaid is what those are told who ask how things are.
func unsaid(string) {}

// Check implements [service.Host].
func (h *Host) Check(ctx context.Context, who *service.Caller, q *service.Request) error {
	if err := h.there(); err != nil {
		return h.unavailable(ctx, who, err)
	}
	h.count(who.Tenant)
	if len(q.Params) > 0 && !who.Can(service.Operate) { // before any of them is looked up
		return fmt.Errorf("params name paths of the host that serves: %w", service.ErrForbidden)
	}
	a := h.as(who.Tenant, unsaid)
	c := &compose.Composition{}
	if err := a.Settle(c); err != nil {
		return h.unavailable(ctx, who, err)
	}
	r := &requestReader{reader: a.Reader, in: c, who: who}
	r.form(q)
	r.layers(q)
	r.params(q, nil)
	if err := r.err(); err != nil {
		return err
	}
	if r.away != nil {
		return h.unavailable(ctx, who, r.away)
	}
	if q.Agent == "" {
		return nil
	}
	if info, err := os.Lstat(filepath.Join(c.Home.Agents(), q.Agent)); errors.Is(err, fs.ErrNotExist) || err == nil &&
		!info.IsDir() {
		return fmt.Errorf("%w: no agent %s is installed; rlp agent install BUNDLE installs one, and GET /agents lists them",
			service.ErrNotFound, q.Agent)
	} else if err != nil {
		return h.unavailable(ctx, who, err)
	}
	return nil
}

// compose reads all that decides what a request may do.
func (h *Host) compose(
	ctx context.Context, a *compose.Runner, who *service.Caller, q *service.Request, begin service.Begin,
) (*compose.Composition, error) {
	c := &compose.Composition{Origin: compose.Origin{
		Surface: doorSurface(q.Door), RunID: begin.RunID, TraceID: q.TraceID,
		Record: begin.Record, Warn: a.Say,
	}}
	asks := &c.Origin
	if err := a.Settle(c); err != nil {
		return nil, h.unavailable(ctx, who, err)
	}
	if q.Bundle != nil {
		b, err := h.unpack(q.Bundle)
		if err != nil {
			return nil, ofBundle(err)
		}
		asks.Bundle, asks.Sent = b, !who.Can(service.Operate)
	} else {
		c.Path = filepath.Join(c.Home.Agents(), q.Agent)
	}
	var refused error
	asks.Layers = func(c *compose.Composition, given *policy.Given) ([]*caps.Layer, error) {
		layers, err := doorLayers(a.Reader, c, who, q.Door)
		if err != nil {
			return nil, err
		}
		r := &requestReader{reader: a.Reader, in: c, who: who}
		own := r.layers(q)
		layers = append(layers, own...)
		if !who.Can(service.Operate) {
			asks.Foreign = len(own) + 1 // and that of allow and deny
		}
		r.params(q, given)
		asks.Notes = r.notes
		if refused = r.err(); refused != nil {
			return nil, refused
		}
		return layers, r.away
	}
	c, err := a.Complete(c, compose.Flags{Allow: q.Allow, Deny: q.Deny})
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, h.whose(ctx, who, q, err)
	}
	if q.Bundle == nil && c.Bundle.Manifest.Agent.String() != q.Agent {
		return nil, h.unavailable(ctx, who, fmt.Errorf(
			"what is installed as %s calls itself %s; run rlp agent install again", q.Agent, c.Bundle.Manifest.Agent))
	}
	if err := h.there(); err != nil { // all that was read is of one home
		return nil, h.unavailable(ctx, who, err)
	}
	if err := cmp.Or(c.Strict(), ownLinks(c)); err != nil {
		return nil, h.whose(ctx, who, q, err)
	}
	return c, mustBeAsked(c)
}

// mustBeAsked refuses a request whose placeholders have no value, by field.
func mustBeAsked(c *compose.Composition) error {
	var unset service.FieldErrors
	for _, p := range c.Unset {
		unset = append(unset, service.FieldError{Field: "params." + p.Name, Why: fmt.Sprintf(
			"the agent needs to know: %s; the operator gives the path of a %s here, or under [params] in its override",
			p.Description, p.Kind)})
	}
	if unset == nil {
		return nil
	}
	return unset
}

// doorSurface is the surface that a door of the service is.
func doorSurface(d service.Door) compose.Surface {
	if d == service.MCP {
		return compose.FromMCP
	}
	return compose.FromHTTP
}

// Bounds of archives that come with requests: how many are unpacked at a time,
// and to how much.
const (
	unpackedAtime = 2
	mostUnpacked  = 128 << 20
)

// unpack verifies an archive, and keeps of it no more than a launch needs.
func (h *Host) unpack(archive []byte) (*bundles.Bundle, error) {
	h.unpacking <- struct{}{}
	defer func() { <-h.unpacking }()
	b, err := bundles.Read(sentBundle, archive)
	if err != nil {
		return nil, err
	}
	if b.Manifest.Program {
		return nil, fmt.Errorf("%s is a program, and programs are launched where they are installed: rlp agent install "+
			"BUNDLE, and name the agent", b.Manifest.Agent)
	}
	all := 0
	for _, data := range b.Files {
		all += len(data)
	}
	if all > mostUnpacked {
		return nil, fmt.Errorf("it unpacks to more than %d MiB; install it with rlp agent install, and name the agent",
			mostUnpacked>>20)
	}
	files := map[string][]byte{}
	for _, t := range b.Tools {
		for _, name := range t.Schemas {
			files[name] = b.Files[name]
		}
	}
	b.Files = files
	return b, nil
}

// ofBundle is what is wrong with an archive, as one of the field that brought it.
func ofBundle(err error) error {
	p := compose.ProblemOf(err)
	if p.Path == sentBundle { // as the field says
		p.Path = ""
	}
	return service.FieldErrors{{Field: "bundle", Why: compose.Hinted(p.Text(), p.Hint)}}
}

// Launch implements [service.Host].
func (h *Host) Launch(ctx context.Context, who *service.Caller, q *service.Request,
	begin service.Begin,
) (*launcher.Report, error) {
	a := h.as(who.Tenant, func(text string) {
		h.warn(ctx, who, slog.LevelWarn, "launch", text)
	})
	c, err := h.compose(ctx, a, who, q, begin)
	if err != nil {
		return nil, err
	}
	h.logPaths(ctx, who, c)
	h.launches(c, who.Tenant)
	calls, err := h.callsOf(c.Bundle)
	if err != nil {
		return nil, service.FieldErrors{{Field: "bundle", Why: err.Error()}}
	}
	if c.Program != nil && (begin.Inputs != nil || q.Seed != nil) {
		return nil, onlyGuests(q)
	}
	input, err := stdinOf(c.Bundle.Manifest, q)
	if err != nil {
		return nil, err
	}
	var begun atomic.Bool // a run that this one launched tells by it too, and may be left behind
	j := &compose.Job{
		Args: q.Args, Input: input, Seed: q.Seed, Calls: calls, Inputs: compose.InputsOf(c.Bundle.Manifest, begin.Inputs),
		Event: func(name string, fields map[string]any) {
			begun.Store(true)
			if begin.Event != nil {
				begin.Event(name, fields)
			}
		},
	}
	if begin.Stdout != nil {
		j.Stdout = listener(begin.Stdout)
	}
	if begin.Stderr != nil {
		j.Stderr = listener(begin.Stderr)
	}
	report, err := a.Launch(ctx, c, j)
	if err != nil {
		return nil, h.unavailable(ctx, who, err)
	}
	told := c.Subject().Telling(h.places(), c.Origin.Sent).Report(report)
	told.Warnings = slices.Concat(c.Origin.Notes, told.Warnings)
	if report.Warnings = append(slices.Clone(c.Origin.Notes), report.Warnings...); who.Can(service.Operate) {
		report.Told, told = told, report
	}
	switch {
	case report.Outcome == launcher.AuditFailed && !begun.Load():
		return nil, h.unrecorded(ctx, who, report.Message)
	case report.Outcome == launcher.Refused && report.ExitCode == launcher.StatusPolicy && len(report.Violations) > 0:
		return nil, &service.ViolationError{
			RunID: report.RunID, TraceID: report.TraceID, Agent: q.Agent, Tenant: who.Tenant,
			Violations: told.Violations, ByDoor: byDoor(c, report.Violations),
			Warnings: c.Origin.Notes,
		}
	}
	return told, nil
}

// onlyGuests refuses to launch a program with what guests alone are given.
func onlyGuests(q *service.Request) error {
	return service.FieldErrors{{Field: "agent", Why: q.Agent + " is a program, which is given its input once and " +
		"has no repeatable random numbers: leave turns and seed out"}}
}

// stdinOf is what the request gives the agent to read, by what its manifest takes.
func stdinOf(m *bundles.Manifest, q *service.Request) ([]byte, error) {
	field, input := "input_base64", q.InputBytes
	var err error
	if input == nil {
		field = "input"
		input, err = compose.InputOf(m, q.Input)
	}
	if err == nil && input != nil {
		err = compose.CheckInput(m, input)
	}
	if err == nil {
		return input, nil
	}
	var part *schema.Error
	if errors.As(err, &part) && field == "input" && part.Path != "" { // it is JSON in JSON: the path goes on
		if field += "." + part.Path; strings.HasPrefix(part.Path, "[") {
			field = "input" + part.Path
		}
		err = errors.New(part.Problem)
	}
	return nil, service.FieldErrors{{Field: field, Why: err.Error()}}
}

// A listener is told what a guest prints.
type listener func([]byte)

func (l listener) Write(p []byte) (int, error) {
	l(bytes.Clone(p))
	return len(p), nil
}

// mostModules bounds how many modules' imports are remembered.
const mostModules = 1024

// callsOf are the host calls that a bundle's module imports; nil: it is a program, of
// which that is not known.
func (h *Host) callsOf(b *bundles.Bundle) ([]string, error) {
	if b.Manifest.Program {
		return nil, nil
	}
	h.mu.Lock()
	list, known := h.calls[b.WasmSHA256]
	h.mu.Unlock()
	if known {
		return list, nil
	}
	imports, err := guest.Imports(b.Wasm)
	if err != nil {
		return nil, err
	}
	list = []string{}
	for _, im := range imports {
		list = append(list, im.Name)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.calls) >= mostModules {
		clear(h.calls)
	}
	h.calls[b.WasmSHA256] = list
	return list, nil
}
