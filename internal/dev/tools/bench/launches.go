package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// A contender is one way to start a program, measured from outside.
type contender struct {
	key     string
	command command
	missing string // why it cannot be started
	ours    bool
}

// launches times every contender once a round, in another order in each, so that
// none always comes behind what leaves the caches full of itself.
func (b *bench) launches(ctx context.Context) error {
	b.say("building what is compared")
	helper, noDaemon := b.daemon(ctx)
	if noDaemon == nil {
		defer helper.stop()
	}
	all, err := b.contenders(noDaemon)
	if err != nil {
		return err
	}
	s, err := newSpawner(b.tmp + "/said")
	if err != nil {
		return err
	}
	defer s.close()
	ready := b.warmed(s, all)
	b.say("%d programs, %d rounds", len(ready), b.rounds)
	order := rand.New(rand.NewPCG(6962, 1)) // the same in each run
	for range b.rounds {
		for _, i := range order.Perm(len(ready)) {
			if c := &ready[i]; c.missing == "" {
				b.start(s, c)
			}
		}
	}
	if noDaemon == nil && b.figures["tiny/daemon"].there() && b.figures["go/daemon"].there() {
		if err := helper.did(ctx, 2*(warmUps+b.rounds)); err != nil {
			b.fails("tiny/daemon", err)
			b.fails("go/daemon", err)
		}
	}
	return nil
}

// start times c once. What fails is not started again.
func (b *bench) start(s *spawner, c *contender) {
	took, err := s.run(c.command)
	if err == nil {
		b.figures[c.key].Samples = append(b.figures[c.key].Samples, float64(took)/float64(time.Millisecond))
		return
	}
	c.missing = err.Error()
	b.gone(*c)
}

// gone notes that there is no figure of c.
func (b *bench) gone(c contender) {
	if c.ours {
		b.fails(c.key, errors.New(c.missing))
	} else {
		b.lacks(c.key, c.missing)
	}
}

// warmUps is how often each is started before it counts, so that its caches are full.
const warmUps = 3

// warmed returns those that can be started, warm.
func (b *bench) warmed(s *spawner, all []contender) []contender {
	var ready []contender
	for _, c := range all {
		for i := 0; i < warmUps && c.missing == ""; i++ {
			if _, err := s.run(c.command); err != nil {
				c.missing = err.Error()
			}
		}
		if c.missing != "" {
			b.gone(c)
			continue
		}
		b.figures[c.key] = &figure{Unit: "ms"}
		ready = append(ready, c)
	}
	return ready
}
