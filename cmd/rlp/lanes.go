package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/lanes"
)

func lanesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "lanes [LANE...]",
		Short: "Test which sandbox controls work on this machine",
		Long: `Each lane is opened and a program in it tries to reach what it was not given.
A control is enforced, best_effort, or unsupported; where it is not enforced, why
not and what to do about it follow. The last line is the lane that exec takes
under [exec] lane = "auto".`,
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				if !slices.Contains(lanes.Names(), name) {
					return usagef("rlp lanes %s: the lanes are %s", name, strings.Join(lanes.Names(), ", "))
				}
			}
			if len(args) == 0 {
				args = lanes.Names()
			}
			doc, err := lanes.Survey(c.Context(), a.runner(), args)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(doc)
			}
			return printLanes(a, doc)
		},
	}
}

// printLanes is a table: a row a control, a column a lane; then the reasons.
func printLanes(a *app, doc ask.LaneSurvey) error {
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
