package model

import (
	"fmt"
	"time"
)

// A Kind is what sort of failure ended a call.
type Kind string

// The kinds of failure. They travel between processes by these words.
const (
	Invalid     Kind = "invalid"      // the provider, or what speaks to it, cannot take such a request
	Refused     Kind = "refused"      // the key is not good
	NotFound    Kind = "not_found"    // the provider has no such model
	RateLimited Kind = "rate_limited" // the provider's own limit, after every retry
	TooLarge    Kind = "too_large"    // request or answer
	Unavailable Kind = "unavailable"  // nobody answers, or answers that it cannot
	Broken      Kind = "broken"       // the answer began and did not end
	TimedOut    Kind = "timed_out"    // the call's own time is over
	Cancelled   Kind = "cancelled"    // the run is over
)

// A Charge says what a call that failed may have cost.
type Charge string

// The charges, from nothing to all that was reserved.
const (
	ChargeNothing  Charge = "nothing"  // the provider refused it, or never got it
	ChargeMeasured Charge = "measured" // what Metered says, and what came of the text
	ChargeReserved Charge = "reserved" // it was sent, and nobody can know
)

// Metered is what a provider said that a call cost; a negative number was not said.
type Metered struct {
	In  int64 `json:"in"`
	Out int64 `json:"out"`
}

// Unmetered is what a provider says that says nothing.
func Unmetered() Metered { return Metered{-1, -1} }

// A Failure is how a call to a provider did not go well. Its text names no
// payload and no key; Detail may quote the provider and is for the guest alone.
type Failure struct {
	Kind       Kind
	Status     int // of HTTP, 0 when there was none
	Detail     string
	RetryAfter time.Duration
	Charge     Charge
	Metered    Metered
	Received   int64 // bytes of answer that came before the end
}

func (f *Failure) Error() string {
	if f.Status != 0 {
		return fmt.Sprintf("asking the provider: %s (status %d)", f.Kind, f.Status)
	}
	return "asking the provider: " + string(f.Kind)
}

// A Reason is why a call is refused before anyone is asked.
type Reason uint8

// The reasons of a [Refusal].
const (
	NoProvider Reason = iota + 1
	OverRate
	OverBudget
)

// A Refusal is a call that is not made. Hint names the line of a file that
// would have to change.
type Refusal struct {
	Reason Reason
	Hint   string
	// Cause is what the operator should know beyond the hint, nil when that is
	// all. It is not for the guest.
	Cause error
}

func (r *Refusal) Error() string { return "refusing a call to a model: " + r.Hint }

func refusef(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Hint: fmt.Sprintf(format, args...)}
}
