package main

import (
	"fmt"
	"io"
	"sync/atomic"
)

// A witness passes on what an agent prints, and remembers that some of it could
// not be written: the run goes on, but has not printed what it says it has.
type witness struct {
	w     io.Writer
	first atomic.Pointer[error] // an agent that was left behind may still write
}

func (w *witness) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.first.CompareAndSwap(nil, &err)
	}
	return n, err
}

// lost says why something of the agent's was not written, if it was not.
func (w *witness) lost() error {
	if err := w.first.Load(); err != nil {
		return fmt.Errorf("writing the agent's stdout: %w", *err)
	}
	return nil
}
