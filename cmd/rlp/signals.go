package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long after a signal another one is taken for the same: who
// ends a group of processes often signals each of them twice. After that a signal
// ends the program at once, whatever it waits for.
const sameSignal = 500 * time.Millisecond

// listen returns a context that the operator's signals end, and what waits until
// they do. The runtime takes several switches between
// threads to listen to one, so a launch reads its files meanwhile; nothing may be
// printed or begun before listening is true. SIGQUIT is one of them: by itself the
// runtime would print the stacks of rlp among what the agent prints, and runs would
// be left without their ends.
func listen() (ctx context.Context, listening func()) {
	ctx, end := context.WithCancelCause(context.Background())
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		handleWriteSignals()
		heard, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
		context.AfterFunc(heard, func() {
			end(context.Cause(heard))
			time.AfterFunc(sameSignal, stop)
		})
	}()
	return ctx, func() { <-ready }
}

// passed are the signals that a program is to have which ends with ctx, for as long as
// the first of them is not all that is listened to.
func passed(ctx context.Context) <-chan os.Signal {
	got := make(chan os.Signal, 4)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, func() { signal.Stop(got) }) })
	return got
}
