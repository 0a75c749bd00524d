package program

import (
	"context"
	"errors"
	"fmt"
	"os"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/connect"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/run"
)

func (s *Start) serve(ctx context.Context, c *run.Calls) error {
	policy, err := connect.New(connect.Config{
		Gate: c.Gate, Lock: c.Lock(), Budget: c.Budget, Now: s.Now, Trusted: s.Trusted,
	})
	if err != nil {
		return err
	}
	host, err := hostcalls.NewProgramHost(c.Host, c.Lock())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Home, 0o700); err != nil {
		return fmt.Errorf("making the home of the program: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	network := Network{
		Policy: policy, Outside: s.Outside, Inside: Inside(host, c, s.Routes, s.Now), Now: s.Now, Base: c.Base,
		Look: func() {
			if err := c.Reload(ctx); err != nil { // what cannot be recorded does not go on
				cancel(err)
			}
		},
	}
	within, most := s.leased(c.Holds)
	if s.Live != nil && !within {
		most = 0
	}
	r, err := s.Lane.Run(ctx, &lane.Command{
		Program: s.File, Argv: s.Argv, Env: variables(s.Home, s.Env, c.Env), Cwd: s.cwd(c.Holds),
		Folders: append(Folders(c.Holds), lane.Folder{Path: s.Home, Access: lane.ReadWrite, Own: true}),
		Leased:  Leased(c.Holds), Protected: Protected(), Executes: Executables(c.Holds),
		Stdin: c.Input, Timeout: most, MaxOutput: kept(c.Limits), Network: network.Own(), Live: s.Live,
	})
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
