package wire

import (
	"context"
	"crypto/rand"

	"runloop.dev/rlp/internal/record/audit"
)

// An Opcode is the kind of a request in a message.
type Opcode uint8

// The kinds of requests.
const (
	OpGet Opcode = iota + 1
	OpChange
	OpPutAll
	OpList
	OpSearch
	OpWhy
	OpTally
	OpVerify
	OpBackup
	OpRestore
	OpIngest
	OpSeek
	OpPage
	OpRuns
	OpHead
	OpSeal
	OpCheckpoints
	OpInclusion
	OpConsistency
	OpVerifyLog
	OpPrune
	OpMarks
	OpRecord
	OpOutcomes
)

// A Request asks the part P of a store for one thing; A is its answer.
type Request[P, A any] interface {
	Op() Opcode
	// Do answers it, in the process that owns the store.
	Do(ctx context.Context, part P) (*A, error)
}

// A Checker is a request that can be seen to be wrong without looking at the store.
type Checker interface{ Check() error }

// A Repeatable request changes values: under one id it is applied once, however
// often it is asked for.
type Repeatable interface{ Identify() }

// NewID is an id for a request that may be asked for again.
func NewID() []byte {
	id := make([]byte, 16)
	rand.Read(id)
	return id
}

// A Question is a request of whatever kind on its way to who answers it.
type Question[P any] struct {
	Request interface{ Op() Opcode }
	// Local has the part of this process answer it.
	Local func(ctx context.Context, part P) error
	// Answer is where the answer of another process goes.
	Answer func() any
}

// An Asker is a store whose part P answers requests, in this process or another.
type Asker[P any] interface {
	Ask(ctx context.Context, q *Question[P]) error
	// Hold is the part in this process, until Release; not here: another process has it.
	Hold() (part P, here bool)
	Release()
}

// Ask has q answered.
func Ask[P, A any](ctx context.Context, s Asker[P], q Request[P, A]) (a *A, err error) {
	err = s.Ask(ctx, &Question[P]{
		Request: q,
		Local: func(ctx context.Context, part P) (err error) {
			a, err = Answer(ctx, part, q)
			return err
		},
		Answer: func() any {
			a = new(A)
			return a
		},
	})
	return a, err
}

// Answer has a part of this process answer q, and checks it before.
func Answer[P, A any](ctx context.Context, part P, q Request[P, A]) (*A, error) {
	if c, ok := q.(Checker); ok {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	return q.Do(ctx, part)
}

// A Handler reads the body of a request of one kind and answers it.
type Handler[P any] struct {
	Op Opcode
	Do func(ctx context.Context, part P, codec *audit.Codec, body []byte) (any, error)
}

// Handles is the handler of requests of the kind Q.
func Handles[P, Q, A any, R interface {
	*Q
	Request[P, A]
}]() Handler[P] {
	return Handler[P]{R(new(Q)).Op(), func(ctx context.Context, part P, codec *audit.Codec, body []byte) (any, error) {
		q := R(new(Q))
		if err := codec.Unmarshal(body, q); err != nil {
			return nil, Invalidf("a request makes no sense: %v", err)
		}
		return Answer(ctx, part, Request[P, A](q))
	}}
}
