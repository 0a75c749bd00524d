package audit

import (
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// A Codec turns events and records into deterministic CBOR with integer keys
// and back: equal values have equal bytes, and an unknown key is an error. It
// is safe for use by several goroutines.
type Codec struct {
	enc cbor.EncMode
	dec cbor.DecMode
}

// stored is the form of a [Record] inside the log.
type stored struct {
	V        int             `cbor:"0,keyasint"`
	Seq      uint64          `cbor:"1,keyasint"`
	RunSeq   uint64          `cbor:"2,keyasint"`
	UnixMS   int64           `cbor:"3,keyasint"`
	Head     Head            `cbor:"4,keyasint"`
	Decision *DecisionRecord `cbor:"5,keyasint,omitempty"`
	Event    *Event          `cbor:"6,keyasint,omitempty"`
}

// NewCodec returns a codec.
func NewCodec() (*Codec, error) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		return nil, err
	}
	dec, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxNestedLevels:   8,
		UTF8:              cbor.UTF8DecodeInvalid, // paths are bytes; a strange one must not make its record unreadable
	}.DecMode()
	if err != nil {
		return nil, err
	}
	return &Codec{enc: enc, dec: dec}, nil
}

// Marshal encodes v, which is any value made of maps, slices, structs with cbor tags and scalars.
func (c *Codec) Marshal(v any) ([]byte, error) { return c.enc.Marshal(v) }

// Unmarshal decodes p into v. It refuses trailing bytes, unknown and duplicate keys.
func (c *Codec) Unmarshal(p []byte, v any) error { return c.dec.Unmarshal(p, v) }

// Encode returns the stored form of r. It refuses a record that is neither a
// decision nor an event, or both.
func (c *Codec) Encode(r *Record) ([]byte, error) {
	if (r.Decision == nil) == (r.Event == nil) {
		return nil, errors.New("encoding an audit record: it must be a decision or an event")
	}
	return c.enc.Marshal(stored{1, r.Seq, r.RunSeq, r.Time.UnixMilli(), r.Head, r.Decision, r.Event})
}

// Decode reads the stored form of a record.
func (c *Codec) Decode(p []byte) (Record, error) {
	var s stored
	if err := c.dec.Unmarshal(p, &s); err != nil {
		return Record{}, fmt.Errorf("decoding an audit record: %w", err)
	}
	if s.V != 1 {
		return Record{}, fmt.Errorf("decoding an audit record: version %d is not known", s.V)
	}
	if (s.Decision == nil) == (s.Event == nil) {
		return Record{}, errors.New("decoding an audit record: it must be a decision or an event")
	}
	return Record{
		Seq: s.Seq, RunSeq: s.RunSeq, Time: time.UnixMilli(s.UnixMS).UTC(),
		Head: s.Head, Kept: true, Decision: s.Decision, Event: s.Event,
	}, nil
}
