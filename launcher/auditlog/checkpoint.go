package auditlog

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/launcher/compose"
)

// A Published is a checkpoint, and who was told of it.
type Published struct {
	Origin    string          `json:"origin"`
	Size      uint64          `json:"size"`
	Root      string          `json:"root"`
	Note      string          `json:"note"`
	Out       string          `json:"out,omitempty"`
	Published []evidence.Told `json:"published,omitempty"`
	Untold    string          `json:"untold,omitempty"` // which sinks were not told, and why
}

// Publish signs a checkpoint of all records, tells the sinks of [audit] publish, and
// appends it to the file out, if there is one.
func (l *Log) Publish(ctx context.Context, out string) (*Published, error) {
	if l.intake != nil {
		return nil, l.intake
	}
	made, err := l.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	key, err := publicKey(l.home)
	if err != nil {
		return nil, err
	}
	told, err := compose.Publish(ctx, l.home, l.config, l.Store)
	if err != nil {
		return nil, err
	}
	var untold error
	for _, t := range told {
		untold = errors.Join(untold, t.Err)
	}
	p := &Published{
		Origin: key.Origin(), Size: made.Head.Size, Root: base64.StdEncoding.EncodeToString(made.Head.Root[:]),
		Note: string(made.Note), Out: out, Published: told,
	}
	if untold != nil {
		p.Untold = untold.Error()
	}
	if out == "" {
		return p, nil
	}
	path, err := filepath.Abs(out)
	if err == nil {
		err = evidence.AppendNotes(path, [][]byte{made.Note})
	}
	if err != nil {
		return nil, compose.InputErr(fmt.Errorf("writing the checkpoint: %w", err))
	}
	return p, nil
}

// Key is the key of a tenant's log, made if there is none, and the file that has its
// public half.
func Key(ctx context.Context, r *compose.Reader) (key *evidence.PublicKey, file string, err error) {
	h, err := r.Home()
	if err == nil && !compose.SignedBefore(h) { // a key beside no log says that the log was removed
		err = Open(ctx, r, func(context.Context, *Log) error { return nil })
	}
	if err != nil {
		return nil, "", err
	}
	made, err := evidence.MakeKey(h.Root(), h.Tenant())
	if err == nil {
		err = made.CheckPublic(h.Root())
	}
	if err != nil {
		return nil, "", err
	}
	return made.Public(), filepath.Join(h.Root(), evidence.PublicFile), nil
}
