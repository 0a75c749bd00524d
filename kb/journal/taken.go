package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"

	"runloop.dev/rlp/internal/record/audit"
)

// A Taken is how far a log has taken in one journal.
type Taken struct {
	State State  `cbor:"1,keyasint"`
	Done  bool   `cbor:"2,keyasint,omitempty"` // nothing more will come from it
	Sum   []byte `cbor:"3,keyasint,omitempty"` // of the run and the rest; nil: none was stored then
}

// sumOf is the sum of t as the state of a run's journal.
func (t Taken) sumOf(codec *audit.Codec, run string) ([]byte, error) {
	t.Sum = nil
	p, err := codec.Marshal(t)
	sum := sha256.Sum256(append([]byte(run+"\x00"), p...))
	return sum[:16], err
}

// Encode returns the stored form of t as the state of a run's journal.
func (t Taken) Encode(codec *audit.Codec, run string) (p []byte, err error) {
	if t.Sum, err = t.sumOf(codec, run); err != nil {
		return nil, err
	}
	return codec.Marshal(t)
}

// CheckTaken reads a stored state of a run's journal, and is an error if any byte of
// it is another than was stored. Of one without a sum that is known no better than
// by its form.
func CheckTaken(codec *audit.Codec, run string, p []byte) (s Taken, err error) {
	if err := codec.Unmarshal(p, &s); err != nil {
		return s, err
	}
	again, err := codec.Marshal(s)
	if err == nil && !bytes.Equal(again, p) {
		err = errors.New("it is written in no form that it has")
	}
	if err != nil || s.Sum == nil {
		return s, err
	}
	sum, err := s.sumOf(codec, run)
	if err == nil && !bytes.Equal(sum, s.Sum) {
		err = errors.New("it is not what was stored")
	}
	return s, err
}
