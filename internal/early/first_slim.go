//go:build slim

package early

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// listenAfter is how long a launch by another process is waited for before the
// operator's signals are listened to: that takes several switches between threads,
// and most launches have ended by then. A signal ends the client until then as it
// does before main, and the helper ends the run of a client that is gone.
const listenAfter = 5 * time.Millisecond

// first is what came of asking while the program was initialized, if anybody was
// asked and did not do it.
var first = atFirst()

func atFirst() *Pending {
	if len(os.Args) == 0 {
		return nil
	}
	if p := Ask(os.Args[1:], os.Environ()); p != nil {
		return p.settle()
	}
	return nil
}

// Asked is the launch that a resident helper was asked for; nil where nobody was.
func Asked(_, _ []string) *Pending { return first }

// settle waits before there is anybody else, and ends the program with the status
// of a launch that somebody did.
func (p *Pending) settle() *Pending {
	ctx, end := context.WithCancelCause(context.Background())
	answer := p.wait(ctx, listenAfter, func() {
		heard, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
		context.AfterFunc(heard, func() {
			end(context.Cause(heard))
			time.AfterFunc(SameSignal, stop)
		})
	})
	if answer.Taken && !answer.Lost {
		os.Exit(answer.Status)
	}
	return &Pending{heard: ctx, answer: answer}
}
