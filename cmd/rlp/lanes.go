package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/lane/probe"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

func (a *app) lanesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lanes [LANE...]",
		Short: "Say what this machine can keep programs from, by trying",
		Long: `Each lane is opened and a program in it tries to reach what it was not given.
A control is enforced, best_effort, or unsupported; where it is not enforced, why
not and what to do about it follow. The last line is the lane that exec takes
under [exec] lane = "auto".`,
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				if !slices.Contains(laneNames(), name) {
					return usagef("rlp lanes %s: the lanes are %s", name, strings.Join(laneNames(), ", "))
				}
			}
			if len(args) == 0 {
				args = laneNames()
			}
			doc, err := a.lanes(c.Context(), args)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(doc)
			}
			return a.printLanes(doc)
		},
	}
}

func laneNames() []string { return []string{"wasm", "native", "ns", "bwrap", "container"} }

// lanes tries the lanes of these names.
func (a *app) lanes(ctx context.Context, names []string) (doc ask.LaneSurvey, err error) {
	h, err := a.home()
	if err != nil {
		return doc, err
	}
	cfg, err := config.Load(h.Config(), a.env)
	if err != nil {
		return doc, inputErr(err)
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
	program, err := ownFile(dir)
	if err != nil {
		return doc, err
	}
	of := func() lane.Config {
		id := uuid.NewString()
		return lane.Config{
			Work: filepath.Join(dir, id, "run"), ID: id, Self: a.runner().ConfineCommand(), Bounds: compose.Bounds(cfg.Exec),
			Container: a.runner().ContainerConfig(cfg.Exec),
		}
	}
	for _, name := range names {
		if name == "wasm" {
			doc.Lanes = append(doc.Lanes, wasmSurvey())
			continue
		}
		s, err := probe.Of(ctx, name, of(), b, program)
		if ctx.Err() != nil {
			return doc, ctx.Err()
		}
		if err != nil { // it opened, and its programs do not start
			s = probe.Survey{Name: name, Missing: &lane.UnsupportedError{Lane: name, Why: err.Error()}}
		}
		doc.Lanes = append(doc.Lanes, surveyed(s))
	}
	doc.Auto, doc.Reason, err = a.autoLane(ctx, of())
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
	return &statusError{Status: launcher.StatusUnavailable, Err: fmt.Errorf("finding the program that tries lanes: %w",
		err)}
}

// autoLane is the lane that auto takes, as it is asked for in config.toml.
func (a *app) autoLane(ctx context.Context, cfg lane.Config) (name, why string, err error) {
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

// printLanes is a table: a row a control, a column a lane; then the reasons.
func (a *app) printLanes(doc ask.LaneSurvey) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "control")
	for _, l := range doc.Lanes {
		fmt.Fprintf(w, "\t%s", l.Name)
	}
	for i := range lane.NumControls {
		fmt.Fprintf(w, "\n%s", i)
		for _, l := range doc.Lanes {
			fmt.Fprintf(w, "\t%s", l.Controls[i].Level)
		}
	}
	fmt.Fprint(w, "\nattempts refused")
	for _, l := range doc.Lanes {
		fmt.Fprintf(w, "\t%s", laneScore(&l))
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	for _, l := range doc.Lanes {
		explainLane(a.stdout, &l)
	}
	switch {
	case doc.Auto != "":
		fmt.Fprintf(a.stdout, "\nauto takes %s\n", doc.Auto)
	default:
		fmt.Fprintf(a.stdout, "\nauto takes none: %s\n", printable(doc.Reason))
	}
	return nil
}

func laneScore(l *ask.Lane) string {
	refused := 0
	for _, t := range l.Attempts {
		if t.Refused {
			refused++
		}
	}
	if len(l.Attempts) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", refused, len(l.Attempts))
}

// explain says why what is not enforced is not; one reason of many controls is
// said once.
func explainLane(w io.Writer, l *ask.Lane) {
	say := func(of, why, remedy string) {
		if remedy != "" {
			remedy = " (" + remedy + ")"
		}
		fmt.Fprintf(w, "  %s: %s%s\n", of, printable(why), printable(remedy))
	}
	if !l.Available {
		fmt.Fprintf(w, "\n%s is not available\n", l.Name)
		say("reason", l.Reason, l.Remedy)
		return
	}
	var order []ask.Control
	of := map[string][]string{}
	for _, c := range l.Controls {
		if c.Level == lane.Enforced.String() {
			continue
		}
		if of[c.Reason] == nil {
			order = append(order, c)
		}
		of[c.Reason] = append(of[c.Reason], c.Control)
	}
	if len(order) > 0 {
		fmt.Fprintf(w, "\n%s\n", l.Name)
	}
	for _, c := range order {
		say(strings.Join(of[c.Reason], ", "), c.Reason, c.Remedy)
	}
}
