package kb

import (
	"runloop.dev/rlp/internal/audit"
)

// protocolVersion is what both ends of the socket must agree on. It changes
// whenever a message or the meaning of a key does.
const protocolVersion = 7

// A hello opens a connection, from both ends.
type hello struct {
	Magic   string `cbor:"1,keyasint"` // "rlp-kb"
	Version int    `cbor:"2,keyasint"`
	PID     int    `cbor:"3,keyasint"`
}

const magic = "rlp-kb"

// An agreement follow the hello, between ends of one version.
type agreement struct {
	Index  string `cbor:"1,keyasint"` // by which rules values are masked and indexed
	Tenant string `cbor:"2,keyasint"` // whose store it is: the name of the socket is a short digest of it
}

// An opcode is one thing that a store can be asked.
type opcode uint8

const (
	opGet opcode = iota + 1
	opPut
	opDelete
	opList
	opIngest
	opSeek
	opPage
	opSearch
	opWhy
	opTally
	opVerify
	opBackup
	opRestore
	opPutAll
	opHead
	opSeal
	opCheckpoints
	opInclusion
	opConsistency
	opVerifyLog
	opPrune
	opMarks
	opRuns
	opRecord
	opOutcomes
)

// A request asks the engine for one thing, from this process or another.
type request struct {
	Op       opcode `cbor:"1,keyasint"`
	ID       []byte `cbor:"2,keyasint,omitempty"` // of a change: the same ID is applied once
	Domain   string `cbor:"3,keyasint,omitempty"`
	Key      string `cbor:"4,keyasint,omitempty"` // or the prefix of a list
	Value    []byte `cbor:"5,keyasint,omitempty"`
	Compare  bool   `cbor:"6,keyasint,omitempty"` // a put that wants Revision to be the stored one
	Revision uint64 `cbor:"7,keyasint,omitempty"`
	Origin   Origin `cbor:"8,keyasint"`
	After    string `cbor:"9,keyasint,omitempty"` // a list goes on after this key
	Filter   Filter `cbor:"10,keyasint"`
	From     uint64 `cbor:"11,keyasint,omitempty"` // a page begins here
	UpTo     uint64 `cbor:"12,keyasint,omitempty"` // and ends at this record number
	Bare     bool   `cbor:"13,keyasint,omitempty"` // a get that wants the value alone; a page that is not decoded whole
	Raw      bool   `cbor:"14,keyasint,omitempty"` // a search of what is not masked
	Limit    int    `cbor:"15,keyasint,omitempty"` // of a search
	Cursor   []byte `cbor:"16,keyasint,omitempty"` // where to go on
	Stage    stage  `cbor:"17,keyasint,omitempty"` // of a restore
	Pairs    []pair `cbor:"18,keyasint,omitempty"` // to be restored
	Replace  bool   `cbor:"19,keyasint,omitempty"` // a restore may take what is there away
	Items    []Item `cbor:"20,keyasint,omitempty"` // of a put of many

	Walk walkAsk  `cbor:"21,keyasint"` // of a verification of the log
	Runs RunQuery `cbor:"22,keyasint"`

	Names []string `cbor:"23,keyasint,omitempty"` // of runs that are looked for
}

// A response answers one request.
type response struct {
	Failure  failure  `cbor:"1,keyasint,omitempty"`
	Text     string   `cbor:"2,keyasint,omitempty"` // what Failure's error says
	Revision uint64   `cbor:"3,keyasint,omitempty"`
	Value    []byte   `cbor:"4,keyasint,omitempty"`
	Origin   Origin   `cbor:"5,keyasint"`
	Entries  []Entry  `cbor:"6,keyasint,omitempty"`
	Records  [][]byte `cbor:"7,keyasint,omitempty"` // stored form
	From     uint64   `cbor:"8,keyasint,omitempty"` // where an answer begins, as far as is known
	UpTo     uint64   `cbor:"9,keyasint,omitempty"`
	More     bool     `cbor:"10,keyasint,omitempty"`
	Ingested Ingested `cbor:"11,keyasint"`
	Next     uint64   `cbor:"12,keyasint,omitempty"` // where to go on, if More
	Left     int      `cbor:"13,keyasint,omitempty"` // of the limit
	Hits     []Hit    `cbor:"14,keyasint,omitempty"`
	Chain    Chain    `cbor:"15,keyasint"`
	Tallies  []Tally  `cbor:"16,keyasint,omitempty"`
	Cursor   []byte   `cbor:"17,keyasint,omitempty"` // where to go on, if More
	Pairs    []pair   `cbor:"18,keyasint,omitempty"` // of a backup
	Verified Verified `cbor:"19,keyasint"`
	LogKept  bool     `cbor:"20,keyasint,omitempty"` // a restore leaves the log that is there
	Plain    bool     `cbor:"21,keyasint,omitempty"` // masks change nothing of Value

	Trusted bool `cbor:"24,keyasint,omitempty"` // the label of Value, where Origin is not asked for

	Revisions []uint64 `cbor:"22,keyasint,omitempty"` // of a put of many, as far as it came
	Stopped   failure  `cbor:"23,keyasint,omitempty"` // what Text says of the next one

	Head        Head         `cbor:"25,keyasint"` // of the log
	Older       Head         `cbor:"26,keyasint"` // that a proof goes on from
	Checkpoints []Checkpoint `cbor:"27,keyasint,omitempty"`
	Hashes      [][32]byte   `cbor:"28,keyasint,omitempty"` // a proof
	Walk        walkStep     `cbor:"29,keyasint"`
	Marks       []Mark       `cbor:"30,keyasint,omitempty"`
	Runs        []RunSummary `cbor:"31,keyasint,omitempty"`
	Names       []string     `cbor:"32,keyasint,omitempty"` // how each of the runs that are looked for ended
}

// A pair is one key of the database and what is stored there.
type pair struct {
	Key   []byte `cbor:"1,keyasint"`
	Value []byte `cbor:"2,keyasint"`
}

// answer makes the response that carries err.
func answer(r *response, err error) *response {
	if err != nil {
		return &response{Failure: failureOf(err), Text: err.Error()}
	}
	return r
}

// result is the response as its asker sees it.
func (r *response) result() (*response, error) {
	if r.Failure != failNone {
		return nil, &remoteError{r.Failure, r.Text}
	}
	return r, nil
}

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
	case f.SinceMS != 0 && r.Time.UnixMilli() < f.SinceMS, f.After != 0 && r.Seq <= f.After, f.AfterOfRun != 0 && r.RunSeq <= f.AfterOfRun:
		return false
	case !f.decisionsOnly():
		return true
	case r.Decision == nil:
		return false
	case f.Decision != "" && (f.Decision == "deny") != r.Decision.Deny:
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
	// Search bounds how long is looked for records; nil: the answer is whole.
	Search *Search `cbor:"-"`
}

// A Search is told, between the steps of an answer, up to which Seq was looked, and
// ends it by saying no. It is not asked where a run or a limit is given.
type Search struct{ Looked func(seq uint64) bool }

// check refuses a filter that could never match.
func (f *Filter) check() error {
	if f.Decision != "" && f.Decision != "allow" && f.Decision != "deny" {
		return invalidf("a decision is allow or deny, not %q", f.Decision)
	}
	if f.Limit < 0 {
		return invalidf("a limit of %d", f.Limit)
	}
	if f.AfterOfRun != 0 && f.Run == "" {
		return invalidf("the first %d records of no run", f.AfterOfRun)
	}
	return nil
}
