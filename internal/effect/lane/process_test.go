package lane

import (
	"context"
	"errors"
	"io"
	"testing"

	"runloop.dev/rlp/internal/base/guard"
)

// breaking is a lane that breaks where it runs a program.
type breaking struct{ Lane }

func (breaking) Run(context.Context, *Command) (*Result, error) { panic("what a program was given") }

// A lane that breaks ends its program's conversation and not the process.
func TestABrokenLaneEndsItsProgram(t *testing.T) {
	p, err := Start(t.Context(), breaking{}, &Command{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := io.ReadAll(p.Stdout); err != nil || len(out) > 0 {
		t.Errorf("%q, %v", out, err)
	}
	<-p.Done()
	var broken *guard.Broken
	if _, err := p.End(); !errors.As(err, &broken) {
		t.Errorf("ended with %v", err)
	}
}
