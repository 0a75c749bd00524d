package main

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/launcher/run"
)

// A surface is the way on which a launch was asked for.
type surface uint8

// The surfaces. The first two are the operator's own.
const (
	fromTerminal surface = iota
	fromDaemon           // the resident helper, for a client
	fromHTTP
	fromMCP
	fromRun // another run, by agent_launch
)

// An origin is who asked for a launch, and what follows from that. Nothing in it
// takes the place of what the operator's files say: each layer only narrows. The
// zero one is the operator at a terminal.
type origin struct {
	surface        surface
	runID, traceID string              // "": new ones
	record         func(*audit.Record) // is told of each decision of the run and of its delegates; nil: nobody is
	warn           func(text string)   // is told what the operator should know; nil: nobody is

	// Of a request over HTTP or MCP.
	bundle  *bundles.Bundle // that came with it; nil: the one at the path
	sent    bool            // that bundle came from somebody who does not operate
	layers  func(c *composition, given *policy.Given) ([]*caps.Layer, error)
	foreign int      // how many of the last layers are not the operator's
	grant   string   // the layer of the profile that requests start from, where no other layer of the operator's has its name
	notes   []string // parts of the request that have no effect as written, for its report

	// Of another run.
	parent run.Parent
	from   *composition // of that run; nil: no run asked
}

// origin is who invoked this process, or had the resident helper do so.
func (a *app) origin() origin {
	o := origin{warn: a.warnOnce}
	if a.invoker != nil {
		o.surface = fromDaemon
	}
	return o
}

// unattended reports whether nobody who asked sits at the terminal of this process.
func (o *origin) unattended() bool {
	if o.from != nil {
		return o.from.origin.unattended()
	}
	return o.surface == fromHTTP || o.surface == fromMCP
}

// stranger reports whether somebody asked who does not operate, by a run of
// theirs, too.
func (o *origin) stranger() bool {
	return o.foreign > 0 || o.from != nil && o.from.origin.stranger()
}

// observer is who is told of the decisions of a run: whoever asked for it, or for
// the run that launches it.
func (o *origin) observer() func(*audit.Record) {
	if o.from != nil {
		return o.from.origin.observer()
	}
	return o.record
}

func (o *origin) warnf(format string, args ...any) {
	if o.warn != nil {
		o.warn(fmt.Sprintf(format, args...))
	}
}

// blame has what is the host's own be the last that takes anything of a launch for
// who does not operate: whatever another layer takes too is that one's, so that no
// explanation and no record says of a path whether it is protected.
func (c *composition) blame() {
	if !c.origin.stranger() {
		return
	}
	p := &c.policy
	p.Layers = append(slices.Clone(p.Layers[1:]), p.Layers[0])
	if p.Within == nil {
		p.Asked++
	}
}

// asked are the layers of the request, behind the operator's.
func (c *composition) asked(given *policy.Given) ([]*caps.Layer, error) {
	if c.origin.layers == nil {
		return nil, nil
	}
	return c.origin.layers(c, given)
}
