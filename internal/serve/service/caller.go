// Package service is what rlp serve offers, whatever the protocol: it takes
// requests of callers, keeps them in one bounded queue, runs them, and lets who
// may see them follow them.
//
// A [Caller] is made where it was proved who asks, and by nothing in a request:
// its tenant, what it may and what narrows it come from there. A request can
// narrow further and never widen. The package knows no HTTP and opens nothing:
// the [Host] behind it does, which is the launcher that every launch has.
package service

import (
	"errors"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
)

// Rights are what a caller may ask of the service at all; what its agents may do
// is a matter of capabilities.
type Rights uint8

const (
	// Launch lets a caller run agents, and cancel what it has launched.
	Launch Rights = 1 << iota
	// Read lets a caller see the runs, records and agents of its tenant.
	Read
	// Operate lets a caller do what the operator of the tenant does: save
	// overrides, which narrow, name paths for placeholders, cancel any run.
	Operate
)

// String is them as tokens have them, where any of them will do.
func (r Rights) String() string {
	var all []string
	for i, word := range []string{"run", "read", "operate"} {
		if r&(1<<i) != 0 {
			all = append(all, word)
		}
	}
	return strings.Join(all, " or ")
}

// A Caller is who asks. The zero Caller may nothing.
type Caller struct {
	// ID is what tells it from every other caller, of all times: "user:1000", and of
	// a token or a certificate the id of its record, "token:ID", "cert:ID". What is
	// its own is found by it. "": its name does, which no ID can be taken for.
	ID string
	// Name says who it is in logs: "user:1000", "token:ci", "cert:CN". Another caller
	// may have had it before.
	Name   string
	Tenant string
	May    Rights
	// EveryTenant says that it may ask for any tenant: it is the operator of the
	// home, by a connection of theirs. What it asks is of Tenant all the same.
	EveryTenant bool
	// Layers narrow everything that it asks for, such as the grant of its token.
	Layers []*caps.Layer
	// Until is when it is nobody any more; zero: it has no such time.
	Until time.Time
	// Still reports whether what it proved itself by is good now, and if not, why,
	// in words for whoever may see its runs: a run ends with it. nil: runs end with
	// Until. It is called often, by several goroutines.
	Still func() error
}

// Over reports whether, and why, runs of c may not go on.
func (c *Caller) Over(now time.Time) error {
	switch {
	case c.Still != nil:
		return c.Still()
	case !c.Until.IsZero() && !now.Before(c.Until):
		return errors.New("its proof is expired")
	}
	return nil
}

// lapses reports whether c can come to be nobody.
func (c *Caller) lapses() bool { return c.Still != nil || !c.Until.IsZero() }

// Key tells callers apart, those of other tenants too.
func (c *Caller) Key() string { return c.Tenant + "\x00" + c.who() }

func (c *Caller) who() string {
	if c.ID == "" {
		return "name:" + c.Name
	}
	return c.ID
}

// Can reports whether c has all of r.
func (c *Caller) Can(r Rights) bool { return c != nil && c.Tenant != "" && r != 0 && c.May&r == r }
