package values

import (
	"unicode/utf8"

	"runloop.dev/rlp/kb/wire"
)

// What an [Origin] says about whether a value may be believed.
const (
	// Trusted is what the operator put there, or a run that saw nothing untrusted.
	Trusted = "trusted"
	// Untrusted is everything else: what was imported, and what agents write.
	Untrusted = "untrusted"
)

// An Origin says where a value comes from.
type Origin struct {
	Agent  string `cbor:"1,keyasint,omitempty"`
	Run    string `cbor:"2,keyasint,omitempty"`
	Tenant string `cbor:"3,keyasint,omitempty"` // set by the store
	UnixMS int64  `cbor:"4,keyasint,omitempty"` // set by the store
	Source string `cbor:"5,keyasint,omitempty"` // what the writer says it has the value from
	Label  string `cbor:"6,keyasint,omitempty"` // Trusted or Untrusted; "" is Untrusted
	ETag   string `cbor:"7,keyasint,omitempty"` // which version of the source it is
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

// check refuses an origin that could not be stored, whoever made it.
func (o *Origin) check() error {
	for _, f := range []struct {
		what, text string
		most       int
	}{{"agent", o.Agent, 256}, {"run", o.Run, 256}, {"source", o.Source, 4096}, {"etag", o.ETag, 256}} {
		if len(f.text) > f.most || !utf8.ValidString(f.text) {
			return wire.Invalidf("the %s of a value is at most %d bytes of UTF-8", f.what, f.most)
		}
	}
	if o.Label != "" && o.Label != Trusted && o.Label != Untrusted {
		return wire.Invalidf("a label is %s or %s, not %q", Trusted, Untrusted, o.Label)
	}
	return nil
}

// stamped is o as the store keeps it.
func (o *Options) stamped(from Origin) Origin {
	from.Tenant, from.UnixMS = o.Tenant, o.Now().UnixMilli()
	if from.Label == "" {
		from.Label = Untrusted
	}
	return from
}

// Content is a value and what decides how it may be shown, and to whom.
type Content struct {
	Bytes   []byte
	Plain   bool // masks change nothing of it
	Trusted bool // its label is [Trusted]
}
