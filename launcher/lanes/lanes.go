// Package lanes says what a machine can keep programs from, by trying.
package lanes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/probe"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/program"
	"runloop.dev/rlp/launcher/run"
)

// Names are all lanes.
func Names() []string { return []string{"wasm", "native", "ns", "bwrap", "container"} }

// Survey tries the lanes of these names.
func Survey(ctx context.Context, r *compose.Runner, names []string) (doc ask.LaneSurvey, err error) {
	_, cfg, err := r.Settings()
	if err != nil {
		return doc, err
	}
	dir, err := os.MkdirTemp("", "rlp-lanes")
	if err != nil {
		return doc, fmt.Errorf("trying the lanes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := probe.Lay(dir)
	if err != nil {
		return doc, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	own, err := ownFile(dir)
	if err != nil {
		return doc, err
	}
	of := func() lane.Config {
		id := uuid.NewString()
		return lane.Config{
			Work: filepath.Join(dir, id, "run"), ID: id, Self: program.ConfineCommand(r.Helper),
			Bounds: compose.Bounds(cfg.Exec), Container: r.ContainerConfig(cfg.Exec),
		}
	}
	for _, name := range names {
		if name == "wasm" {
			doc.Lanes = append(doc.Lanes, wasmSurvey())
			continue
		}
		s, err := probe.Of(ctx, name, of(), b, own)
		if ctx.Err() != nil {
			return doc, ctx.Err()
		}
		if err != nil { // it opened, and its programs do not start
			s = probe.Survey{Name: name, Missing: &lane.UnsupportedError{Lane: name, Why: err.Error()}}
		}
		doc.Lanes = append(doc.Lanes, surveyed(s))
	}
	doc.Auto, doc.Reason, err = autoLane(ctx, of())
	return doc, err
}

// ownFile is this program as a file in dir that anybody may start: programs in
// containers are somebody else.
func ownFile(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // what is in it is private, or this
	}
	if err != nil {
		return "", unavailableLane(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", unavailableLane(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "rlp")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // the same
	if err != nil {
		return "", unavailableLane(err)
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Chmod(0o755), to.Close()); err != nil {
		return "", unavailableLane(err)
	}
	return path, nil
}

func unavailableLane(err error) error {
	return &compose.Error{Status: run.StatusUnavailable, Err: fmt.Errorf("finding the program that tries lanes: %w",
		err)}
}

// autoLane is the lane that auto takes, as it is asked for in config.toml.
func autoLane(ctx context.Context, cfg lane.Config) (name, why string, err error) {
	l, err := lane.Open(ctx, "auto", cfg)
	var missing *lane.UnsupportedError
	if errors.As(err, &missing) {
		return "", missing.Text(), nil
	}
	if err != nil {
		return "", "", err
	}
	return l.Name(), "", l.Close()
}

// wasmSurvey is the lane of the agents themselves: there is no system below it
// that could be asked for anything.
func wasmSurvey() ask.Lane {
	s := ask.Lane{Name: "wasm", Available: true}
	for i := range lane.NumControls {
		s.Controls = append(s.Controls, ask.Control{Control: i.String(), Level: lane.Enforced.String()})
	}
	return s
}

func surveyed(s probe.Survey) ask.Lane {
	r := ask.Lane{Name: s.Name, Available: s.Missing == nil}
	if s.Missing != nil {
		r.Reason, r.Remedy = s.Missing.Why, s.Missing.Remedy
	}
	for i, label := range s.Controls {
		c := ask.Control{Control: lane.Control(i).String(), Level: label.Level.String()}
		if label.Level != lane.Enforced && s.Missing == nil {
			c.Reason, c.Remedy = label.Why, label.Remedy
		}
		r.Controls = append(r.Controls, c)
	}
	for _, f := range s.Findings {
		r.Attempts = append(r.Attempts, ask.Attempt{
			Name: f.Name, Control: f.Control.String(), Refused: f.Refused,
			Reason: f.Why,
		})
	}
	return r
}
