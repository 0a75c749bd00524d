package main

import (
	"slices"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/audit"
)

// A commission is what whoever asks a service for a launch says of it: nothing here
// takes the place of what the operator's files say, and each layer only narrows.
type commission struct {
	bundle         *bundles.Bundle // that came with the request; nil: the one at the path
	runID, traceID string          // "": new ones
	layers         func(c *composition, given *policy.Given) ([]*caps.Layer, error)
	door           string              // the layer of the grant that requests start from, where no other one of the operator's has its name
	sent           bool                // the bundle came from who does not operate
	foreign        int                 // how many of the last layers are no words of the operator's
	notes          []string            // what does nothing in the request as it is written, for its report
	record         func(*audit.Record) // is told of each decision of the run and of its delegates; nil: nobody is
}

// foreign is how many of the last layers of c are no words of the operator's:
// that of --allow and its like is the very last.
func (c *composition) foreign() int {
	if c.commission == nil {
		return 0
	}
	return c.commission.foreign
}

// stranger reports whether c is launched for somebody who does not operate, by the
// run of one, too.
func (c *composition) stranger() bool {
	return c.foreign() > 0 || c.by != nil && c.by.from.stranger()
}

// blame has what is the host's own be the last that takes anything of a launch for
// who does not operate: whatever another layer takes too is that one's, so that no
// explanation and no record says of a path whether it is protected.
func (c *composition) blame() {
	if !c.stranger() {
		return
	}
	p := &c.policy
	p.Layers = append(slices.Clone(p.Layers[1:]), p.Layers[0])
	if p.Within == nil {
		p.Asked++
	}
}

// sent reports whether c's bundle came from who does not operate: nothing tells
// them what its paths meet on this host.
func (c *composition) sent() bool { return c.commission != nil && c.commission.sent }

// commissioned are the layers of the request, behind the operator's.
func (c *composition) commissioned(given *policy.Given) ([]*caps.Layer, error) {
	if c.commission == nil || c.commission.layers == nil {
		return nil, nil
	}
	return c.commission.layers(c, given)
}

// observer is who is told of the decisions of a run: its log, and whoever asked
// for the run, or for the one that launches it.
func (c *composition) observer(log *runLog) func(*audit.Record) bool {
	switch {
	case c.commission != nil:
		c.common.record = c.commission.record
	case c.by != nil:
		c.common.record = c.by.from.common.record
	}
	record, logging := c.common.record, true
	if record == nil {
		return log.observe
	}
	return func(r *audit.Record) bool {
		logging = logging && log.observe(r)
		record(r)
		return true
	}
}
