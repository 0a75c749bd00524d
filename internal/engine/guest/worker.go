package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// BeCompiler makes this process the compiler if its arguments say so: done
// tells whether they did. It reads a module, puts what it makes of it into a
// folder and answers in one line; all that can go wrong with it goes wrong here
// and not where the operator's other guests are.
func BeCompiler(args []string, in io.Reader, out io.Writer) (status int, done bool) {
	if len(args) != 6 || args[1] != compilerName {
		return 0, false
	}
	memory, err := strconv.ParseInt(args[4], 10, 64)
	ms, timeErr := strconv.ParseInt(args[5], 10, 64)
	if err = errors.Join(err, timeErr); err == nil {
		err = Bound{Time: time.Duration(ms) * time.Millisecond, Memory: memory}.orDefault().compileTo(args[2], args[3], in)
	}
	switch {
	case errors.Is(err, errSlow):
		return overStatus, true
	case err == nil:
		return compiledStatus, true
	case errors.Is(err, errBroken):
		status = brokenStatus
	default:
		status = refusedStatus
	}
	fmt.Fprint(out, err)
	return status, true
}

// patience is how many times its bound a compiler may take when it hardly ever
// had a processor: a busy machine is no fault of the module's.
const patience = 6

var (
	// errBroken is wrapped by what is not the module's fault.
	errBroken = errors.New("compiling")
	// errSlow says that the time is over.
	errSlow = errors.New("compiling takes too long")
)

// compileTo compiles what in holds into dir within b. The time is over when the
// process had a processor for at least half of it.
func (b Bound) compileTo(dir, scope string, in io.Reader) error {
	if err := confine(b); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- compileTo(dir, scope, in) }()
	began, tick := time.Now(), time.NewTicker(max(b.Time/50, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if time.Since(began) >= b.Time && processorTime() >= b.Time/2 {
				return errSlow
			}
		}
	}
}

// maxStack is what one goroutine may have of stack.
const maxStack = 256 << 20

// confine bounds this process. The collector begins to hurry well before the
// bound, so that what passes it is in use.
func confine(b Bound) error {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(b.Memory / 4 * 3)
	if err := limitProcess(b); err != nil {
		return fmt.Errorf("%w: limiting the compiler: %w", errBroken, err)
	}
	return nil
}

// compileTo compiles what in holds into dir, if it is one, for a scope.
func compileTo(dir, scope string, in io.Reader) error {
	wasm, err := io.ReadAll(io.LimitReader(in, maxModule+1))
	if err != nil {
		return fmt.Errorf("%w: reading the module: %w", errBroken, err)
	}
	s, err := scan(wasm)
	if err != nil {
		return err
	}
	metered, err := s.metered(wasm)
	if err != nil || dir == nowhere {
		return err
	}
	return compileMetered(dir, metered, identity{scope, digestOf(wasm)})
}

// compileMetered puts the native code of a module into dir, and its outline,
// under whose name the engine will look for that code; then the sum, of the module that was read here.
func compileMetered(dir string, metered []byte, is identity) error {
	short, err := outline(metered)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	aside := filepath.Join(dir, "outline"+temporarySuffix)
	if err := errors.Join(compileIn(dir, metered), compileIn(aside, short)); err != nil {
		return err
	}
	if err := rename(dir, aside); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	err = os.WriteFile(filepath.Join(dir, moduleFile), short, 0o600)
	if err = errors.Join(err, writeSum(dir, short, is)); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// compileIn compiles a module with dir as the engine's cache.
func compileIn(dir string, wasm []byte) error {
	ctx := context.Background()
	engine, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(engine))
	_, err = rt.CompileModule(experimental.WithCompilationWorkers(ctx, compileWorkers), wasm)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return fmt.Errorf("%w: %w", errBroken, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	return errors.Join(rt.Close(ctx), engine.Close(ctx))
}

// rename gives the native code in dir the name of that in aside, and removes
// the latter.
func rename(dir, aside string) error {
	name, err := look(aside)
	if err != nil {
		return err
	}
	if name, err = filepath.Rel(aside, name); err != nil {
		return err
	}
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	code, err := look(dir)
	if err != nil {
		return err
	}
	return os.Rename(code, filepath.Join(dir, name))
}
