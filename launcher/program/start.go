package program

import (
	"errors"
	"fmt"
	"math"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/internal/effect/proxy"
	"runloop.dev/rlp/launcher/run"
)

// A Start is a program that is an agent, as its run starts it.
type Start struct {
	Lane lane.Lane
	File string // the program, without links
	// SHA256 is what it has to hold, in hex; "": the file is whatever lies there.
	SHA256 string
	Argv   []string // the first is what it is told that it is called
	Home   string   // is its own, and lasts
	Dir    string   // where it starts, if it may read that; else its working folder
	Env    func(name string) (string, bool)
	// Given are variables that it has whatever else is called so.
	Given []string
	Leads Leads
	// Ports of the host's loopback addresses lead to it.
	Ports []uint
	// Learn gathers what it uses; nil: nobody does.
	Learn *Learnt
	// Closed are [Closed] of its policy.
	Closed []lane.Folder
	Live   *lane.Live // its streams pass through; nil: they are held for the report

	Outside proxy.Outside
	Routes  []caps.Route // of its policy
	Trusted caps.Set     // hosts whose answers do not mark the run
	Now     func() time.Time
}

// Body has the program run: its end is that of the run.
func (s *Start) Body() run.Body { return s.serve }

// cwd is the folder where the program starts: the current one, where it is shown that or
// something below it; "" for its working folder.
func (s *Start) cwd(holds caps.Set) string {
	if s.Dir != "" && (holds.Check(caps.Request{Family: caps.FS, Mode: caps.Read, Name: s.Dir}).Allow ||
		leadsTo(holds, s.Dir)) {
		return s.Dir
	}
	return ""
}

// leased is how long the program may run: no longer than the first lease of its files,
// which it keeps until it ends.
func (s *Start) leased(holds caps.Set) (bounded bool, most time.Duration) {
	most = math.MaxInt64
	for _, l := range holds.Leases() {
		if l.Grant.Family == caps.FS && l.Expires != caps.Forever {
			bounded, most = true, min(most, max(time.UnixMilli(l.Expires).Sub(s.Now()), 1))
		}
	}
	return bounded, most
}

// kept is how much of each stream a lane keeps: the report cuts it.
func kept(l caps.Limits) int {
	out, _ := l.Get(caps.StdoutMaxBytes)
	err, _ := l.Get(caps.StderrMaxBytes)
	return int(min(max(out, err), math.MaxInt32-1)) + 1
}

// stopped is why a program was not started.
func stopped(err error) error {
	var unsupported *lane.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return &run.Stopped{Outcome: run.Unsupported, Status: run.StatusUnsupported, Message: unsupported.Error()}
	case errors.Is(err, lane.ErrNotExist), errors.Is(err, lane.ErrNotProgram), errors.Is(err, lane.ErrTooBig):
		return &run.Stopped{Outcome: run.Refused, Status: run.StatusInput, Message: "starting the program: " + err.Error()}
	}
	return err
}

// ended is how a program ended.
func ended(r *lane.Result) error {
	switch {
	case r.OutOfMemory:
		return &run.Stopped{
			Outcome: run.Memory, Status: run.StatusMemory, Message: "the program and what it started had all the memory that " +
				"they get together",
		}
	case r.TimedOut:
		return &run.Stopped{
			Outcome: run.Timeout, Status: run.StatusTimeout, Message: "a lease of files ended, which a program keeps until it does",
		}
	case r.Signal != 0:
		return &run.Stopped{Outcome: run.Trap, Status: run.StatusFinding, Message: fmt.Sprintf(
			"the program was ended by signal %d (%s)", int(r.Signal), r.Signal)}
	}
	return run.ExitCode(r.ExitCode)
}
