package kb

import (
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
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

func agreementOf(o *values.Options) agreement { return agreement{o.IndexVersion(), o.Tenant} }

// A message is a request on its way to the process that owns the store.
type message struct {
	Op   wire.Opcode `cbor:"1,keyasint"`
	Body []byte      `cbor:"2,keyasint"` // the request
}

// A reply is the answer on its way back.
type reply struct {
	Failure wire.Failure `cbor:"1,keyasint,omitempty"`
	Text    string       `cbor:"2,keyasint,omitempty"` // what Failure's error says
	Body    []byte       `cbor:"3,keyasint,omitempty"` // the answer, where nothing failed
}

// A pair is one key of the database and what is stored there.
type pair struct {
	Key   []byte `cbor:"1,keyasint"`
	Value []byte `cbor:"2,keyasint"`
}
