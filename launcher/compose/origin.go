package compose

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/run"
)

// A Surface is the way on which a launch was asked for.
type Surface uint8

// The surfaces. The first two are the operator's own.
const (
	fromTerminal Surface = iota
	FromDaemon           // the daemon, for a client
	FromHTTP
	FromMCP
	FromProgram // a Go program that embeds launcher
	fromRun     // another run, by agent_launch
)

// An Origin is who asked for a launch, and what follows from that. Nothing in it
// takes the place of what the operator's files say: each layer only narrows. The
// zero one is the operator at a terminal.
type Origin struct {
	Surface        Surface
	RunID, TraceID string              // "": new ones
	Record         func(*audit.Record) // is told of each decision of the run and of its delegates; nil: nobody is
	Warn           func(text string)   // is told what the operator should know; nil: nobody is

	// Of a request over HTTP or MCP.
	Bundle  *bundles.Bundle // that came with it; nil: the one at the path
	Sent    bool            // that bundle came from somebody who does not operate
	Layers  func(c *Composition, given *policy.Given) ([]*caps.Layer, error)
	Foreign int // how many of the last layers are not the operator's
	// the layer of the profile that requests start from, where no other layer of the operator's has its name
	Grant string
	Notes []string // parts of the request that have no effect as written, for its report

	// Of another run.
	parent run.Parent
	from   *Composition // of that run; nil: no run asked
}

// unattended reports whether nobody who asked sits at the terminal of this process.
func (o *Origin) unattended() bool {
	if o.from != nil {
		return o.from.Origin.unattended()
	}
	return o.Surface == FromHTTP || o.Surface == FromMCP || o.Surface == FromProgram
}

// stranger reports whether somebody asked who does not operate, by a run of
// theirs, too.
func (o *Origin) stranger() bool {
	return o.Foreign > 0 || o.from != nil && o.from.Origin.stranger()
}

// observer is who is told of the decisions of a run: whoever asked for it, or for
// the run that launches it.
func (o *Origin) observer() func(*audit.Record) {
	if o.from != nil {
		return o.from.Origin.observer()
	}
	return o.Record
}

func (o *Origin) warnf(format string, args ...any) {
	if o.Warn != nil {
		o.Warn(fmt.Sprintf(format, args...))
	}
}

// blame has what is the host's own be the last that takes anything of a launch for
// who does not operate: whatever another layer takes too is that one's, so that no
// explanation and no record says of a path whether it is protected.
func (c *Composition) blame() {
	if !c.Origin.stranger() {
		return
	}
	p := &c.Policy
	p.Layers = append(slices.Clone(p.Layers[1:]), p.Layers[0])
	if p.Within == nil {
		p.Asked++
	}
}

// asked are the layers of the request, behind the operator's.
func (c *Composition) asked(given *policy.Given) ([]*caps.Layer, error) {
	if c.Origin.Layers == nil {
		return nil, nil
	}
	return c.Origin.Layers(c, given)
}
