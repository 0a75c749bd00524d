//go:build !slim

package main

import (
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/audit"
	"runloop.dev/rlp/launcher"
)

// heldAtStart is the set that a run's first record says it was left.
func heldAtStart(e *audit.Event) (caps.Set, error) {
	base, err := entriesOf(e.Effective)
	if err != nil {
		return caps.Set{}, err
	}
	holes, err := entriesOf(e.Except)
	if err != nil {
		return caps.Set{}, err
	}
	// Of the grants and holes that hold a request the deepest decides.
	plan, err := launcher.NewPlan(launcher.Policy{Base: base, Layers: []*caps.Layer{{Name: "except", Deny: holes, Spare: base}}})
	return plan.Effective, err
}

func entriesOf(strings []string) ([]caps.Entry, error) {
	var list []caps.Entry
	for _, s := range strings {
		g, err := caps.ParseGrant(s)
		if err != nil {
			return nil, fmt.Errorf("a record holds %w", err)
		}
		list = append(list, caps.Entry{Grant: g})
	}
	return list, nil
}
