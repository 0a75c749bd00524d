package remote

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// A process is a child and the two pipes to it.
type process struct {
	in  io.Writer
	out io.Reader
	end func() error
}

// start starts a child. The thread that does so lives as long as the child:
// the signal that ends a child with its parent follows the thread.
func start(cmd Command) (*process, error) {
	child := &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: "/", SysProcAttr: attributes()}
	if child.Env == nil {
		child.Env = []string{} // nil would be the parent's
	}
	in, err := child.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the process that asks providers: %w", err)
	}
	out, outChild, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the process that asks providers: %w", err)
	}
	child.Stdout = outChild
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		inheritNothing()
		err := child.Start()
		_ = outChild.Close()
		started <- err
		if err == nil {
			_ = child.Wait() // how it ended is of no interest: it is gone
		}
	}()
	if err := <-started; err != nil {
		_, _ = in.Close(), out.Close()
		return nil, fmt.Errorf("starting the process that asks providers: %w", err)
	}
	var once sync.Once
	end := func() error {
		once.Do(func() {
			_ = in.Close()
			_ = child.Process.Kill() // it holds nothing that has to be saved
			<-ended
			_ = out.Close()
		})
		return nil
	}
	return &process{in: in, out: out, end: end}, nil
}
