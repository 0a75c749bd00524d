package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// The grants that requests start from while security.run_grant names none.
const (
	httpGrant = "runner_default"
	mcpGrant  = "mcp_default"
)

// doorGrant is the name of the profile that requests of a door start from.
func DoorGrant(cfg config.Config, d service.Door) string {
	switch {
	case cfg.Security.RunGrant != "":
		return cfg.Security.RunGrant
	case d == service.MCP:
		return mcpGrant
	}
	return httpGrant
}

// doorLayers are what every request of a caller is narrowed by, whatever it
// says: the grant of its door, and what the caller itself may have.
func doorLayers(r *compose.Reader, c *compose.Composition, who *service.Caller, d service.Door) ([]*caps.Layer, error) {
	p, err := r.Profile(c, DoorGrant(c.Config, d))
	if err != nil {
		return nil, fmt.Errorf("the grant that requests start from: %w", err)
	}
	if p.Data != nil {
		c.NarrowedBy(r.ProfileAgain(c, p))
	}
	if DoorGrant(c.Config, d) != c.Config.Security.Profile { // which is before it, and takes what it would
		c.Origin.Grant = p.Layer.Name
	}
	return append([]*caps.Layer{p.Layer}, who.Layers...), nil
}

// byDoor reports whether the grant that requests start from took any of it. A
// layer of the request that is called the same is behind it, and took nothing that
// it left.
func byDoor(c *compose.Composition, list []launcher.Violation) bool {
	door := c.Origin.Grant
	return door != "" && slices.ContainsFunc(list, func(v launcher.Violation) bool { return v.Layer == door })
}

// A reading is what a request says, as far as it is understood; the rest is in
// its errors.
type requestReader struct {
	reader *compose.Reader
	in     *compose.Composition // for the settings and the places of things
	who    *service.Caller
	errors service.FieldErrors
	notes  []string // what does nothing as it is written
	away   error    // the first file of the operator's that stands in the way
}

// What positions call the parts of a request that are documents of their own.
const (
	requestOverride = "policy"
	requestGrant    = "request"
)

func (r *requestReader) wrong(field, format string, args ...any) {
	r.errors = append(r.errors, service.FieldError{Field: field, Why: fmt.Sprintf(format, args...)})
}

// note keeps what whoever asks should know though nothing is refused for it: a
// name that nothing has, which may have been meant for another.
func (r *requestReader) note(text string) {
	if len(r.notes) < mostNotes {
		r.notes = append(r.notes, text)
	}
}

// layers are what the request itself narrows by.
func (r *requestReader) layers(q *service.Request) []*caps.Layer {
	var layers []*caps.Layer
	for i, name := range q.Profiles {
		field := fmt.Sprintf("profiles[%d]", i)
		if !policy.IsProfileName(name) {
			r.wrong(field, "the name of a profile is lower-case letters, digits, - and _")
			continue
		}
		p, err := r.reader.Profile(r.in, name)
		var unknown *compose.UnknownProfileError
		switch {
		case errors.As(err, &unknown):
			r.wrong(field, "%s", unknown.Error())
		case err != nil: // it is there, and broken: nothing that the caller could mend
			r.away = cmp.Or(r.away, err)
		default:
			layers = append(layers, p.Layer)
		}
	}
	opt := r.reader.Options(r.in.Home, r.in.Config)
	if !r.who.Can(service.Operate) { // what lies on this host is not theirs to learn
		opt.Stat = nil
	}
	if q.Override != "" {
		if l := r.override(q, opt); l != nil {
			layers = append(layers, l)
		}
	}
	if len(q.Grant) > 0 {
		l, findings := policy.ParseGrant(requestGrant, requestGrant, q.Grant, opt)
		for _, f := range findings {
			if f.Severity == policy.SeverityError {
				r.wrong(f.Field, "%s", compose.Hinted(strings.TrimPrefix(f.Message, f.Field+": "), f.Hint))
			} else {
				r.note(compose.Hinted(f.Message, f.Hint))
			}
		}
		if l != nil {
			layers = append(layers, l)
		}
	}
	r.capabilities(q)
	return layers
}

// override reads the text of an override. Its placeholders are the operator's.
func (r *requestReader) override(q *service.Request, opt policy.Options) *caps.Layer {
	o, findings := policy.ParseLayer("override:request", requestOverride, []byte(q.Override), opt)
	for _, f := range findings {
		if f.Severity == policy.SeverityError {
			r.wrong("policy", "line %d, column %d: %s", f.Line, f.Column, compose.Hinted(f.Message, f.Hint))
		} else {
			r.note(fmt.Sprintf("policy: line %d, column %d: %s", f.Line, f.Column, compose.Hinted(f.Message, f.Hint)))
		}
	}
	if o == nil {
		return nil
	}
	for name := range o.Params {
		r.wrong("policy", "[params] %s: an override in a request narrows and fills in nothing; write it as params", name)
	}
	return o.Layer
}

// capabilities checks the lists that [callerLayer] reads, each place by itself.
func (r *requestReader) capabilities(q *service.Request) {
	domains := append(policy.BuiltinDomains(), r.in.Config.KB.Domains...)
	for i, text := range q.Allow {
		if _, err := compose.CallerLayer(compose.Flags{Allow: []string{text}}, domains); err != nil {
			r.wrong(fmt.Sprintf("allow[%d]", i), "%s", strings.TrimPrefix(err.Error(), "--allow "+text+": "))
		}
	}
	for i, text := range q.Deny {
		if _, err := compose.CallerLayer(compose.Flags{Deny: []string{text}}, domains); err != nil {
			r.wrong(fmt.Sprintf("deny[%d]", i), "%s", strings.TrimPrefix(err.Error(), "--deny "+text+": "))
		}
	}
}

// params checks the paths that fill placeholders, and puts them where the paths
// of --param go.
func (r *requestReader) params(q *service.Request, given *policy.Given) {
	for _, name := range slices.Sorted(maps.Keys(q.Params)) {
		path, field := q.Params[name], "params."+name
		switch {
		case !filepath.IsAbs(path) || strings.ContainsRune(path, 0):
			r.wrong(field, "must be an absolute path of the host that serves")
			continue
		case compose.Own(r.in.Home, path) != nil:
			r.wrong(field, "there is nothing of this tenant")
			continue
		}
		if b := r.in.Bundle; b != nil {
			if info, err := os.Stat(path); err != nil {
				r.wrong(field, "%v", err)
				continue
			} else if p, there := b.Manifest.Params[name]; there && (p.Kind == "dir") != info.IsDir() {
				r.wrong(field, "must be a %s, and %s is none", p.Kind, path)
				continue
			}
		}
		if given != nil {
			given.Values[name] = policy.Value{Path: path, Pos: caps.Pos{File: field}}
		}
	}
}

// Bounds of what a request may give an agent.
const (
	mostArgs     = 256
	longestArg   = 64 << 10
	mostProfiles = 64
	mostNotes    = 32
)

// form checks what can be told of a request by itself.
func (r *requestReader) form(q *service.Request) {
	given := 0
	for _, set := range []bool{q.Agent != "", q.Bundle != nil, q.Reference != ""} {
		if set {
			given++
		}
	}
	switch {
	case given == 0:
		r.wrong("agent", "is missing: give the name of an installed agent, or an archive as bundle")
	case given > 1:
		r.wrong("bundle", "stands beside another one: give agent or bundle, not both")
	case q.Bundle != nil && len(q.Bundle) == 0:
		r.wrong("bundle", "is empty: give a .tar or .tar.gz archive in base64")
	case q.Reference != "":
		r.wrong("bundle", "a bundle in a registry cannot be trusted yet, for signers are not checked by this version; "+
			"install it with rlp agent install and name the agent, or send its archive in base64")
	}
	if q.Agent != "" {
		if _, err := ident.ParseAgent(q.Agent); err != nil {
			r.wrong("agent", "%v", err)
		}
	}
	if q.Input != nil && strictjson.Check(q.Input) != nil {
		r.wrong("input", "is not one JSON document")
	}
	if q.Input != nil && q.InputBytes != nil {
		r.wrong("input_base64", "stands beside input: give one of them")
	}
	if max(len(q.Input), len(q.InputBytes)) > compose.MaxInput {
		r.wrong("input", "is more than %d MiB", compose.MaxInput>>20)
	}
	if len(q.Args) > mostArgs {
		r.wrong("args", "are more than %d", mostArgs)
	}
	for i, arg := range q.Args {
		if strings.ContainsRune(arg, 0) || len(arg) > longestArg {
			r.wrong(fmt.Sprintf("args[%d]", i), "must have no byte that is zero, and at most %d bytes", longestArg)
		}
	}
	if len(q.Profiles) > mostProfiles {
		r.wrong("profiles", "are more than %d", mostProfiles)
		q.Profiles = nil
	}
	for _, id := range []struct {
		field, text string
		digits      int
	}{{"traceparent", q.TraceID, 32}, {"traceparent", q.ParentSpan, 16}} {
		if id.text != "" && (len(id.text) != id.digits || strings.Trim(id.text, "0123456789abcdef") != "") {
			r.wrong(id.field, "must hold %d hex digits in lower case", id.digits)
		}
	}
}

// sorted is the errors by their field, each once.
func (r *requestReader) err() error {
	if len(r.errors) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errors, func(a, b service.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return slices.Compact(r.errors)
}
