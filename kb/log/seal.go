package log

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/kb/wire"
)

// Checkpoint takes in journals and returns a checkpoint of the whole log, made
// now unless there is one of that size.
func (s *Client) Checkpoint(ctx context.Context) (Checkpoint, error) {
	_, err := s.Ingest(ctx)
	var c *Checkpoint
	if err == nil {
		c, err = wire.Ask(ctx, s.asker, &sealRequest{})
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("making a checkpoint of the log: %w", err)
	}
	return *c, nil
}

// A sealRequest asks for a checkpoint of the whole log.
type sealRequest struct{}

func (*sealRequest) Op() wire.Opcode { return wire.OpSeal }

func (*sealRequest) Do(ctx context.Context, l *Log) (*Checkpoint, error) {
	select {
	case l.ingesting <- struct{}{}:
		defer func() { <-l.ingesting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.quit:
		return nil, wire.ErrClosed
	}
	if err := l.inspect(ctx); err != nil { // or what is signed now takes the place of what is gone
		return nil, err
	}
	var c Checkpoint
	err := l.db.Update(func(txn *badger.Txn) error {
		head, err := storedHead(txn)
		if err != nil {
			return err
		}
		c, err = l.sealAt(txn, head)
		return err
	})
	return &c, err
}
