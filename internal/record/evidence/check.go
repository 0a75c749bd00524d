package evidence

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/internal/base/strictjson"
)

// A Fact is what a proof that was checked says.
type Fact struct {
	Kind   string // "inclusion" or "consistency"
	Record *Record
	Old    Checkpoint // of a consistency: the log of Old is the beginning of that of New
	New    Checkpoint
}

// A Record is a record that is in the log, and what of it tells runs apart.
type Record struct {
	Line   []byte `json:"-"`
	Seq    uint64 `json:"seq"`
	Kind   string `json:"kind"`
	RunID  string `json:"run_id"`
	RunSeq uint64 `json:"run_seq"`
	Agent  string `json:"agent"`
	Time   string `json:"ts"`
}

// Check reads one proof and checks it by nothing but the public key. The error
// is [ErrMismatch] or [ErrOther] when the proof could be read and is not one.
func Check(data []byte, key *PublicKey) (*Fact, error) {
	if bytes.HasPrefix(data, []byte(consistencyHeader+"\n")) {
		p, err := ParseConsistency(data)
		if err != nil {
			return nil, fmt.Errorf("reading a consistency proof: %w", err)
		}
		return p.Check(key)
	}
	p, err := ParseInclusion(data)
	if err != nil {
		return nil, fmt.Errorf("reading a proof: %w", err)
	}
	return p.Check(key)
}

// Check checks the proof by key.
func (p *Inclusion) Check(key *PublicKey) (*Fact, error) {
	c, err := key.Open(p.Checkpoint)
	if err != nil {
		return nil, err
	}
	if p.Index >= c.Size || tlog.CheckRecord(p.Hashes, int64(c.Size), c.Root, int64(p.Index),
		tlog.RecordHash(p.Record)) != nil {
		return nil, fmt.Errorf("the record is %w: it is not leaf %d of the tree of %d", ErrMismatch, p.Index, c.Size)
	}
	r := &Record{Line: p.Record}
	// A record may have fields that came after this version.
	if err := strictjson.Unmarshal(p.Record, r, strictjson.UnknownFields); err != nil {
		return nil, fmt.Errorf("leaf %d is %w: it is no record: %w", p.Index, ErrMismatch, err)
	}
	if r.Seq != p.Index+1 {
		return nil, fmt.Errorf("leaf %d is %w: it says that its seq is %d", p.Index, ErrMismatch, r.Seq)
	}
	return &Fact{Kind: "inclusion", Record: r, New: c}, nil
}

// Check checks the proof by key.
func (p *Consistency) Check(key *PublicKey) (*Fact, error) {
	older, err := key.Open(p.Old)
	if err != nil {
		return nil, err
	}
	newer, err := key.Open(p.New)
	if err != nil {
		return nil, err
	}
	if err := Extends(older, newer, p.Hashes); err != nil {
		return nil, err
	}
	return &Fact{Kind: "consistency", Old: older, New: newer}, nil
}

// Extends checks that the tree of old is the beginning of that of new.
func Extends(older, newer Checkpoint, hashes []tlog.Hash) error {
	err := errors.New("its size is larger")
	switch {
	case older.Size > newer.Size:
	case older.Size == newer.Size || older.Size == 0:
		if err = nil; len(hashes) != 0 || older.Size == newer.Size && older.Root != newer.Root {
			err = errors.New("its root is another")
		}
	default:
		err = tlog.CheckTree(hashes, int64(newer.Size), newer.Root, int64(older.Size), older.Root)
	}
	if err != nil {
		return fmt.Errorf("the log at %d is %w: the one at %d is not its beginning: %w", newer.Size, ErrMismatch, older.Size,
			err)
	}
	return nil
}
