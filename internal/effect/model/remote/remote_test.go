package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/model"
)

// The test binary is the child, and the parent that is killed, when it is
// called so.
func TestMain(m *testing.M) {
	switch os.Args[0] {
	case "child":
		if err := Serve(context.Background(), os.Stdin, os.Stdout, odd{}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case "parent":
		c := New(func() (Command, error) { return Command{Path: os.Args[1], Args: []string{"child"}}, nil })
		r := &model.CompleteRequest{Messages: []model.Message{{Content: os.Args[2]}}}
		_, _ = c.Complete(context.Background(), model.Target{Model: "busy", Timeout: time.Hour}, r)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// self is this binary as a child.
func self() (Command, error) {
	return Command{Path: os.Args[0], Args: []string{"child"}, Env: []string{"SSL_CERT_FILE=/certs"}}, nil
}

// odd is a backend that does what the model's name says.
type odd struct{}

func (odd) Complete(ctx context.Context, t model.Target, r *model.CompleteRequest) (model.Completion, error) {
	c := model.Completion{FinishReason: "stop", Metered: model.Metered{In: 1, Out: 2}}
	switch t.Model {
	case "key":
		c.Text = t.Kind + " " + t.BaseURL + " " + t.Key.Reveal()
	case "last":
		c.Text = r.Messages[len(r.Messages)-1].Content
	case "parts":
		for i := range 100 {
			part := strconv.Itoa(i) + " "
			c.Text += part
			if r.Emit != nil {
				r.Emit(model.Piece{Text: part})
			}
		}
	case "pid":
		c.Text = strconv.Itoa(os.Getpid())
	case "env":
		c.Text = strings.Join(os.Environ(), " ")
	case "fds":
		names, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			return c, err
		}
		for _, name := range names {
			if to, err := os.Readlink(name); err == nil {
				c.Text += to + "\n"
			}
		}
	case "die":
		os.Exit(3)
	case "garbage":
		_, _ = os.Stdout.WriteString("\x05\x00\x00\x00hello")
		<-ctx.Done()
	case "hang":
		<-ctx.Done()
		return c, &model.Failure{Kind: model.Cancelled, Charge: model.ChargeMeasured, Received: 5}
	case "deaf":
		<-time.After(time.Hour)
	case "busy": // and says so, whole
		if err := os.WriteFile(r.Messages[0].Content+".new", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			return c, err
		}
		if err := os.Rename(r.Messages[0].Content+".new", r.Messages[0].Content); err != nil {
			return c, err
		}
		<-time.After(time.Hour)
	case "fail":
		return c, &model.Failure{
			Kind: model.RateLimited, Status: 429, Detail: "slowly", RetryAfter: time.Second,
			Charge: model.ChargeNothing,
		}
	case "odd":
		return c, errors.New("no failure of ours")
	}
	return c, nil
}

func (odd) Embed(_ context.Context, t model.Target, r *model.EmbedRequest) (model.Vectors, error) {
	v := model.Vectors{Metered: model.Metered{In: 3, Out: -1}}
	for i := range r.Input {
		v.Vectors = append(v.Vectors, []float32{float32(i), 0.1, -2})
	}
	switch t.Model {
	case "few":
		v.Vectors = v.Vectors[1:]
	case "uneven":
		v.Vectors[0] = v.Vectors[0][1:]
	case "huge":
		v.Vectors = [][]float32{make([]float32, model.MaxFloats+1)}
	}
	return v, nil
}

func client(t testing.TB) *Client {
	t.Helper()
	c := New(self)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func complete(c *Client, name, text string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got, err := c.Complete(ctx, model.Target{
		Kind: "openai", BaseURL: "http://x", Model: name, Key: model.NewKey("sk"),
		Timeout: time.Minute,
	},
		&model.CompleteRequest{Messages: []model.Message{{Role: "user", Content: text}}})
	return got.Text, err
}

func failed(t testing.TB, err error) *model.Failure {
	t.Helper()
	var f *model.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is no Failure", err)
	}
	return f
}

// The child gets what the call needs, and nothing else of its parent.
func TestChildHasNothingElse(t *testing.T) {
	leak, err := os.CreateTemp(t.TempDir(), "inherited")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	inheritable(t, leak)
	t.Setenv("HTTPS_PROXY", "http://proxy.example")
	c := client(t)
	if got, err := complete(c, "key", ""); err != nil || got != "openai http://x sk" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := complete(c, "env", ""); err != nil || got != "SSL_CERT_FILE=/certs" {
		t.Errorf("the child's environment: %q, %v", got, err)
	}
	if got, err := complete(c, "fds", ""); err != nil || strings.Contains(got, leak.Name()) {
		t.Errorf("the child's descriptors: %q, %v", got, err)
	}
	bare := New(func() (Command, error) { return Command{Path: os.Args[0], Args: []string{"child"}}, nil })
	defer bare.Close()
	if got, err := complete(bare, "env", ""); err != nil || got != "" {
		t.Errorf("a child without an environment has %q, %v", got, err)
	}
	// Control: what is inheritable is inherited by a child that is just started.
	if runtime.GOOS == "linux" {
		inheritable(t, leak)
		out, err := exec.Command("/bin/sh", "-c", "ls -l /proc/self/fd").Output()
		if err != nil || !strings.Contains(string(out), leak.Name()) {
			t.Errorf("control: %s, %v", out, err)
		}
	}
}

func TestNothingStartsBeforeTheFirstCall(t *testing.T) {
	c := New(func() (Command, error) { return Command{}, errors.New("started") })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := complete(c, "last", "x"); failed(t, err).Charge != model.ChargeNothing {
		t.Errorf("after the end: %v", err)
	}
	c = New(func() (Command, error) { return Command{Path: "/nonexistent/program"}, nil })
	if _, err := complete(c, "last", "x"); failed(t, err).Kind != model.Unavailable ||
		failed(t, err).Charge != model.ChargeNothing {
		t.Errorf("%v", err)
	}
}

// A child that dies takes its calls with it; the next call finds another.
func TestChildThatDies(t *testing.T) {
	c := client(t)
	first, err := complete(c, "pid", "")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := complete(c, "pid", ""); err != nil || again != first {
		t.Errorf("control: each call has a child: %s, %s, %v", first, again, err)
	}
	for _, name := range []string{"die", "garbage"} {
		_, err = complete(c, name, "")
		if f := failed(t, err); f.Kind != model.Unavailable || f.Charge != model.ChargeReserved {
			t.Errorf("%s: %+v", name, f)
		}
		next, err := complete(c, "pid", "")
		if err != nil || next == first {
			t.Errorf("after %s: %q, %v", name, next, err)
		}
		first = next
	}
}

func TestFailuresArrive(t *testing.T) {
	c := client(t)
	_, err := complete(c, "fail", "")
	if f := failed(t, err); *f != (model.Failure{
		Kind: model.RateLimited, Status: 429, Detail: "slowly",
		RetryAfter: time.Second, Charge: model.ChargeNothing,
	}) {
		t.Errorf("%+v", f)
	}
	_, err = complete(c, "odd", "")
	if f := failed(t, err); f.Charge != model.ChargeReserved {
		t.Errorf("%+v", f)
	}
}

// The end of a call reaches the child, which says what it cost; one that says
// nothing does not hold its parent.
func TestCancellation(t *testing.T) {
	c := client(t)
	if _, err := complete(c, "pid", ""); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]model.Failure{
		"hang": {Kind: model.Cancelled, Charge: model.ChargeMeasured, Received: 5},
		"deaf": {Kind: model.Cancelled, Charge: model.ChargeReserved},
	} {
		start := time.Now()
		var f *model.Failure
		// a slow machine sends nothing, or hears nothing, in so short a time
		for wait := 20 * time.Millisecond; wait < 10*time.Second; wait *= 8 {
			ctx, cancel := context.WithCancel(context.Background())
			timer := time.AfterFunc(wait, cancel)
			_, err := c.Complete(ctx, model.Target{Model: name, Timeout: time.Hour}, &model.CompleteRequest{})
			timer.Stop()
			cancel()
			if f = failed(t, err); *f == want {
				break
			}
		}
		if *f != want || time.Since(start) > 20*time.Second {
			t.Errorf("%s: %+v after %v", name, f, time.Since(start))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Complete(ctx, model.Target{Model: "deaf", Timeout: time.Hour}, &model.CompleteRequest{})
	if f := failed(t, err); f.Kind != model.TimedOut {
		t.Errorf("%+v", f)
	}
	if got, err := complete(c, "last", "still there"); err != nil || got != "still there" {
		t.Errorf("%q, %v", got, err)
	}
}

// Many calls at a time get each its own answer.
func TestManyCalls(t *testing.T) {
	c := client(t)
	var all sync.WaitGroup
	for i := range maxCalls {
		all.Go(func() {
			text := strings.Repeat(strconv.Itoa(i)+" ", 1+i*1000)
			if got, err := complete(c, "last", text); err != nil || got != text {
				t.Errorf("%d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	all.Wait()
}

func TestVectors(t *testing.T) {
	c := client(t)
	ctx := context.Background()
	r := &model.EmbedRequest{Input: []string{"a", "b"}}
	v, err := c.Embed(ctx, model.Target{Model: "some", Timeout: time.Minute}, r)
	if err != nil || len(v.Vectors) != 2 || !slices.Equal(v.Vectors[1], []float32{1, 0.1, -2}) ||
		v.Metered != (model.Metered{In: 3, Out: -1}) {
		t.Errorf("%+v, %v", v, err)
	}
	for name, want := range map[string]model.Kind{
		"few": model.Unavailable, "uneven": model.Broken,
		"huge": model.TooLarge,
	} {
		_, err := c.Embed(ctx, model.Target{Model: name, Timeout: time.Minute}, r)
		if f := failed(t, err); f.Kind != want {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// The child is gone when its parent is, however the parent went and whatever
// the child is doing.
func TestChildEndsWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there the end of its input ends it
	}
	says := filepath.Join(t.TempDir(), "pid")
	parent := exec.Command(os.Args[0])
	parent.Args = []string{"parent", os.Args[0], says}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var text []byte
	for until := time.Now().Add(time.Minute); text == nil; <-tick.C {
		if text, _ = os.ReadFile(says); time.Now().After(until) {
			t.Fatal("control: the child does not begin")
		}
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil || !lives(pid) {
		t.Fatal("control: the child is not there")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for until := time.Now().Add(time.Minute); lives(pid); <-tick.C {
		if time.Now().After(until) {
			t.Fatal("the child goes on")
		}
	}
}

// lives reports whether a process runs; one that nobody waited for does not.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// A child ends when nobody can ask it any more.
func TestServeEndsWithItsInput(t *testing.T) {
	in, feed := io.Pipe()
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- Serve(context.Background(), in, &out, odd{}) }()
	frame, err := encode(ask{
		ID: 1, Op: opComplete, Target: &target{Model: "hang", TimeoutMS: 60000},
		Complete: &model.CompleteRequest{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Write(frame); err != nil {
		t.Fatal(err)
	}
	_ = feed.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var r reply
	if err := decode(&out, &r); err != nil || r.ID != 1 || r.Failure == nil || r.Failure.Kind != model.Cancelled {
		t.Errorf("%+v, %v", r, err)
	}
}

// What is no ask ends the child.
func TestServeRefuses(t *testing.T) {
	for name, a := range map[string]any{
		"no op":      ask{ID: 1, Target: &target{}},
		"no target":  ask{ID: 1, Op: opComplete, Complete: &model.CompleteRequest{}},
		"no request": ask{ID: 1, Op: opComplete, Target: &target{}},
		"both": ask{
			ID: 1, Op: opEmbed, Target: &target{}, Complete: &model.CompleteRequest{},
			Embed: &model.EmbedRequest{},
		},
		"other field": map[string]any{"id": 1, "op": opCancel, "extra": 1},
	} {
		frame, err := encode(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := Serve(context.Background(), bytes.NewReader(frame), io.Discard, odd{}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := Serve(context.Background(), strings.NewReader("\xff\xff\xff\xff"), io.Discard, odd{}); !errors.Is(err,
		errFrame) {
		t.Errorf("4 GiB are waited for: %v", err)
	}
}

// Parts of an answer come in their order, and before it; who takes them slowly holds up
// no other call, and who asked for none gets none.
func TestPartsComeBeforeTheirAnswer(t *testing.T) {
	c := client(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	target := model.Target{Kind: "openai", Model: "parts", Timeout: time.Minute}
	began, goOn := make(chan struct{}), make(chan struct{})
	text := ""
	var calls sync.WaitGroup
	calls.Go(func() {
		r := &model.CompleteRequest{Emit: func(p model.Piece) {
			if text == "" {
				close(began)
				<-goOn
			}
			text += p.Text
		}}
		if got, err := c.Complete(ctx, target, r); err != nil || got.Text != text || !strings.HasSuffix(text, "98 99 ") {
			t.Errorf("%q in parts, %q whole, %v", text, got.Text, err)
		}
	})
	<-began
	if got, err := complete(c, "parts", ""); err != nil || !strings.HasSuffix(got, "98 99 ") {
		t.Errorf("beside it: %q %v", got, err)
	}
	close(goOn)
	calls.Wait()
}
