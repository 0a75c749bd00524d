package values

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"runloop.dev/rlp/kb/wire"
)

// Bounds of one [View.PutAll].
const (
	MaxItems     = 128
	MaxItemBytes = 2 << 20 // of all values together
)

// An Item is one value to be stored.
type Item struct {
	Key    string `cbor:"1,keyasint"`
	Value  []byte `cbor:"2,keyasint"`
	Origin Origin `cbor:"3,keyasint"`
	// Revision is the one that must be stored now, 0 meaning that there is none.
	Revision uint64 `cbor:"4,keyasint,omitempty"`
}

// PutAll stores items in their order, each as [View.CAS] would and with an
// origin of its own, at the cost of little more than one. An error is about the
// first that was refused, and the revisions are of those before it; what comes
// after it may be stored or not.
func (v *View) PutAll(ctx context.Context, domain string, items []Item) ([]uint64, error) {
	if err := v.checkDomain(domain); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, nil
	}
	r, err := wire.Ask(ctx, v.asker, &putAllRequest{Domain: domain, Items: items})
	if err != nil {
		return nil, err
	}
	if r.Stopped != wire.FailNone {
		return r.Revisions, fmt.Errorf("storing %s/%s: %w", domain, items[min(len(r.Revisions), len(items)-1)].Key,
			&wire.RemoteError{Kind: r.Stopped, Text: r.Text})
	}
	return r.Revisions, nil
}

// A putAllRequest stores Items in their order.
type putAllRequest struct {
	ID     []byte `cbor:"1,keyasint,omitempty"` // the same ID is applied once
	Domain string `cbor:"2,keyasint"`
	Items  []Item `cbor:"3,keyasint,omitempty"`
}

// A putAllAnswer has the revisions of the items, as far as it came.
type putAllAnswer struct {
	Revisions []uint64     `cbor:"1,keyasint,omitempty"`
	Stopped   wire.Failure `cbor:"2,keyasint,omitempty"` // of the next item
	Text      string       `cbor:"3,keyasint,omitempty"` // what its error says
}

func (*putAllRequest) Op() wire.Opcode { return wire.OpPutAll }

func (q *putAllRequest) Identify() {
	if q.ID == nil {
		q.ID = wire.NewID()
	}
}

func (q *putAllRequest) Check() error { return checkDomain(q.Domain) }

// Do hands all items to the committer in their order, then waits.
func (q *putAllRequest) Do(ctx context.Context, v *Values) (*putAllAnswer, error) {
	total := 0
	for _, it := range q.Items {
		total += len(it.Value)
	}
	if len(q.Items) > MaxItems || total > MaxItemBytes {
		return nil, wire.Invalidf("%d items of %d bytes are too many at once", len(q.Items), total)
	}
	changes := make([]*change, len(q.Items))
	for i, it := range q.Items {
		one := &changeRequest{
			Domain: q.Domain, Key: it.Key, Value: it.Value, Compare: true, Revision: it.Revision,
			Origin: it.Origin,
		}
		if q.ID != nil { // of its own, and the same when it is asked for again
			one.ID = binary.BigEndian.AppendUint16(append([]byte(nil), q.ID...), uint16(i))
		}
		c, err := v.prepare(one)
		if err != nil {
			return nil, err // nothing is under way yet
		}
		changes[i] = c
	}
	for i, c := range changes {
		if err := v.queue(ctx, c); err != nil {
			changes = changes[:i]
			break
		}
	}
	r := &putAllAnswer{}
	for _, c := range changes {
		revision, err := v.await(c)
		if err != nil && r.Stopped == wire.FailNone {
			r.Stopped, r.Text = wire.FailureOf(err), err.Error()
		}
		if r.Stopped == wire.FailNone {
			r.Revisions = append(r.Revisions, revision)
		}
	}
	if r.Stopped == wire.FailNone && len(r.Revisions) < len(q.Items) {
		return nil, cmp.Or(ctx.Err(), wire.ErrClosed)
	}
	return r, nil
}
