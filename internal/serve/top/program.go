package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"runloop.dev/rlp/internal/serve/client"
)

// A Terminal is where runs are shown. What is no terminal has no size, and keys of
// its own bytes.
type Terminal struct {
	In    io.Reader
	Out   io.Writer
	Color bool
}

// What is written to a terminal: another screen and no cursor, and both undone.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// Run shows the runs that c tells of, until somebody ends it or ctx does.
func Run(ctx context.Context, c *client.Client, t Terminal) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	msgs := make(chan Msg)
	send := func(m Msg) {
		select {
		case msgs <- m:
		case <-ctx.Done():
		}
	}
	m := &Model{Service: c, Color: t.Color, Follow: follower(ctx, c, send)}
	restore, err := raw(t.In)
	if err != nil {
		return fmt.Errorf("preparing the terminal: %w", err)
	}
	defer restore()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	go func() { _ = readKeys(t.In, func(k Key) { send(k) }) }() // without keys the runs are shown all the same
	if _, err := io.WriteString(t.Out, enterScreen); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(t.Out, leaveScreen) }()
	return m.loop(ctx, t.Out, msgs, resized, send)
}

// loop does what comes, and draws after each.
func (m *Model) loop(ctx context.Context, out io.Writer, msgs <-chan Msg, resized <-chan os.Signal,
	send func(Msg),
) error {
	for next := m.Init(); ; {
		if do := next; do != nil {
			next = nil
			go func() { send(do(ctx)) }()
		}
		m.resize(out)
		if _, err := io.WriteString(out, frame(m.Text())); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
		case msg := <-msgs:
			if next = m.Update(msg); m.ended {
				return nil
			}
		}
	}
}

// follower begins to follow a run, and ends following the one before.
func follower(ctx context.Context, c *client.Client, send func(Msg)) func(run string) {
	stop := func() {}
	return func(run string) {
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
				send(CallMsg{run, msg.Data})
			}
		}()
	}
}

// frame is a text as it is drawn over the one before.
func frame(text string) string {
	return "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\r\n") + "\x1b[K"
}

// raw has a terminal give each key as it is pressed, until restore.
func raw(in io.Reader) (restore func(), err error) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}, nil
	}
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(f.Fd()), before) }, nil
}

// resize asks how large the terminal is.
func (m *Model) resize(out io.Writer) {
	if f, ok := out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil {
			m.width, m.height = w, h
		}
	}
}
