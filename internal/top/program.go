package top

import (
	"context"
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"

	"runloop.dev/rlp/internal/client"
)

// A Terminal is where runs are shown.
type Terminal struct {
	In    io.Reader
	Out   io.Writer
	Env   []string
	Color bool
}

// Run shows the runs that c tells of, until somebody ends it or ctx does.
func Run(ctx context.Context, c *client.Client, t Terminal) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	m := &Model{Service: c, Color: t.Color}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(t.In), tea.WithOutput(t.Out), tea.WithEnvironment(t.Env))
	stop := func() {}
	m.Follow = func(run string) {
		stop()
		stop = func() {}
		if run == "" {
			return
		}
		var following context.Context
		following, stop = context.WithCancel(ctx)
		go func() {
			for msg, err := range c.Records(following, run, 0) {
				if err != nil {
					return // the list says what the service is like
				}
				p.Send(CallMsg{run, msg.Data})
			}
		}()
	}
	_, err := p.Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		return nil
	}
	return err
}
