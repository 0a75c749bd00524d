package values

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// maxSteps is how many changes of a key are remembered: the first and the last
// ones. The values that they replaced are not.
const maxSteps = 32

// A Chain is who wrote a key, oldest first.
type Chain struct {
	Steps []Step `cbor:"1,keyasint,omitempty"`
	// Left is how many changes after the first are not remembered any more.
	Left int `cbor:"2,keyasint,omitempty"`
}

// A Step is one change of a key.
type Step struct {
	Revision uint64 `cbor:"1,keyasint"`
	Deleted  bool   `cbor:"2,keyasint,omitempty"`
	Size     int    `cbor:"3,keyasint,omitempty"` // of the value, in bytes
	Origin   Origin `cbor:"4,keyasint"`
}

// Why returns who wrote the value at key and what was there before. It is
// [fs.ErrNotExist] when nothing was ever there.
func (v *View) Why(ctx context.Context, domain, key string) (Chain, error) {
	if err := v.checkDomain(domain); err != nil {
		return Chain{}, err
	}
	c, err := wire.Ask(ctx, v.asker, &whyRequest{domain, key})
	if err != nil {
		return Chain{}, err
	}
	return *c, nil
}

// A whyRequest asks who wrote a key.
type whyRequest struct {
	Domain string `cbor:"1,keyasint"`
	Key    string `cbor:"2,keyasint"`
}

func (*whyRequest) Op() wire.Opcode { return wire.OpWhy }

func (q *whyRequest) Check() error { return errors.Join(checkDomain(q.Domain), checkKey(q.Key)) }

func (q *whyRequest) Do(_ context.Context, v *Values) (*Chain, error) {
	txn := v.db.NewTransaction(false)
	defer txn.Discard()
	c, err := v.chain(txn, q.Domain, q.Key)
	if err == nil && len(c.Steps) == 0 {
		err = fmt.Errorf("%s/%s: %w", q.Domain, q.Key, fs.ErrNotExist)
	}
	return &c, err
}

func (v *Values) chain(txn *badger.Txn, domain, key string) (Chain, error) {
	p, err := db.Get(txn, keyChain(domain, key))
	if err != nil || p == nil {
		return Chain{}, err
	}
	return decodeChain(v.codec, p)
}

// decodeChain reads what encodeChain wrote, and addStep made longer.
func decodeChain(codec *audit.Codec, p []byte) (Chain, error) {
	r := &docReader{p: p}
	c := Chain{Left: int(r.number() & math.MaxInt32)}
	for len(r.p) > 0 && len(c.Steps) <= maxSteps {
		var s Step
		if err := codec.Unmarshal(r.bytes(), &s); err != nil {
			return c, fmt.Errorf("%w: a chain makes no sense: %w", wire.ErrDamaged, err)
		}
		c.Steps = append(c.Steps, s)
	}
	if r.bad || len(c.Steps) == 0 || len(c.Steps) > maxSteps {
		return c, fmt.Errorf("%w: a chain makes no sense", wire.ErrDamaged)
	}
	return c, nil
}

// encodeChain is the stored form of a chain: how many steps are left out, and
// each step behind its length, so that one is added without reading the others.
func encodeChain(codec *audit.Codec, c Chain) ([]byte, error) {
	p := binary.AppendUvarint(nil, uint64(c.Left))
	for _, s := range c.Steps {
		text, err := codec.Marshal(s)
		if err != nil {
			return nil, err
		}
		p = append(binary.AppendUvarint(p, uint64(len(text))), text...)
	}
	return p, nil
}

// addStep remembers a change.
func (v *Values) addStep(txn *badger.Txn, domain, key string, s Step) error {
	text, err := v.codec.Marshal(s)
	if err != nil {
		return err
	}
	p, err := db.Get(txn, keyChain(domain, key))
	if err != nil {
		return err
	}
	if p == nil {
		p = []byte{0}
	}
	if p, err = dropSecond(p); err != nil {
		return fmt.Errorf("%s/%s: %w", domain, key, err)
	}
	p = append(binary.AppendUvarint(p, uint64(len(text))), text...)
	return txn.Set(keyChain(domain, key), p)
}

// dropSecond makes room for one more step in a chain that is as long as it may
// be: the second goes, and is counted.
func dropSecond(p []byte) ([]byte, error) {
	r := &docReader{p: p}
	left := r.number()
	begin, steps, second, third := len(p)-len(r.p), 0, 0, 0
	for len(r.p) > 0 {
		r.bytes()
		switch steps++; steps {
		case 1:
			second = len(p) - len(r.p)
		case 2:
			third = len(p) - len(r.p)
		}
	}
	if r.bad {
		return nil, fmt.Errorf("%w: a chain makes no sense", wire.ErrDamaged)
	}
	if steps < maxSteps {
		return p, nil
	}
	q := binary.AppendUvarint(make([]byte, 0, len(p)+256), left+1)
	q = append(q, p[begin:second]...)
	return append(q, p[third:]...), nil
}
