package log

import (
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/wire"
)

// An Ingested says what taking in journals did.
type Ingested struct {
	Records int      `cbor:"1,keyasint,omitempty"` // that entered the log
	Runs    int      `cbor:"2,keyasint,omitempty"` // whose journals are finished with
	Left    int      `cbor:"3,keyasint,omitempty"` // journals that time did not suffice for
	Damaged []string `cbor:"4,keyasint,omitempty"` // what is wrong with which journal
}

// decisionsOnly reports whether f asks for decisions only.
func (f *Filter) decisionsOnly() bool { return f.Cap != "" || f.Decision != "" }

// Match reports whether r is a record that f asks for.
func (f *Filter) Match(r *audit.Record) bool {
	switch {
	case f.Run != "" && r.Head.RunID != f.Run, f.Agent != "" && r.Head.Agent != f.Agent:
		return false
	case f.SinceMS != 0 && r.Time.UnixMilli() < f.SinceMS, f.After != 0 && r.Seq <= f.After, f.AfterOfRun != 0 &&
		r.RunSeq <= f.AfterOfRun:
		return false
	case !f.decisionsOnly():
		return true
	case r.Decision == nil:
		return false
	case f.Decision != "" && (f.Decision == "deny") != r.Decision.Deny, f.Asked && !r.Decision.Asked():
		return false
	}
	return f.Cap == "" || r.Decision.Cap == f.Cap ||
		len(r.Decision.Cap) > len(f.Cap) && r.Decision.Cap[:len(f.Cap)] == f.Cap && r.Decision.Cap[len(f.Cap)] == '.'
}

// A Filter picks records; a zero field asks for nothing.
type Filter struct {
	Run      string `cbor:"1,keyasint,omitempty"`
	Agent    string `cbor:"2,keyasint,omitempty"`
	Cap      string `cbor:"3,keyasint,omitempty"` // "fs" or "fs.read"; only decisions match
	Decision string `cbor:"4,keyasint,omitempty"` // "allow" or "deny"; only decisions match
	SinceMS  int64  `cbor:"5,keyasint,omitempty"` // milliseconds since 1970: this or later
	Limit    int    `cbor:"6,keyasint,omitempty"` // the last so many; 0: all
	After    uint64 `cbor:"7,keyasint,omitempty"` // only records with a higher Seq
	// AfterOfRun leaves out the first so many records of Run.
	AfterOfRun uint64 `cbor:"8,keyasint,omitempty"`
	// Page is about how many bytes of records are read at a time, and held until they
	// are used: little for who may use them slowly; 0: half a MiB.
	Page int `cbor:"9,keyasint,omitempty"`
	// Asked leaves out decisions on what the agent did not ask for: what its launch
	// recorded, and what its language's own start was denied.
	Asked bool `cbor:"10,keyasint,omitempty"`
	// Search bounds how long is looked for records; nil: the answer is whole.
	Search *Search `cbor:"-"`
}

// OfAgents is f as people ask it: denials are those of what agents asked for, unless
// it is about what launches record.
func (f Filter) OfAgents() Filter {
	f.Asked = f.Decision == "deny" && !audit.IsOfLaunch(f.Cap+".")
	return f
}

// A Search is told, between the steps of an answer, up to which Seq was looked, and
// ends it by saying no. It is not asked where a run or a limit is given.
type Search struct{ Looked func(seq uint64) bool }

// Check refuses a filter that could never match.
func (f *Filter) Check() error {
	if f.Decision != "" && f.Decision != "allow" && f.Decision != "deny" {
		return wire.Invalidf("a decision is allow or deny, not %q", f.Decision)
	}
	if f.Limit < 0 {
		return wire.Invalidf("a limit of %d", f.Limit)
	}
	if f.AfterOfRun != 0 && f.Run == "" {
		return wire.Invalidf("the first %d records of no run", f.AfterOfRun)
	}
	return nil
}

// nothing is the answer where there is nothing to say.
type nothing struct{}
