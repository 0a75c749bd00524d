package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/connect"
	"runloop.dev/rlp/internal/base/guard"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/run"
)

func (s *Start) serve(ctx context.Context, c *run.Calls) error {
	until, cancel := s.leaving(ctx)
	defer cancel(nil)
	command, release, err := s.command(c, cancel)
	if err != nil {
		return err
	}
	defer release()
	command.Stdin, command.MaxOutput = c.Input, kept(c.Limits)
	r, err := s.Lane.Run(until, command)
	if r == nil {
		return stopped(err)
	}
	_, outErr := c.Stdout.Write(r.Stdout.Data)
	_, errErr := c.Stderr.Write(r.Stderr.Data)
	if err != nil { // what it printed until then is told
		return stopped(err)
	}
	return errors.Join(outErr, errErr, ended(r))
}

// leaveTime is how long a program has to end that was passed a signal to do so.
const leaveTime = 5 * time.Second

// leaving ends with ctx; where that ends for a signal, which the program was passed, it
// ends so long after.
func (s *Start) leaving(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	until, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		end := func() { cancel(context.Cause(ctx)) }
		if s.Live == nil || s.Live.Signals == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			end()
			return
		}
		time.AfterFunc(leaveTime, end)
	})
	return until, cancel
}

// Speak starts the program for whoever speaks with it, and keeps so much of what it
// says on stderr. It has to be ended before its run is.
func (s *Start) Speak(c *run.Calls, keep int) (*lane.Process, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	command, release, err := s.command(c, cancel)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	command.MaxOutput = keep
	p, err := lane.Start(ctx, s.Lane, command)
	if err != nil {
		release()
		return nil, err
	}
	guard.Go(func() error { <-p.Done(); return nil }, func(error) { release() })
	return p, nil
}

// command is the program with what its run holds now, and what gives up its ports. What
// cannot be recorded of it ends it by end.
func (s *Start) command(c *run.Calls, end context.CancelCauseFunc) (_ *lane.Command, release func(), err error) {
	host, err := hostcalls.NewProgramHost(c.Host, c.Lock())
	if err != nil {
		return nil, nil, err
	}
	gated := connect.Config{
		Gate: c.Gate, Lock: c.Lock(), Budget: c.Budget, Now: s.Now, Trusted: s.Trusted, Confirm: host.Confirm(),
	}
	policy, err := connect.New(gated)
	if err != nil {
		return nil, nil, err
	}
	may, err := connect.Executes(gated)
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(s.Home, 0o700); err != nil {
		return nil, nil, fmt.Errorf("making the home of the program: %w", err)
	}
	holds := c.Now()
	published, err := s.publish(c.Base, holds)
	if err != nil {
		return nil, nil, err
	}
	network := Network{
		Policy: policy, Outside: s.Outside, Inside: Inside(host, c, s.Routes, s.Now), Now: s.Now, Base: c.Base,
		Published: published,
		Look: func() {
			if err := c.Reload(); err != nil { // what cannot be recorded does not go on
				end(err)
			}
		},
	}
	only := Executables(holds)
	_, each := c.Limits.Get(caps.ExecSpawns)
	within, most := s.leased(holds)
	if s.Live != nil && !within {
		most = 0
	}
	asked := func(file string, written bool) bool { return may(file, written && only != nil && only.Others) }
	var used func(how byte, there bool, path string)
	if s.Learn != nil {
		s.Learn.begin(holds)
		asked, used = s.Learn.asked(asked), s.Learn.use
	}
	return &lane.Command{
		Program: s.File, SHA256: s.SHA256, Argv: s.Argv, Cwd: s.cwd(holds),
		Env: variables(s.Home, s.Env, append(c.Env, s.Given...)),
		Folders: append(s.Leads.Settled(Folders(holds, s.Closed)),
			lane.Folder{Path: s.Home, Access: lane.ReadWrite, Own: true}),
		Leased: Leased(holds), Protected: Protected(), Executes: only, Each: each,
		Asked: asked, Used: used,
		Timeout: most, Network: network.Own(), Live: s.Live,
	}, published.Close, nil
}
