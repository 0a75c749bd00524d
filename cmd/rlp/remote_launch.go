package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/serve/client"
	"runloop.dev/rlp/launcher"
)

// mostPacked bounds the archive of a bundle that is sent: in base64, and with the
// input beside it, it is within what the service takes.
const mostPacked = 32 << 20

// launchRemote has a service launch, and tells what came of it as of a launch here.
func (a *app) launchRemote(ctx context.Context, path string, args []string, f launchFlags, r remoteFlags) error {
	if a.invoker != nil { // a helper launches by itself alone
		a.invoker.declined = "a launch by the service"
		return errSilent
	}
	a.launching = true
	q, err := a.remoteRequest(ctx, path, args, f, r.remote == atSocket)
	var late *inputLate
	if errors.As(err, &late) {
		a.guestOut = &witness{w: a.stdout}
		return a.tell(late.report(), false)
	}
	if err != nil {
		return err
	}
	c, err := a.service(r)
	if err != nil {
		return err
	}
	defer c.Close()
	data, err := c.Run(ctx, q)
	report := &launcher.Report{}
	var told *client.Error
	switch {
	case errors.As(err, &told) && told.Code == "policy_violation":
		report = refusal(told)
	case err != nil:
		return remoteErr(ctx, err)
	default:
		if err := strictjson.Unmarshal(data, report, strictjson.UnknownFields|strictjson.Enclosing); err != nil {
			return &statusError{Status: launcher.StatusUnavailable, Err: fmt.Errorf("reading the report of the service: %w",
				err)}
		}
	}
	if !a.json {
		a.guestOut = &witness{w: a.stdout}
		_, _ = io.WriteString(a.guestOut, report.Stdout) // the witness tells
	}
	err = a.tell(report, false)
	for _, v := range report.Violations {
		a.say(printable(violationLine(v)))
	}
	return err
}

// violationLine is what a violation says, with its capability and its layer, each
// once.
func violationLine(v launcher.Violation) string {
	line := v.Message
	if !strings.Contains(line, v.Capability) {
		line = v.Capability + ": " + line
	}
	if !strings.Contains(line, " by "+v.Layer) {
		line += " (" + v.Layer + ")"
	}
	return line
}

// refusal is the report of a run that policy refused.
func refusal(e *client.Error) *launcher.Report {
	r := &launcher.Report{
		RunID: e.RunID, TraceID: e.TraceID, Outcome: launcher.Refused, ExitCode: launcher.StatusPolicy,
		Message: e.Message,
	}
	for _, v := range e.Violations {
		var code caps.Code
		_ = code.UnmarshalText([]byte(v.Code))
		r.Violations = append(r.Violations, launcher.Violation{
			Code: code, Message: v.Message, Capability: v.Capability,
			Layer: v.Layer,
		})
	}
	return r
}

// remoteRequest is what the flags of a launch are as a request.
func (a *app) remoteRequest(
	ctx context.Context, path string, args []string, f launchFlags, own bool,
) (*client.Request, error) {
	for _, no := range []struct {
		name string
		set  bool
		why  string
	}{
		{"--stream", f.stream, "rlp top shows a run while it goes on"},
		{"--dry-run", f.dryRun, "rlp caps show says what would be enforced here"},
		{"--turns", f.turns, "POST /runs/{id}/input gives further inputs"},
		{"--audit-allow", f.auditAllow, "security.caps.audit_on_allow of the service decides"},
		{"--events", f.events, "GET /runs/{id}/events has them"},
		{"a second --override", len(f.Overrides) > 1, "write one file of them"},
	} {
		if no.set {
			return nil, usagef("%s does nothing with --remote; leave it out: %s", no.name, no.why)
		}
	}
	err := a.reader().OwnPaths(append([]string{path}, f.Overrides...)...)
	if err != nil {
		return nil, err
	}
	q := &client.Request{Args: args, Profiles: f.Profiles, Allow: f.Allow, Deny: f.Deny}
	if q.Seed, err = parseSeed(f.seed); err != nil {
		return nil, err
	}
	if q.Limits, err = remoteLimits(f.Limits); err != nil {
		return nil, err
	}
	if q.Params, err = remoteParams(f.Params); err != nil {
		return nil, err
	}
	for _, file := range f.Overrides {
		const most = 64 << 10
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, inputErr(fmt.Errorf("reading --override: %w", err))
		}
		if len(data) > most {
			return nil, inputErr(fmt.Errorf("%s: a policy has at most 64 KiB", file))
		}
		q.Policy = string(data)
	}
	agent, err := nameBundle(q, path)
	if err != nil {
		return nil, err
	}
	at, err := a.home()
	if err != nil {
		return nil, err
	}
	if err := notSent(a, at, agent, own); err != nil {
		return nil, err
	}
	return q, sendInput(ctx, a, at, f.input, q)
}

func remoteLimits(flags []string) (map[string]int64, error) {
	limits := map[string]int64{}
	for _, text := range flags {
		key, value, _ := strings.Cut(text, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || key == "" {
			return nil, usagef("--limit %s: write KEY=N, such as wall_time_ms=1000", text)
		}
		limits[key] = n
	}
	return limits, nil
}

func remoteParams(flags []string) (map[string]string, error) {
	params := map[string]string{}
	for _, text := range flags {
		name, path, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, usagef("--param %s: write NAME=PATH, a path of the service's host", text)
		}
		params[name] = path
	}
	return params, nil
}

// nameBundle says what is launched: what lies at a path, packed; otherwise the
// agent of that name which is installed where the service is. It returns the id
// of the agent, "" where only the service knows it.
func nameBundle(q *client.Request, path string) (agent string, err error) {
	if strings.HasPrefix(path, "oci://") {
		q.Bundle = path
		return "", nil
	}
	if _, err := os.Stat(path); err != nil {
		if _, notName := ident.ParseAgent(path); notName == nil {
			q.Agent = path
			return path, nil
		}
	}
	b, err := bundles.Open(path)
	if err != nil {
		return "", inputErr(err)
	}
	packed, err := pack(b.Files)
	if err != nil {
		return "", inputErr(fmt.Errorf("packing %s: %w", path, err))
	}
	q.Bundle = base64.StdEncoding.EncodeToString(packed)
	return b.Manifest.Agent.String(), nil
}

// pack is an archive of files, the same for the same files.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	t := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	if out.Len() > mostPacked {
		return nil, fmt.Errorf("its archive has %d MiB and %d are sent at most; install it where the service is, and name "+
			"the agent", out.Len()>>20, mostPacked>>20)
	}
	return out.Bytes(), nil
}
