package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A resident is `rlp daemon`, started for this run alone in a home of its own.
type resident struct{ cmd *exec.Cmd }

// daemon starts it and returns when it answers.
func (b *bench) daemon(ctx context.Context) (*resident, error) {
	env := b.env("home-daemon")
	help := exec.CommandContext(ctx, b.rlp, "daemon", "--help")
	help.Env = env
	if out, err := help.Output(); err != nil || !strings.Contains(string(out), "rlp daemon") {
		return nil, errors.New("this rlp has no daemon")
	}
	cmd := exec.Command(b.rlp, "daemon")
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &resident{cmd}
	socket := filepath.Join(b.tmp, "home-daemon", "run", "daemon.sock")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("unixpacket", socket); err == nil {
			return r, c.Close()
		}
	}
	r.stop()
	return nil, fmt.Errorf("rlp daemon does not answer at %s", socket)
}

// did returns an error unless it did that many launches: what it declines, rlp
// launch does alone, as well and not as soon.
func (r *resident) did(ctx context.Context, launches int) error {
	status := exec.CommandContext(ctx, r.cmd.Path, "daemon", "status", "--json")
	status.Env = r.cmd.Env
	out, err := status.Output()
	if err != nil {
		return fmt.Errorf("rlp daemon status: %w", err)
	}
	var s struct {
		Done     int
		Declined map[string]int
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return err
	}
	if s.Done < launches {
		return fmt.Errorf("rlp daemon did %d of %d launches, and declined %v", s.Done, launches, s.Declined)
	}
	return nil
}

// stop ends it, kindly first.
func (r *resident) stop() {
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(5*time.Second, func() { _ = r.cmd.Process.Signal(os.Kill) })
	defer late.Stop()
	_ = r.cmd.Wait()
}
