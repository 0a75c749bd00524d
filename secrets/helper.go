package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// helper asks a program of the operator's, such as pass or vault, for each
// value: what it prints, less one newline at the end. It runs without a shell,
// with the variables named and no others.
type helper struct {
	tenant  string
	command []string
	env     []string
	timeout time.Duration
}

const helperTimeout = 10 * time.Second

func newHelper(c Config) (*helper, error) {
	if len(c.Command) == 0 || !filepath.IsAbs(c.Command[0]) || strings.Contains(c.Command[0], "{") {
		return nil, errors.New(`opening the secrets: the exec provider needs security.secrets.command, such as ["/usr/bin/pass", "show", "{id}"]`)
	}
	if err := names(c.Command, c.Tenant.String()); err != nil {
		return nil, err
	}
	h := &helper{tenant: c.Tenant.String(), command: c.Command, timeout: c.Timeout}
	if h.timeout <= 0 {
		h.timeout = helperTimeout
	}
	for _, kv := range c.Env {
		if name, _, ok := strings.Cut(kv, "="); ok && slices.Contains(c.CommandEnv, name) {
			h.env = append(h.env, kv)
		}
	}
	return h, nil
}

// defaultTenant is the one whose command need not say for whom it asks.
const defaultTenant = "default"

// names refuses a command that would be the same for every tenant, and so give
// each of them the values of all.
func names(command []string, tenant string) error {
	says := func(arg string) bool { return strings.Contains(arg, "{tenant}") }
	if tenant == defaultTenant || slices.ContainsFunc(command[1:], says) {
		return nil
	}
	return fmt.Errorf("opening the secrets: security.secrets.command does not say for which tenant it asks, so %s would "+
		"be given the secrets of every other; put {tenant} into it", tenant)
}

// argv is the command for id. A word of an id that would be taken for an option
// is refused: ids come from bundles.
func (h *helper) argv(id ID) ([]string, error) {
	words := strings.NewReplacer("{id}", id.String(), "{scope}", id.scope, "{name}", id.name, "{tenant}", h.tenant)
	argv := []string{h.command[0]}
	for _, arg := range h.command[1:] {
		word := words.Replace(arg)
		if strings.HasPrefix(word, "-") && !strings.HasPrefix(arg, "-") {
			return nil, &UnavailableError{Provider: "exec", Why: fmt.Sprintf("%s would be an option of %s", id, argv[0])}
		}
		argv = append(argv, word)
	}
	return argv, nil
}

func (h *helper) Get(ctx context.Context, id ID) ([]byte, error) {
	info, err := os.Stat(h.command[0])
	if err == nil {
		err = trusted(h.command[0], info, os.Geteuid())
	}
	if err != nil {
		return nil, &UnavailableError{Provider: "exec", Why: "its program cannot be used", Err: err}
	}
	argv, err := h.argv(id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	out := &capped{room: MaxValue + len("\r\n") + 1}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout = append([]string{}, h.env...), "/", out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	value, _ := bytes.CutSuffix(out.kept, []byte("\n"))
	value, _ = bytes.CutSuffix(value, []byte("\r"))
	switch {
	case ctx.Err() != nil:
		err = &UnavailableError{Provider: "exec", Why: fmt.Sprintf("%s did not answer in time", argv[0]), Err: ctx.Err()}
	case len(value) > MaxValue:
		err = ErrLong
	case err != nil: // what it said on stderr is not shown: it may be anything
		err = &UnavailableError{Provider: "exec", Why: fmt.Sprintf("%s gave nothing for %s; run it by hand to see why",
			argv[0], id), Err: err}
	case len(value) == 0:
		err = notThere(id)
	}
	if err != nil {
		clear(value)
		return nil, err
	}
	return value, nil
}

// trusted refuses a program that others than user and root may change.
func trusted(path string, info fs.FileInfo, user int) error {
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return &ModeError{Path: path, Why: "is not a program"}
	}
	if info.Mode().Perm()&0o022 != 0 {
		return &ModeError{Path: path, Why: "is writable by others"}
	}
	if uid := ownerOf(info); uid != 0 && uid != user {
		return &ModeError{Path: path, Why: fmt.Sprintf("belongs to user %d, not to %d or root", uid, user)}
	}
	return nil
}

// capped keeps what there is room for, in memory that never moves, so that
// there is one copy to clear.
type capped struct {
	room int
	kept []byte
}

func (c *capped) Write(p []byte) (int, error) {
	if c.kept == nil {
		c.kept = make([]byte, 0, c.room)
	}
	n := min(len(p), c.room-len(c.kept))
	c.kept = append(c.kept, p[:n]...)
	if len(c.kept) == c.room {
		return n, ErrLong // and the program learns that nobody reads on
	}
	return len(p), nil
}

func (h *helper) readOnly() error {
	return &UnavailableError{Provider: "exec", Why: "it only reads; store values with the program behind " + h.command[0]}
}

func (h *helper) Put(context.Context, ID, []byte) error { return h.readOnly() }
func (h *helper) Delete(context.Context, ID) error      { return h.readOnly() }

func (h *helper) List(context.Context) ([]ID, error) {
	return nil, &UnavailableError{Provider: "exec", Why: "it cannot list; ask the program behind " + h.command[0]}
}
