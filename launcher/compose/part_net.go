package compose

import (
	"log"
	"os"

	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/launcher/run"
)

// netPart gives a run its way out: nothing of it can be configured, so that
// nothing can weaken it. What net/http prints by itself, it prints by the log
// package, and parts of what servers said are in it: stderr is not for them.
func netPart(_ *Runner, _ *Composition, spec *run.Spec) (func() error, error) {
	log.SetOutput(lastWords{os.Stderr}) // whoever the launch is for: the process ends
	client := egress.New(egress.Config{})
	spec.Components.HTTP = client
	return func() error { client.Close(); return nil }, nil
}
