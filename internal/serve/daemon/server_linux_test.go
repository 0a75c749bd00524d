package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// One process serves a folder; what one that is gone left there is nobody's.
func TestOneServes(t *testing.T) {
	dir := t.TempDir()
	stale, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
	if err == nil {
		err = errors.Join(syscall.Bind(stale, &syscall.SockaddrUnix{Name: filepath.Join(dir, SocketName)}),
			syscall.Close(stale))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(filepath.Join(dir, SocketName)); !errors.Is(err, ErrNobody) {
		t.Fatalf("control: %v", err)
	}
	s := serve(t, dir, says)
	if status, _, why := code(t, client(t, dir)); status != 42 {
		t.Errorf("%d %q", status, why)
	}
	info, err := os.Stat(filepath.Join(dir, SocketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if f, err := lockIn(dir); !errors.Is(err, ErrServed) {
		t.Errorf("two serve: %v, %v", f, err)
	}
	s.stop()
	if err := s.wait(t); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, SocketName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// A home may lie deeper than an address of a socket is long.
func TestDeepFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, says)
	if status, _, why := code(t, client(t, dir)); status != 42 {
		t.Errorf("%d %q", status, why)
	}
}

// Who connects while the server ends is served, or finds nobody: nobody waits,
// and nobody is told that something was begun which was not.
func TestEndsWhenIdle(t *testing.T) {
	dir := t.TempDir()
	var served atomic.Int64
	s := serve(t, dir, func(_ context.Context, c *Call) Outcome {
		if c.Begin() != nil {
			return Outcome{Declined: "gone"}
		}
		served.Add(1)
		return Outcome{Status: 42}
	}, func(o *Options) { o.Idle = time.Millisecond })
	var taken, others atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 15 {
				status, _, why := code(t, client(t, dir))
				switch status {
				case 42:
					taken.Add(1)
				case alone:
					others.Add(1)
				default:
					t.Errorf("%d %q", status, why)
				}
			}
		})
	}
	all.Wait()
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
	if taken.Load() != served.Load() || others.Load() == 0 {
		t.Errorf("served %d, taken %d, alone %d", served.Load(), taken.Load(), others.Load())
	}
}

// stuck is a launch that writes without end, or waits for input that never comes.
func stuck(ended chan<- error) func(ctx context.Context, c *Call) Outcome {
	return func(ctx context.Context, c *Call) Outcome {
		if err := c.Begin(); err != nil {
			return Outcome{Declined: "gone"}
		}
		var err error
		if len(c.Args) > 0 && c.Args[0] == "read" {
			_, err = c.Stderr.Write([]byte("begun"))
			if err == nil {
				_, err = c.Stdin.Read(make([]byte, 1))
			}
		} else {
			for err == nil {
				_, err = c.Stdout.Write(make([]byte, 64<<10))
			}
		}
		<-ctx.Done()
		ended <- err
		return Outcome{Status: 1}
	}
}

// A client that is killed takes its launch with it, whatever that waits for.
func TestKilledClients(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, t.TempDir(), stuck(ended))
	for _, what := range []string{"read", "write"} {
		c := client(t, s.dir, what)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		from := c.StdoutPipe
		if what == "read" {
			from = c.StderrPipe
		}
		out, err := from()
		if err == nil {
			err = c.Start()
		}
		if err == nil {
			_, err = io.ReadFull(out, make([]byte, 5)) // it is under way
		}
		if err == nil {
			err = c.Process.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if !errors.Is(err, unix.ECANCELED) && !errors.Is(err, unix.EPIPE) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it goes on", what)
		}
		_ = c.Wait()
	}
}

// A client's cancel reaches its own launch and no other.
func TestCancel(t *testing.T) {
	ended := make(chan error, 2)
	s := serve(t, t.TempDir(), func(ctx context.Context, c *Call) Outcome {
		if err := c.Begin(); err != nil {
			return Outcome{Declined: "gone"}
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return Outcome{Status: 130}
	})
	dial := func() *Client {
		c, err := Dial(filepath.Join(s.dir, SocketName))
		if err == nil {
			err = c.Send(Request{Kind: Launch}, 0, 1, 2)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	one, other := dial(), dial()
	one.Cancel()
	if a := one.Wait(); !a.Taken || a.Status != 130 || a.Lost {
		t.Errorf("%+v", a)
	}
	if len(ended) != 1 {
		t.Error("both have ended")
	}
	other.Cancel()
	if a := other.Wait(); a.Status != 130 {
		t.Errorf("%+v", a)
	}
}

// What goes wrong with one is no other's, and there is an end to how many.
func TestPanicsAndCrowds(t *testing.T) {
	inside, leave := make(chan struct{}, 2), make(chan struct{})
	s := serve(t, t.TempDir(), func(_ context.Context, c *Call) Outcome {
		if err := c.Begin(); err != nil {
			return Outcome{Declined: "gone"}
		}
		switch {
		case len(c.Args) == 1:
			panic("at the disco")
		case len(c.Args) == 2:
			_ = c.Here(func(string) { panic("at the disco") }) // it does not return
		}
		inside <- struct{}{}
		<-leave
		return Outcome{Status: 42}
	}, func(o *Options) { o.Most = 2 })
	first := client(t, s.dir)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	<-inside
	for _, args := range [][]string{{"panic"}, {"panic", "there"}} {
		if status, _, trace := code(t, client(t, s.dir, args...)); status != panicked || !strings.Contains(trace,
			"at the disco") {
			t.Errorf("%d %q", status, trace)
		}
	}
	second := client(t, s.dir)
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	<-inside
	if status, _, why := code(t, client(t, s.dir)); status != alone || !strings.Contains(why, "enough to do") {
		t.Errorf("the third of two: %d %q", status, why)
	}
	close(leave)
	for _, c := range []*exec.Cmd{first, second} {
		var exit *exec.ExitError
		if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 42 {
			t.Errorf("it was not let be: %v", err)
		}
	}
}

// Whoever sends nonsense, or nothing, keeps nobody from being served.
func TestNonsense(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, says)
	good, err := (&Request{Kind: Launch, Args: []string{"launch"}}).encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, packet := range map[string][]byte{
		"nothing": {}, "noise": []byte(strings.Repeat("noise", 100)), "magic alone": []byte(magic), "cut": good[:len(good)-1],
		"more": append(good[:len(good):len(good)], 'x'), "no streams": good, "large": make([]byte, MaxRequest+1),
	} {
		c, err := Dial(filepath.Join(dir, SocketName))
		if err != nil {
			t.Fatal(err)
		}
		_, err = syscall.SendmsgN(c.fd, packet, nil, nil, syscall.MSG_NOSIGNAL)
		if err == nil && len(packet) == 0 {
			c.Close()
			continue
		}
		if a := c.Wait(); err == nil && (a.Taken || a.Why != "") {
			t.Errorf("%s: %+v", name, a)
		}
		c.Close()
	}
	var silent []*Client
	for range mostWaiting + 8 {
		c, err := Dial(filepath.Join(dir, SocketName))
		if err != nil {
			break
		}
		silent = append(silent, c)
	}
	for _, c := range silent {
		c.Close()
	}
	for range 100 { // the last of them may still be leaving
		if status, _, _ := code(t, client(t, dir)); status == 42 {
			return
		}
	}
	t.Error("nobody is served any more")
}

// Where the folder was removed and made again, another may serve: its socket stays.
func TestWhatAnotherServesStays(t *testing.T) {
	for name, again := range map[string]bool{"made again": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			socket := filepath.Join(dir, SocketName)
			s := serve(t, dir, says)
			if again {
				for _, path := range []string{socket, filepath.Join(dir, lockName)} {
					if err := errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600)); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.stop()
			if err := s.wait(t); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(socket); (err == nil) != again {
				t.Error(err)
			}
		})
	}
}
