package kb

import (
	"runloop.dev/rlp/internal/audit"
)

// protocolVersion is what both ends of the socket must agree on. It changes
// whenever a message or the meaning of a key does.
const protocolVersion = 1

// A hello opens a connection, from both ends.
type hello struct {
	Magic   string `cbor:"1,keyasint"` // "rlp-kb"
	Version int    `cbor:"2,keyasint"`
	PID     int    `cbor:"3,keyasint"`
}

const magic = "rlp-kb"

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

// An Origin says where a value comes from.
type Origin struct {
	Agent  string `cbor:"1,keyasint,omitempty"`
	Run    string `cbor:"2,keyasint,omitempty"`
	Tenant string `cbor:"3,keyasint,omitempty"` // set by the store
	UnixMS int64  `cbor:"4,keyasint,omitempty"` // set by the store
	Source string `cbor:"5,keyasint,omitempty"` // what the writer says it has the value from
	Label  string `cbor:"6,keyasint,omitempty"` // such as the taint of the run
}

// A Value is what is stored at a key.
type Value struct {
	Bytes    []byte
	Revision uint64
	Origin   Origin
}

// An Entry describes a stored value.
type Entry struct {
	Key      string `cbor:"1,keyasint"`
	Revision uint64 `cbor:"2,keyasint"`
	Size     int    `cbor:"3,keyasint"` // of the value, in bytes
	Origin   Origin `cbor:"4,keyasint"`
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
	case f.SinceMS != 0 && r.Time.UnixMilli() < f.SinceMS:
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
}

// check refuses a filter that could never match.
func (f *Filter) check() error {
	if f.Decision != "" && f.Decision != "allow" && f.Decision != "deny" {
		return invalidf("a decision is allow or deny, not %q", f.Decision)
	}
	if f.Limit < 0 {
		return invalidf("a limit of %d", f.Limit)
	}
	return nil
}
