package kb_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
)

// childEnv makes this test binary a process that is there to be killed.
const childEnv = "RLP_KB_CHILD"

func TestMain(m *testing.M) {
	args := strings.Split(os.Getenv(childEnv), "\n")
	var err error
	switch args[0] {
	case "run":
		err = childRun(args[1], args[2])
	case "user":
		err = childUser(args[1], args[2])
	case "hold":
		err = childHold(args[1])
	case "synced":
		err = childSynced(args[1], args[2], args[3])
	case "taker":
		err = childTaker(args[1])
	case "intake":
		err = childIntake(args[1])
	case "limited":
		err = childLimited(args[1])
	default:
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, args, err)
	os.Exit(1)
}

// childRun records decisions for ever and says of each that it is recorded.
func childRun(home, run string) error {
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		return err
	}
	j, err := journal.Create(journal.Options{
		Dir: dir, Head: audit.Head{RunID: run, Tenant: "default", Agent: "killed"},
		Observe: func(*audit.Record) bool { return true },
	})
	if err != nil {
		return err
	}
	op, err := j.Intern("kb_put")
	if err != nil {
		return err
	}
	for i := 1; ; i++ {
		// every other one is like the one before
		d := audit.Decision{Op: op, Deny: i%3 == 0, Keep: true, Target: strconv.Itoa(i / 2)}
		if _, err := j.Decide(&d); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// childUser puts values for ever, says of each that it is stored, and takes in journals.
func childUser(home, name string) error {
	ctx := context.Background()
	// On a busy machine a process that was killed holds its locks until its last
	// write is on the disk: longer than the 10 s that a caller waits by itself.
	s, err := kb.Open(ctx, kb.Options{Home: home, Wait: time.Minute})
	if err != nil {
		return err
	}
	v := s.View(kb.Origin{Agent: name})
	for i := 1; ; i++ {
		key := name + "/" + strconv.Itoa(i)
		rev, err := v.Put(ctx, "notes", key, []byte(key))
		if err != nil {
			return err
		}
		// What a word leads to changes in the same moment as the value.
		if _, err := v.Put(ctx, "drafts", "shared", []byte("words of "+key)); err != nil {
			return err
		}
		fmt.Println(key, rev)
		if i%5 == 0 {
			if got, err := s.Ingest(ctx); err != nil || len(got.Damaged) > 0 {
				return fmt.Errorf("%v: %w", got.Damaged, err)
			}
		}
	}
}

// childHold opens the store, says so, and lives until its input ends.
func childHold(home string) error {
	s, err := kb.Open(context.Background(), kb.Options{Home: home})
	if err != nil {
		return err
	}
	fmt.Println("open", s.Owner())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, s.Close())
}

// A child is a process under test and what it has said.
type child struct {
	kind, name string
	cmd        *exec.Cmd
	in         io.WriteCloser
	out        *bufio.Scanner
	said       []string
	err        *strings.Builder
}

func start(t *testing.T, kind, name string, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{kind: kind, name: name, cmd: exec.Command(exe), err: &strings.Builder{}}
	c.cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(append([]string{kind}, args...), "\n"))
	c.cmd.Stderr = c.err
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.cmd.Process.Kill() })
	c.out = bufio.NewScanner(out)
	return c
}

// hear waits for n more things that the child says.
func (c *child) hear(t *testing.T, n int) {
	t.Helper()
	for range n {
		if !c.out.Scan() {
			c.cmd.Wait()
			t.Fatalf("%s %s stopped by itself: %s", c.kind, c.name, c.err)
		}
		c.said = append(c.said, c.out.Text())
	}
}

// kill ends the child wherever it is and hears what it said until then.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for c.out.Scan() {
		c.said = append(c.said, c.out.Text())
	}
	c.cmd.Wait()
	if c.err.Len() > 0 {
		t.Fatalf("%s %s: %s", c.kind, c.name, c.err)
	}
}

// kills is how many processes a kill test kills: a hundredth, unless it is let soak.
func kills() int {
	if os.Getenv("RLP_SOAK") == "1" {
		return 1000
	}
	return 10
}

// Runs and users of one home are killed at random moments, owners of the store
// preferred. Nothing that was acknowledged is lost and nothing is there twice.
//
//rlp:holds P19 R70
func TestKilledAnywhere(t *testing.T) {
	seed := uint64(20260102)
	t.Logf("seed %d, %d kills", seed, kills())
	rnd := rand.New(rand.NewPCG(seed, seed))
	home := filepath.Join(t.TempDir(), "home")
	next := 0
	begin := func(kind string) *child {
		next++
		name := fmt.Sprintf("%s%d", kind, next)
		return start(t, kind, name, home, name)
	}
	live := []*child{begin("user"), begin("user"), begin("user"), begin("run"), begin("run")}
	var dead []*child
	for n := range kills() {
		i := rnd.IntN(len(live))
		if n%2 == 0 {
			i = owner(home, live, i)
		}
		c := live[i]
		c.hear(t, 1+rnd.IntN(map[string]int{"run": 3000, "user": 20}[c.kind]))
		c.kill(t)
		dead = append(dead, c)
		live[i] = begin(c.kind)
	}
	for _, c := range live {
		c.hear(t, 1)
		c.kill(t)
		dead = append(dead, c)
	}
	s := openStore(t, home)
	records, puts := 0, 0
	for _, c := range dead {
		if c.kind == "run" {
			records += checkRun(t, s, c)
		} else {
			puts += checkUser(t, s, c)
		}
	}
	checkLog(t, s, records)
	if v, err := s.Verify(t.Context()); err != nil || v.Values < puts {
		t.Errorf("%d puts were acknowledged, %+v were verified: %v", puts, v, err)
	}
	t.Logf("%d records and %d puts acknowledged or made", records, puts)
}

// owner finds the child that owns the store, or takes the one given.
func owner(home string, live []*child, otherwise int) int {
	p, _ := os.ReadFile(filepath.Join(home, "run", "kb.lock"))
	for i, c := range live {
		if strconv.Itoa(c.cmd.Process.Pid) == strings.TrimSpace(string(p)) {
			return i
		}
	}
	return otherwise
}

// checkRun: the log has every record that the run was told of, in order, at
// most one more, and then that it was killed. It returns how many there are.
func checkRun(t *testing.T, s *kb.Store, c *child) int {
	t.Helper()
	n := 0
	var last audit.Record
	for rec, err := range s.Audit(t.Context(), kb.Filter{Run: c.name}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if rec.RunSeq != uint64(n) {
			t.Fatalf("%s: record %d has run_seq %d", c.name, n, rec.RunSeq)
		}
		if d := rec.Decision; d != nil && (d.Target != strconv.Itoa(n/2) || d.Deny != (n%3 == 0)) {
			t.Fatalf("%s: record %d is %+v", c.name, n, d)
		}
		last = rec
	}
	if last.Kind() != audit.KindRunFailed || last.Event.Reason != "killed" {
		t.Fatalf("%s ends in %s", c.name, last.Kind())
	}
	if told := len(c.said); n-1 < told || n-1 > told+1 {
		t.Fatalf("%s was told of %d records, %d are in the log", c.name, told, n-1)
	}
	return n
}

// checkUser: every put that the user was told of is there, made once.
func checkUser(t *testing.T, s *kb.Store, c *child) int {
	t.Helper()
	v := s.View(kb.Origin{})
	for _, line := range c.said {
		key, rev, _ := strings.Cut(line, " ")
		got, err := v.Get(t.Context(), "notes", key)
		if err != nil || string(got.Bytes) != key || strconv.FormatUint(got.Revision, 10) != rev {
			t.Fatalf("%s was told of %s: %+v %v", c.name, line, got, err)
		}
	}
	return len(c.said)
}

// checkLog: the log as a whole has n records, numbered without a gap.
func checkLog(t *testing.T, s *kb.Store, n int) {
	t.Helper()
	seq := uint64(0)
	for rec, err := range s.Audit(t.Context(), kb.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; rec.Seq != seq {
			t.Fatalf("record %d has seq %d", seq, rec.Seq)
		}
	}
	if seq != uint64(n) {
		t.Fatalf("the log has %d records, the runs have %d", seq, n)
	}
}

// An owner that stops, without dying, keeps nobody waiting for ever: the error
// says who it is. When it goes on, so does everybody.
func TestStuckOwner(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	c := start(t, "hold", "holder", home)
	c.hear(t, 1)
	if c.said[0] != "open true" {
		t.Fatal(c.said)
	}
	s, err := kb.Open(t.Context(), kb.Options{Home: home, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.View(kb.Origin{}).Put(t.Context(), "notes", "a", nil); err != nil { // the control
		t.Fatal(err)
	}
	stop(t, c)
	_, err = kb.Open(t.Context(), kb.Options{Home: home, Wait: 50 * time.Millisecond})
	if !errors.Is(err, kb.ErrUnavailable) || !strings.Contains(err.Error(), strconv.Itoa(c.cmd.Process.Pid)) {
		t.Errorf("opening beside a stuck owner: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	// by itself it waits 10 s
	if _, err := kb.Open(ctx, kb.Options{Home: home}); !errors.Is(err, context.DeadlineExceeded) ||
		time.Since(began) > 5*time.Second {
		t.Errorf("opening for a while beside a stuck owner: %v after %s", err, time.Since(began))
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.View(kb.Origin{}).Get(ctx, "notes", "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asking a stuck owner: %v", err)
	}
	resume(t, c)
	if _, err := s.View(kb.Origin{}).Get(t.Context(), "notes", "a"); err != nil {
		t.Errorf("asking an owner that goes on: %v", err)
	}
	// The owner ends in order: the client takes its place.
	c.in.Close()
	if err := c.cmd.Wait(); err == nil {
		t.Log("the holder ended")
	}
	if _, err := s.View(kb.Origin{}).Get(t.Context(), "notes", "a"); err != nil || !s.Owner() {
		t.Errorf("after the owner ended: %v, owner %v", err, s.Owner())
	}
}
