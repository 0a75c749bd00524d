package kb

import (
	"context"
	"crypto/rand"

	"runloop.dev/rlp/internal/record/audit"
)

// protocolVersion is what both ends of the socket must agree on. It changes
// whenever a message or the meaning of a key does.
const protocolVersion = 8

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

// An opcode is the kind of a request in a message.
type opcode uint8

const (
	opGet opcode = iota + 1
	opChange
	opPutAll
	opList
	opSearch
	opWhy
	opTally
	opVerify
	opBackup
	opRestore
	opIngest
	opSeek
	opPage
	opRuns
	opHead
	opSeal
	opCheckpoints
	opInclusion
	opConsistency
	opVerifyLog
	opPrune
	opMarks
	opRecord
	opOutcomes
)

// A request asks a store for one thing; A is its answer. It is answered by the
// engine of this process, or travels to the process that owns the store.
type request[A any] interface {
	op() opcode
	// do answers it, in the process that owns the store.
	do(ctx context.Context, e *engine) (*A, error)
}

// A checker is a request that can be seen to be wrong without looking at the store.
type checker interface{ check() error }

// A repeatable request changes values: under one id it is applied once, however
// often it is asked for.
type repeatable interface{ identify() }

// newID is an id for a request that may be asked for again.
func newID() []byte {
	id := make([]byte, 16)
	rand.Read(id)
	return id
}

// answer answers q, in the process that owns the store.
func answer[A any](ctx context.Context, e *engine, q request[A]) (*A, error) {
	if q.op() != opRestore {
		if err := e.mayServe(); err != nil {
			return nil, err
		}
	}
	if c, ok := q.(checker); ok {
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	return q.do(ctx, e)
}

// A message is a request on its way to the process that owns the store.
type message struct {
	Op   opcode `cbor:"1,keyasint"`
	Body []byte `cbor:"2,keyasint"` // the request
}

// A reply is the answer on its way back.
type reply struct {
	Failure failure `cbor:"1,keyasint,omitempty"`
	Text    string  `cbor:"2,keyasint,omitempty"` // what Failure's error says
	Body    []byte  `cbor:"3,keyasint,omitempty"` // the answer, where nothing failed
}

// A handler reads the body of a message and answers the request in it.
type handler struct {
	op opcode
	do func(ctx context.Context, e *engine, body []byte) (any, error)
}

func handles[Q, A any, P interface {
	*Q
	request[A]
}]() handler {
	return handler{P(new(Q)).op(), func(ctx context.Context, e *engine, body []byte) (any, error) {
		q := P(new(Q))
		if err := e.codec.Unmarshal(body, q); err != nil {
			return nil, invalidf("a request makes no sense: %v", err)
		}
		return answer(ctx, e, q)
	}}
}

var handlers = [...]handler{
	handles[getRequest, valueAnswer](),
	handles[changeRequest, changeAnswer](),
	handles[putAllRequest, putAllAnswer](),
	handles[listRequest, listAnswer](),
	handles[searchRequest, searchAnswer](),
	handles[whyRequest, Chain](),
	handles[tallyRequest, tallyAnswer](),
	handles[verifyRequest, verifyAnswer](),
	handles[backupRequest, backupAnswer](),
	handles[restoreRequest, restoreAnswer](),
	handles[ingestRequest, Ingested](),
	handles[seekRequest, seekAnswer](),
	handles[pageRequest, pageAnswer](),
	handles[runsRequest, runsAnswer](),
	handles[headRequest, Head](),
	handles[sealRequest, Checkpoint](),
	handles[checkpointsRequest, checkpointsAnswer](),
	handles[inclusionRequest, inclusionAnswer](),
	handles[consistencyRequest, consistencyAnswer](),
	handles[verifyLogRequest, verifyLogAnswer](),
	handles[pruneRequest, pruneAnswer](),
	handles[marksRequest, marksAnswer](),
	handles[recordRequest, nothing](),
	handles[outcomesRequest, outcomesAnswer](),
}

// serve answers a message.
func (e *engine) serve(ctx context.Context, m *message) (any, error) {
	for i := range handlers {
		if handlers[i].op == m.Op {
			return handlers[i].do(ctx, e, m.Body)
		}
	}
	return nil, invalidf("operation %d is not known", m.Op)
}

// nothing is the answer where there is nothing to say.
type nothing struct{}

// A pair is one key of the database and what is stored there.
type pair struct {
	Key   []byte `cbor:"1,keyasint"`
	Value []byte `cbor:"2,keyasint"`
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
	case f.SinceMS != 0 && r.Time.UnixMilli() < f.SinceMS, f.After != 0 && r.Seq <= f.After, f.AfterOfRun != 0 &&
		r.RunSeq <= f.AfterOfRun:
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
