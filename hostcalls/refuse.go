package hostcalls

import (
	"errors"
	"fmt"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// errDenied is a refusal by the gate; a [refused] says the rest.
var errDenied = errors.New("denied")

// errBudget is a refusal because a budget or limit is used up.
var errBudget = errors.New("budget exhausted")

// errUnavailable is a refusal because this version has no such component.
var errUnavailable = errors.New("unavailable")

// errSpent is what a call is told of which the run may make no more.
var errSpent = &Fail{Errno: Dquot, Reason: caps.BudgetExhausted, Hint: "limits.hostcalls_max is used up"}

// A refused is a denial as the guest is told of it.
type refused struct {
	gate.Denial        // whose Name is the one that the guest gave
	hint        string // "": the usual one
	tool        string // the attached tool that needed it; "": none
}

func (r *refused) Error() string { return r.Unwrap().Error() }

func (r *refused) Unwrap() error {
	switch r.Code {
	case caps.BudgetExhausted, caps.RateLimited:
		return errBudget
	case caps.Unavailable:
		return errUnavailable
	case caps.InvalidRequest:
		return &Fail{Errno: Inval, Hint: noName(r.Request)}
	}
	return errDenied
}

// denied is the error that tells the guest of a denial; hint is the family's own,
// "" the usual one.
func denied(d gate.Denial, hint string) error {
	d.Request.Name = strings.Clone(d.Request.Name) // which may be a view
	return &refused{Denial: d, hint: hint}
}

// permit has r admitted for op. The error is a refusal.
func (c *Config) permit(op *gate.Op, r caps.Request, target string, args *[32]byte) (gate.Permit, error) {
	a := c.Gate.Admit(op, r, target, args)
	if !a.OK() {
		return a.Permit, denied(a.Denial, "")
	}
	return a.Permit, nil
}

// refuse records that r is refused for a reason of the family's own, and hints at
// why unless the policy refuses it already; "" is the usual hint.
func (c *Config) refuse(op *gate.Op, r caps.Request, target string, own caps.Code, why string) error {
	d := c.Gate.Refuse(op, r, target, own)
	if d.Code != own {
		why = ""
	}
	return denied(d, why)
}

// noName says what is wrong with a request whose name is none of its family.
func noName(r caps.Request) string {
	switch r.Family {
	case caps.KBRead, caps.KBWrite:
		return fmt.Sprintf("domain: %q is not the name of one: a letter, then letters, digits, - and _, all lower-case; "+
			"X_raw is a grant beside X and no domain", printable(r.Name))
	case caps.MCP:
		return fmt.Sprintf("server: %q is not the name of one: letters, digits, - _ and .", printable(r.Name))
	case caps.Agents:
		return fmt.Sprintf("agent: %q is not the name of one: a letter, then letters, digits, - and _, all lower-case",
			printable(r.Name))
	}
	return fmt.Sprintf("%q cannot be asked for in %s", printable(r.Name), r.Family)
}

// shown is what records show of a request: no secret that the run may not ask for.
func (c *Config) shown(r caps.Request) string {
	if r.Family == caps.Secrets && !c.Gate.Set().Check(r).Allow {
		return hiddenSecret
	}
	return r.Name
}

// hiddenSecret stands in records for a secret that was denied: what an agent
// asks for may be a name that it should not even know.
const hiddenSecret = "secret"

func (c *Config) warn(err error) {
	if c.Warn != nil {
		c.Warn(err.Error())
	}
}
