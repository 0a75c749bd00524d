package compose

import (
	"log"
	"testing"

	"runloop.dev/rlp/launcher/run"
)

// A server can make net/http print what it was sent: it must not be on stderr,
// where the first line is rlp's own.
func TestNothingIsPrintedForServers(t *testing.T) {
	before := log.Writer()
	defer log.SetOutput(before)
	var spec run.Spec
	release, err := netPart(nil, nil, &spec)
	if _, silent := log.Writer().(lastWords); err != nil || spec.Components.HTTP == nil || !silent {
		t.Errorf("%v, %v, prints to %v", err, spec.Components.HTTP, log.Writer())
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
