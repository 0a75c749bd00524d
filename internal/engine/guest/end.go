package guest

import (
	"strings"
	"time"

	"runloop.dev/rlp/internal/base/printable"
)

// Kind is how a run ended.
type Kind uint8

// The ends of a run. The zero Kind is none.
const (
	OK        Kind = iota + 1 // _start returned, or the guest exited with 0
	Exit                      // the guest exited with another code
	Timeout                   // the wall-clock time was over
	Memory                    // the memory cap refused a growth, or the declared minimum
	Trap                      // the guest did what it cannot
	Cancelled                 // the caller's context ended
	HostError                 // a host function gave up, or failed
	Fuel                      // the fuel was used up
)

func (k Kind) String() string {
	names := [...]string{"none", "ok", "exit", "timeout", "memory", "trap", "cancelled", "host_error", "fuel"}
	if int(k) < len(names) {
		return names[k]
	}
	return "invalid"
}

// End is how a run ended and what it took.
type End struct {
	Kind     Kind
	ExitCode uint32 // the guest's own, whatever it is; only for Exit
	Trap     string // what the trap was, one line; only for Trap
	In       string // the host function that failed; only for HostError, and "" where none did
	Err      error  // the cause: a host function's error or panic with its stack, the context's, a trap with its trace

	Given      time.Duration // the wall time that was over; only for Timeout
	Wall       time.Duration // from the guest's first instruction on, without Waited
	Waited     time.Duration // for a person, while the clock was stopped
	PeakMemory int64         // bytes of linear memory, and what counts as memory beside it
	Fuel       int64         // instructions, charges of host calls included

	// Abandoned says that the guest did not stop. It still runs, and its
	// memory is still there, until Stopped is closed; that may be never.
	Abandoned bool
	Stopped   <-chan struct{} // nil unless Abandoned
}

// Unable is what the host could not do for a run, in words that anyone may read.
type Unable string

func (u Unable) Error() string { return string(u) }

func oneLine(text string) string {
	const most = 200
	text, _, _ = strings.Cut(text, "\n")
	text = strings.Map(func(r rune) rune {
		if printable.Hidden(r) {
			return '?'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most])
	}
	return text
}
