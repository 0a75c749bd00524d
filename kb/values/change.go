package values

import (
	"runloop.dev/rlp/kb/wire"
)

// A change is a request that waits for the committer.
type change struct {
	req  *changeRequest
	doc  *document      // of a put: what the index takes from it
	done chan committed // takes one without a reader
}

// A committed is what became of a change.
type committed struct {
	revision uint64
	err      error
}

// A changeRequest puts a value in the place of what is there, or removes that.
type changeRequest struct {
	ID       []byte `cbor:"1,keyasint,omitempty"` // the same ID is applied once
	Domain   string `cbor:"2,keyasint"`
	Key      string `cbor:"3,keyasint"`
	Delete   bool   `cbor:"4,keyasint,omitempty"`
	Value    []byte `cbor:"5,keyasint,omitempty"`
	Compare  bool   `cbor:"6,keyasint,omitempty"` // a put that wants Revision to be the stored one
	Revision uint64 `cbor:"7,keyasint,omitempty"`
	Origin   Origin `cbor:"8,keyasint"`
}

// A changeAnswer has the revision that the change made.
type changeAnswer struct {
	Revision uint64 `cbor:"1,keyasint"`
}

func (*changeRequest) Op() wire.Opcode { return wire.OpChange }

func (q *changeRequest) Identify() {
	if q.ID == nil {
		q.ID = wire.NewID()
	}
}

func (q *changeRequest) Check() error { return checkDomain(q.Domain) }
