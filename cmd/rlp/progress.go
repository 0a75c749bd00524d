package main

import (
	"fmt"
	"io"
	"sync"
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
