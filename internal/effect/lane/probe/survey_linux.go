package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"runloop.dev/rlp/internal/effect/lane"
)

// A Survey is what a lane was found to be.
type Survey struct {
	Name     string
	Missing  *lane.UnsupportedError // why there is no such lane here; nil: there is
	Controls lane.Controls
	Findings []Finding // empty where nothing could be tried
}

// Of opens the lane name, as for a run that accepts what it gets, and tries what
// it keeps programs from. A label is what the lane claims, or less: what an
// attempt got through is not enforced. The program is rlp.
func Of(ctx context.Context, name string, cfg lane.Config, b *Bait, program string) (s Survey, err error) {
	s.Name = name
	cfg.Bounds = lane.Bounds{} // what is asked for is not what can be kept
	l, err := lane.Open(ctx, name, cfg)
	var missing *lane.UnsupportedError
	if errors.As(err, &missing) {
		s.Missing = missing
		for i := range s.Controls {
			s.Controls[i] = lane.Label{Why: missing.Why, Remedy: missing.Remedy}
		}
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("opening the lane %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	s.Controls = l.Controls()
	if s.Findings, err = b.In(ctx, l, program); err != nil {
		return s, err
	}
	for _, f := range s.Findings {
		if !f.Refused {
			s.lower(f.Control, "a program could "+f.What)
		}
	}
	return s, s.ends(ctx, l, program)
}

func (s *Survey) lower(c lane.Control, why string) {
	switch label := &s.Controls[c]; label.Level {
	case lane.Enforced:
		*label = lane.Label{Level: lane.BestEffort, Why: why}
	case lane.BestEffort: // what was seen says more than what was feared
		label.Why = why
	}
}

// ends tries whether programs end in time, and whether what is kept of their
// output is bounded.
func (s *Survey) ends(ctx context.Context, l lane.Lane, program string) error {
	const kept = 10
	r, err := l.Run(ctx, &lane.Command{
		Program: program, Argv: []string{"rlp", Name, "sleep"},
		Timeout: 20 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if !r.TimedOut {
		s.lower(lane.WallTime, "a program went on after its time")
	}
	r, err = l.Run(ctx, &lane.Command{
		Program: program, Argv: []string{"rlp", Name, "flood"}, Timeout: time.Minute,
		MaxOutput: kept,
	})
	if err != nil {
		return err
	}
	if len(r.Stdout.Data) > kept || !r.Stdout.Cut {
		s.lower(lane.OutputCaps, "more of a program's output was kept")
	}
	return nil
}
