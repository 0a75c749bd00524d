package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Bound is what compiling one module may take. What is over it is refused as
// a module that is wrong: none that is right comes near.
type Bound struct {
	Time   time.Duration // 0 is 10 s; longer where others have the processor, see [patience]
	Memory int64         // bytes beside what the process begins with; 0 is 1 GiB
}

func (b Bound) orDefault() Bound {
	if b.Time <= 0 {
		b.Time = 10 * slack * time.Second
	}
	if b.Memory <= 0 {
		b.Memory = 1 << 30
	}
	return b
}

// ErrCompiler says that a module could not be compiled for a reason that is
// not the module's: the process that compiles does not start, or has nowhere
// to put what it makes.
var ErrCompiler = errors.New("the compiler is not available")

// The compiler's exit statuses, beside those that a process has that crashed.
const (
	compiledStatus = 0
	refusedStatus  = 65
	overStatus     = 66
	brokenStatus   = 74
)

const (
	compilerName = "compile-guest"

	// saidMost bounds what is kept of what the compiler says.
	saidMost = 4 << 10
)

// compileInto has a process of its own compile the module into the folder dir. That
// process has no environment, none of this one's files, and ends with it.
//
// An error that is the module's wraps [ErrModule], another [ErrCompiler] or is
// the context's.
func compileInto(ctx context.Context, cfg *Config, dir string) error {
	if cfg.Compiler == nil {
		return fmt.Errorf("%w: none was given, and a module of more than %d bytes needs one", ErrCompiler, compileHere)
	}
	path, err := cfg.Compiler()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	bound := cfg.Bound.orDefault()
	limited, cancel := context.WithTimeout(ctx, patience*bound.Time)
	defer cancel()
	var said, cry said
	child := exec.CommandContext(limited, path)
	child.Args = []string{
		"rlp", compilerName, dir, cfg.Scope, strconv.FormatInt(bound.Memory, 10),
		strconv.FormatInt(bound.Time.Milliseconds(), 10),
	}
	child.Env, child.Dir, child.SysProcAttr = childEnv(), "/", childAttributes()
	child.Stdin, child.Stdout, child.Stderr = bytes.NewReader(cfg.Module), &said, &cry
	child.WaitDelay = time.Second
	err = runLocked(child)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return overTime(bound)
	case child.ProcessState == nil:
		return fmt.Errorf("%w: %w", ErrCompiler, err)
	}
	return verdict(child.ProcessState.ExitCode(), said.String(), cry.String(), bound)
}

// nowhere stands for a folder where a module is only looked at.
const nowhere = "-"

// check looks at every instruction of a module, which takes a hundred times its
// size: of one that is large, in the process that compiles.
func (s *shape) check(cfg *Config) error {
	if len(cfg.Module) > compileHere {
		return compileInto(context.Background(), cfg, nowhere)
	}
	_, err := s.metered(cfg.Module)
	return err
}

// runLocked starts the child and waits for it on one thread: the signal that
// ends a child with its parent follows the thread that made it.
func runLocked(child *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		inheritNothing()
		ended <- child.Run()
	}()
	return <-ended
}

func overTime(b Bound) error {
	return fmt.Errorf("%w: compiling it takes more than %s", ErrModule, b.Time)
}

// verdict is what the end of the compiler says of the module.
func verdict(status int, said, cry string, b Bound) error {
	switch status {
	case compiledStatus:
		return nil
	case overStatus:
		return overTime(b)
	case refusedStatus:
		return fmt.Errorf("%w: %s", ErrModule, oneLine(strings.TrimPrefix(said, ErrModule.Error()+": ")))
	case brokenStatus:
		return fmt.Errorf("%w: %s", ErrCompiler, oneLine(said))
	}
	switch {
	case outOfMemory(cry):
		return fmt.Errorf("%w: compiling it takes more than %d MiB of memory", ErrModule, b.Memory>>20)
	case status < 0 && cry == "": // by a signal: the limit on processor time, or the system's own want of memory
		return fmt.Errorf("%w: compiling it was ended by the system, as it took too much time or memory", ErrModule)
	}
	return fmt.Errorf("%w: the compiler crashed on it: %s", ErrModule, oneLine(cry))
}

// outOfMemory reports whether a Go program that cries so had no more memory:
// its own words, those of the system, and those of a thread that got no stack.
func outOfMemory(cry string) bool {
	return slices.ContainsFunc([]string{
		"out of memory", "cannot allocate memory", "stack overflow", "pthread_create failed",
		"failed to create new OS thread",
	}, func(words string) bool { return strings.Contains(cry, words) })
}

// said keeps the beginning of what a process says.
type said struct{ text []byte }

func (s *said) Write(p []byte) (int, error) {
	s.text = append(s.text, p[:min(len(p), saidMost-len(s.text))]...)
	return len(p), nil
}

func (s *said) String() string {
	for len(s.text) > 0 && !utf8.Valid(s.text) {
		s.text = s.text[:len(s.text)-1]
	}
	return string(s.text)
}
