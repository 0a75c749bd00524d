package remote

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"runloop.dev/rlp/internal/effect/model"
)

// A Command is the program that is started for a call: one whose main calls
// [Serve] on its standard input and output.
type Command struct {
	Path string
	Args []string // Args[0] is the name that it has
	Env  []string // all of its environment
}

// A Client is a [model.Backend] whose work a child does.
type Client struct {
	command func() (Command, error)
	mu      sync.Mutex
	conn    *conn
	closed  bool
}

// New makes a client; command is asked whenever a child has to be started,
// which is not before the first call.
func New(command func() (Command, error)) *Client { return &Client{command: command} }

// Complete asks the child to ask the provider. The error is a [*model.Failure].
func (c *Client) Complete(ctx context.Context, t model.Target, r *model.CompleteRequest) (model.Completion, error) {
	got, err := c.call(ctx, t, ask{Op: opComplete, Complete: r, Parts: r.Emit != nil})
	switch {
	case err != nil:
		return model.Completion{}, err
	case got.Completion == nil:
		return model.Completion{}, gone()
	}
	return *got.Completion, nil
}

// Embed asks the child to ask the provider. The error is a [*model.Failure].
func (c *Client) Embed(ctx context.Context, t model.Target, r *model.EmbedRequest) (model.Vectors, error) {
	got, err := c.call(ctx, t, ask{Op: opEmbed, Embed: r})
	if err != nil {
		return model.Vectors{}, err
	}
	if got.Vectors == nil {
		return model.Vectors{}, gone()
	}
	v, err := got.Vectors.unpack()
	if err != nil || len(v.Vectors) != len(r.Input) {
		return model.Vectors{}, gone()
	}
	return v, nil
}

// Close ends the child, if there is one, and waits until it has ended.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.conn == nil {
		return nil
	}
	err := c.conn.end()
	c.conn = nil
	return err
}

// gone is a child that ended, or answers what nobody asked: it had the call,
// and what the call cost nobody can know.
func gone() *model.Failure {
	return &model.Failure{
		Kind: model.Unavailable, Charge: model.ChargeReserved,
		Detail: "the process that asks providers ended",
	}
}

// never is a call that no child got.
func never(why string) *model.Failure {
	return &model.Failure{Kind: model.Unavailable, Charge: model.ChargeNothing, Detail: why}
}

func (c *Client) call(ctx context.Context, t model.Target, a ask) (reply, error) {
	if ctx.Err() != nil {
		return reply{}, &model.Failure{Kind: model.Cancelled, Charge: model.ChargeNothing}
	}
	live, err := c.connect()
	if err != nil {
		return reply{}, never("the process that asks providers does not start")
	}
	if until, ok := ctx.Deadline(); ok {
		t.Timeout = min(t.Timeout, time.Until(until))
	}
	a.Target = &target{t.Kind, t.BaseURL, t.Model, t.Key.Reveal(), max(t.Timeout.Milliseconds(), 1)}
	return live.call(ctx, a)
}

var errClosed = errors.New("the client is closed")

// connect is the child that lives, or a new one.
func (c *Client) connect() (*conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.conn != nil && c.conn.alive() {
		return c.conn, nil
	}
	if c.conn != nil {
		_ = c.conn.end() // it is dead; its end is waited for
		c.conn = nil
	}
	cmd, err := c.command()
	if err != nil {
		return nil, err
	}
	p, err := start(cmd)
	if err != nil {
		return nil, err
	}
	c.conn = newConn(p.in, p.out, p.end)
	return c.conn, nil
}

// A conn is one child's life as its parent sees it.
type conn struct {
	in   io.Writer
	end  func() error // ends the child and waits for it
	dead chan struct{}

	writing sync.Mutex

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*waiter
}

// A waiter is a call that waits for its reply.
type waiter struct {
	reply chan reply // takes one
	more  chan struct{}
	emit  func(model.Piece)

	mu     sync.Mutex
	pieces []model.Piece // that nobody was given yet: who is slow to take them holds up no other call
}

func (w *waiter) add(p model.Piece) {
	w.mu.Lock()
	w.pieces = append(w.pieces, p)
	w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default: // it was told, and has not looked yet
	}
}

// pass gives on what has come.
func (w *waiter) pass() {
	w.mu.Lock()
	pieces := w.pieces
	w.pieces = nil
	w.mu.Unlock()
	for _, p := range pieces {
		w.emit(p)
	}
}

func newConn(in io.Writer, out io.Reader, end func() error) *conn {
	c := &conn{in: in, end: end, dead: make(chan struct{}), waiting: map[uint64]*waiter{}}
	go c.read(out)
	return c
}

func (c *conn) alive() bool {
	select {
	case <-c.dead:
		return false
	default:
		return true
	}
}

// read hands out replies until there are no more.
func (c *conn) read(out io.Reader) {
	defer close(c.dead)
	buffered := bufio.NewReader(out)
	for {
		var r reply
		if decode(buffered, &r) != nil {
			return
		}
		c.mu.Lock()
		w := c.waiting[r.ID]
		if r.Piece == nil {
			delete(c.waiting, r.ID)
		}
		c.mu.Unlock()
		switch {
		case w == nil:
		case r.Piece == nil:
			w.reply <- r
		case w.emit != nil:
			w.add(*r.Piece)
		}
	}
}

// grace is how long the child has to say what a call that is cancelled cost.
const grace = 250 * time.Millisecond

func (c *conn) call(ctx context.Context, a ask) (reply, error) {
	w := &waiter{reply: make(chan reply, 1), more: make(chan struct{}, 1)}
	if a.Parts {
		w.emit = a.Complete.Emit
	}
	c.mu.Lock()
	c.last++
	a.ID = c.last
	c.waiting[a.ID] = w
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, a.ID)
		c.mu.Unlock()
	}()
	if err := c.send(ctx, a); err != nil {
		if errors.Is(err, errFrame) {
			return reply{}, &model.Failure{Kind: model.TooLarge, Charge: model.ChargeNothing}
		}
		return reply{}, gone()
	}
	for {
		select {
		case <-w.more:
			w.pass()
		case r := <-w.reply:
			w.pass()
			return r.judged()
		case <-c.dead:
			return c.afterDeath(w.reply)
		case <-ctx.Done():
			return c.cancel(ctx, a.ID, w.reply)
		}
	}
}

// judged is the reply, or the failure that it tells of.
func (r reply) judged() (reply, error) {
	if r.Failure != nil {
		return reply{}, r.Failure
	}
	return r, nil
}

// afterDeath is a reply that came with the child's last breath, if one did.
func (c *conn) afterDeath(w chan reply) (reply, error) {
	select {
	case r := <-w:
		return r.judged()
	default:
		return reply{}, gone()
	}
}

func (c *conn) cancel(ctx context.Context, id uint64, w chan reply) (reply, error) {
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	if c.send(late, ask{ID: id, Op: opCancel}) == nil {
		select {
		case r := <-w:
			return r.judged()
		case <-c.dead:
		case <-late.Done():
		}
	}
	kind := model.Cancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = model.TimedOut
	}
	return reply{}, &model.Failure{Kind: kind, Charge: model.ChargeReserved}
}

// send writes one frame. A child that does not read until ctx ends is ended:
// half a frame is of no use to anyone.
func (c *conn) send(ctx context.Context, a ask) error {
	frame, err := encode(a)
	if err != nil {
		return err
	}
	defer clear(frame) // it may hold a key
	c.writing.Lock()
	defer c.writing.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = c.end() })
	_, err = c.in.Write(frame)
	stop()
	return err
}
