package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Call is one launch for a client.
type Call struct {
	Args, Env             []string
	Stdin, Stdout, Stderr *Stream

	conn    *conn
	workers *workers
	cwd     *os.File
	mu      sync.Mutex
	began   bool
}

// Begin says that from now on nobody else may do this. Its error says that the
// client is gone, and may have begun it by itself.
func (c *Call) Begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began {
		return nil
	}
	if err := c.conn.send([]byte{begun}); err != nil {
		return fmt.Errorf("the client is gone: %w", err)
	}
	c.began = true
	return nil
}

// Here does something on another thread, where relative paths mean what they
// mean to the client; dir is where that is, without links. A thread of its own
// makes every wait longer, so that nothing else is done there.
func (c *Call) Here(do func(dir string)) error { return c.workers.at(c.cwd, do) }

// converse answers one connection to its end.
func (s *server) converse(c *conn) {
	defer c.close()
	launch := s.listenTo(c)
	s.mu.Lock()
	s.waiting--
	s.rest()
	s.mu.Unlock()
	if launch == nil {
		return
	}
	launch()
}

// rest begins to wait for the end, with the lock held, if there is nothing to do.
func (s *server) rest() {
	if s.waiting == 0 && s.running == 0 && !s.over {
		s.idle.Reset(s.opt.Idle)
	}
}

// listenTo reads the request and answers it, or returns what answers it.
func (s *server) listenTo(c *conn) (launch func()) {
	late := time.AfterFunc(requestWithin, c.close)
	packet, _ := s.packets.Get().(*[]byte)
	if packet == nil {
		room := make([]byte, MaxRequest+1)
		packet = &room
	}
	defer s.packets.Put(packet)
	n, files, err := c.receive(*packet, make([]byte, unix.CmsgSpace(3*4)))
	if err != nil {
		late.Stop()
		return nil
	}
	if !late.Stop() {
		closeAll(files)
		return nil
	}
	r, err := decode((*packet)[:n])
	if err != nil || (r.Kind == Launch) != (len(files) == 3) || len(files)%3 != 0 {
		closeAll(files)
		return nil
	}
	streams, err := streamsOf(c, files)
	if err != nil {
		return nil
	}
	p, err := peerOf(c)
	if err != nil {
		closeStreams(streams)
		return nil
	}
	defer p.close()
	why, dir := s.self.why(p, r)
	if why == "" && r.Kind != Launch {
		_ = dir.Close()
		s.control(c, r.Kind)
		return nil
	}
	if why == "" && !s.enter() {
		_ = dir.Close()
		why = "there is enough to do"
	}
	if why != "" {
		closeStreams(streams)
		s.decline(c, why)
		return nil
	}
	call := &Call{
		Args: r.Args, Env: r.Env, Stdin: streams[0], Stdout: streams[1], Stderr: streams[2],
		conn: c, workers: s.workers, cwd: dir,
	}
	return func() { s.launch(call) }
}

func streamsOf(c *conn, files []int) ([]*Stream, error) {
	var streams []*Stream
	for i, fd := range files {
		st, err := newStream(fd, []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"}[i], c)
		if err != nil {
			closeAll(files[i+1:])
			closeStreams(streams)
			return nil, err
		}
		streams = append(streams, st)
	}
	return streams, nil
}

func closeStreams(streams []*Stream) {
	for _, st := range streams {
		_ = st.file.Close()
	}
}

// enter takes one of the places, if there is one.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= s.opt.Most {
		return false
	}
	s.running++
	return true
}

// decline says why a request is not done. The reasons are few.
func (s *server) decline(c *conn, why string) {
	s.mu.Lock()
	s.declined[why]++
	s.mu.Unlock()
	_ = c.send(append([]byte{declined}, why...))
	if why == anotherProgram && s.replaced() {
		s.end() // there is a newer one, which nobody can have while this one serves
	}
}

// replaced reports whether a file that this program is has been changed.
func (s *server) replaced() bool {
	for _, f := range s.fronts {
		if is, err := programAt(unix.AT_FDCWD, f.path); err != nil || is != f.was {
			return true
		}
	}
	return false
}

// control says how it stands, and ends if that was asked for.
func (s *server) control(c *conn, kind byte) {
	s.mu.Lock()
	state := State{
		PID: os.Getpid(), Since: s.opt.Since, Running: s.running, Done: s.done, Declined: s.declined,
		IdleMS: s.opt.Idle.Milliseconds(),
	}
	answer, err := json.Marshal(state)
	s.mu.Unlock()
	if err == nil && (kind == Status || kind == Stop) {
		_ = c.send(append([]byte{text}, answer...))
	}
	if kind == Stop {
		s.end()
	}
}

// launch does what the client asked for.
func (s *server) launch(call *Call) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	gone := make(chan struct{})
	go call.watch(cancel, gone)
	out := s.handle(ctx, call)
	not := out.Declined != "" && !call.began
	s.mu.Lock()
	s.running--
	if !not {
		s.done++
	}
	s.rest()
	s.mu.Unlock()
	if not {
		s.decline(call.conn, out.Declined)
	} else {
		_ = call.conn.send([]byte{ended, byte(out.Status)})
	}
	call.conn.close()
	<-gone
	closeStreams([]*Stream{call.Stdin, call.Stdout, call.Stderr})
	_ = call.cwd.Close()
}

// handle is the handler's work. What goes wrong with one is no other's.
func (s *server) handle(ctx context.Context, call *Call) (out Outcome) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(call.Stderr, "panic: %v\n\n%s", p, debug.Stack())
			out = Outcome{Status: panicked}
			time.AfterFunc(time.Second, runtime.GC) // what it had open is closed
		}
	}()
	return s.opt.Handle(ctx, call)
}

// panicked is the exit status of a Go program that panics.
const panicked = 2

// watch hears the client: cancel, or nothing more.
func (c *Call) watch(cancelled context.CancelFunc, gone chan<- struct{}) {
	defer close(gone)
	packet := make([]byte, 16)
	for {
		n, files, err := c.conn.receive(packet, make([]byte, unix.CmsgSpace(3*4)))
		closeAll(files)
		if err != nil {
			cancelled()
			return
		}
		if n == 1 && packet[0] == cancel {
			cancelled()
		}
	}
}
