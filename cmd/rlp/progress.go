package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// slowAfter is how long something may take before a person is told of it.
const slowAfter = time.Second

// progress tells a person at a terminal what takes so long, once it does; the
// line is gone when it has ended. Elsewhere it is silent.
func progress(w io.Writer, what string) func() func() {
	if !isTerminal(w) {
		return nil
	}
	return func() func() { return slowLine(w, what, slowAfter) }
}

// slowLine shows what after a while, unless the function that it returns is
// called before; that also takes it away.
func slowLine(w io.Writer, what string, after time.Duration) (ended func()) {
	var mu sync.Mutex
	shown, over := false, false
	t := time.AfterFunc(after, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			shown = true
			fmt.Fprint(w, what)
		}
	})
	return func() {
		t.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
		if shown {
			fmt.Fprint(w, "\r\x1b[2K")
		}
	}
}

// A throughPager is a terminal that is written to through a pager.
type throughPager struct {
	io.Writer
	terminal io.Writer
}

// paged has what do prints shown page by page, by $PAGER or less, where there is one.
// Whoever leaves it has seen enough.
func paged(a *app, do func() error) error {
	pager, set := a.lookup("PAGER")
	if !set {
		pager, _ = exec.LookPath("less") // "": there is none
	}
	terminal := a.stdout
	if pager == "" || pager == "cat" || a.invoker != nil {
		return do()
	}
	c := exec.Command("sh", "-c", pager) //nolint:gosec // the operator's own variable
	c.Env = append(slices.Clone(a.env), "LESS=FRX")
	c.Stdout, c.Stderr = terminal, a.stderr
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return do()
	}
	a.stdout = throughPager{in, terminal}
	err = do()
	a.stdout = terminal
	_ = in.Close()
	if ended := c.Wait(); ended != nil && err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
