package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/printable"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// sentBundle is what positions call an archive that came with a request.
const sentBundle = "bundle"

// mistake is what is wrong with a request, where err is about a place in it; nil:
// it is about the operator's files, or this host.
func mistake(q *service.Request, err error) error {
	var path *run.PathError
	if errors.As(err, &path) { // of what it says beyond the place, the caller need not know
		err = fmt.Errorf("%s: there is no resolving this path where the service is; name one that leads to a file or a "+
			"folder, or to nothing yet", path.Pos)
		return field(q, path.Pos.File, err)
	}
	var params *policy.ParamError
	if errors.As(err, &params) {
		var wrong service.FieldErrors
		for _, f := range params.Findings {
			if f.Severity == policy.SeverityError && strings.HasPrefix(f.Path, "params.") {
				wrong = append(wrong, service.FieldError{Field: f.Path, Why: compose.Hinted(f.Message, f.Hint)})
			}
		}
		if wrong != nil {
			return wrong
		}
	}
	var dotted *compose.DottedError
	if errors.As(err, &dotted) {
		own := &compose.DottedError{Findings: slices.DeleteFunc(slices.Clone(dotted.Findings), func(f policy.Finding) bool {
			return field(q, f.Path, err) == nil
		})}
		if len(own.Findings) == 0 {
			return nil
		}
		return field(q, own.Findings[0].Path, own)
	}
	p := compose.ProblemOf(err)
	return field(q, p.Path, errors.New(compose.Hinted(p.Text(), p.Hint)))
}

// field is err as one of the field of a request that a position is in; nil: it is
// in none.
func field(q *service.Request, file string, err error) error {
	text, allowed := strings.CutPrefix(file, "--allow ")
	name := ""
	switch {
	case q.Bundle != nil && (file == sentBundle || strings.HasPrefix(file, sentBundle+"/")):
		name = "bundle"
	case q.Override != "" && file == requestOverride:
		name = "policy"
	case q.Grant != nil && strings.HasPrefix(file, requestGrant):
		name = "adapter_constraints"
	case allowed && slices.Contains(q.Allow, text):
		name = fmt.Sprintf("allow[%d]", slices.Index(q.Allow, text))
	default:
		return nil
	}
	return service.FieldErrors{{Field: name, Why: err.Error()}}
}

// whose is err as the caller's or as the operator's.
func (h *Host) whose(ctx context.Context, who *service.Caller, q *service.Request, err error) error {
	if wrong := mistake(q, err); wrong != nil {
		return wrong
	}
	return h.unavailable(ctx, who, err)
}

// ownLinks is what refuses the launch in the operator's own files, where no request
// could write otherwise: paths in them that links lead elsewhere.
func ownLinks(c *compose.Composition) error {
	if c.Relaxed() {
		return nil
	}
	for _, r := range c.Paths.Redirected() {
		if slices.ContainsFunc(c.Narrowings, func(n compose.Narrowing) bool { return n.Path == r.Pos.File }) {
			return errors.New(r.String())
		}
	}
	return nil
}

// logPaths tells the operator of what is in the way of the paths of a bundle that
// came from who does not operate: the caller is told of none of it.
func (h *Host) logPaths(ctx context.Context, who *service.Caller, c *compose.Composition) {
	if !c.Origin.Sent {
		return
	}
	left := mostNotes
	for _, e := range c.Policy.Base {
		if e.Grant.Family != caps.FS || left == 0 {
			continue
		}
		why := ""
		switch r, err := jail.Canonical(e.Grant.Scope); {
		case err != nil:
			why = err.Error()
		case r.Redirect() != "":
			why = fmt.Sprintf("leads through the link %s to %s", r.Redirect(), r.Path)
		case r.Missing:
			why = "does not exist"
		default:
			continue
		}
		left--
		h.warn(ctx, who, slog.LevelWarn, "path of a sent bundle", fmt.Sprintf("%s: %s: %s", e.Pos, e.Grant.Scope, why))
	}
}

// unavailable is an error that is not the caller's: of the operator's files, or
// of this host. Who does not operate is told no path of it.
func (h *Host) unavailable(ctx context.Context, who *service.Caller, err error) error {
	h.warn(ctx, who, slog.LevelError, "unavailable", compose.ProblemOf(err).Text())
	return &service.UnavailableError{Why: errors.New(reason(who, err))}
}

// warn logs what the operator is to know of a request or run, and its caller is not.
func (h *Host) warn(ctx context.Context, who *service.Caller, l slog.Level, what, message string) {
	h.log.LogAttrs(ctx, l, what, append(service.NamesOf(ctx), slog.String("tenant", who.Tenant),
		slog.String("caller", who.Name), slog.String("message", printable.Line(message)))...)
}

// unrecorded is that the record of a run could not begin, which is no fault of the
// operator's files.
func (h *Host) unrecorded(ctx context.Context, who *service.Caller, message string) error {
	h.warn(ctx, who, slog.LevelError, "unavailable", message)
	why := "the service cannot record the run; the log of the service says why"
	if who.Can(service.Operate) {
		why = message
	}
	return &service.UnavailableError{Why: errors.New(why), Unrecorded: true}
}

// reason is what a caller is told of such an error, which the log has.
func reason(who *service.Caller, err error) string {
	if who.Can(service.Operate) {
		return compose.ProblemOf(err).Text()
	}
	return "the operator's files do not let it be launched; the log of the service says why"
}

// mostTold bounds how many problems of agents are remembered as logged.
const mostTold = 1024

// problem is what a caller is told of an agent that cannot be launched. Agents are
// listed again and again: the log has a line when the reason is another.
func (h *Host) problem(who *service.Caller, agent string, err error) string {
	key, text := who.Tenant+"\x00"+who.Name+"\x00"+agent, printable.Line(compose.ProblemOf(err).Text())
	h.mu.Lock()
	old := h.told[key]
	if len(h.told) >= mostTold {
		clear(h.told)
	}
	h.told[key] = text
	h.mu.Unlock()
	if old != text {
		h.log.Error("unavailable", "tenant", who.Tenant, "caller", who.Name, "agent", agent, "message", text)
	}
	return reason(who, err)
}
