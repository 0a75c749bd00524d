package auditlog

import (
	"context"
	"errors"
	"slices"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

// A Check says what a log is held against.
type Check struct {
	Run        string // only the records of this run
	Since      string // a file: only what came after its newest checkpoint, which the log goes on from
	Checkpoint string // a file: the log goes on from each of its checkpoints
	Key        string // the public key that is believed, a line or a file; "": the one beside the log
}

// Verify checks the log of a tenant, and records what it finds.
func Verify(ctx context.Context, r *compose.Reader, f Check) (found *ask.Verification, err error) {
	err = openToRead(ctx, r, func(ctx context.Context, l *Log) error {
		v, err := verifyLog(ctx, l, f)
		if err != nil {
			return err
		}
		found = &v.Verification
		if err := v.remember(ctx, l, f); err != nil {
			r.Say(err.Error())
		}
		return nil
	})
	return found, err
}

// verifyLog checks the log.
func verifyLog(ctx context.Context, l *Log, f Check) (*verification, error) {
	v := &verification{Verification: ask.Verification{OK: true, Tenant: l.home.Tenant()}}
	check, err := v.prepare(ctx, l, f)
	if err != nil {
		return nil, err
	}
	if v.OK {
		report, err := l.VerifyLog(ctx, check)
		v.report(report)
		if err == nil {
			err = errors.Join(l.intake, v.unread)
		}
		if err = v.blame(err); err != nil {
			return nil, err
		}
	}
	if err := v.told(l, f.Run == "" && f.Since == ""); err != nil {
		return nil, err
	}
	if v.checked {
		if err := v.missing(ctx, l, f); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// prepare reads what the log is held against. What is wrong with that is a fault
// of v; an error is that it cannot be read.
func (v *verification) prepare(ctx context.Context, l *Log, f Check) (kb.LogCheck, error) {
	var check kb.LogCheck
	key, err := publicKey(l.home)
	if f.Key != "" {
		var named *evidence.PublicKey
		if named, err = NamedKey(f.Key); err != nil {
			return check, err
		}
		key = named
	}
	if err != nil {
		v.fault(evidenceFault, 0, err.Error())
		return check, nil
	}
	if key != nil || !l.copied || compose.SignedBefore(l.home) {
		check.Open = opener(key)
	}
	if key != nil {
		v.Key, v.Origin = key.String(), key.Origin()
	}
	if f.Run != "" {
		check.Run, err = l.runOf(ctx, f.Run)
		switch {
		case errors.Is(err, kb.ErrDamaged):
			v.unread = err // the whole log is looked at instead, which finds out more
		case err != nil:
			return check, err
		}
		v.Run = check.Run
	}
	if f.Since != "" {
		o, err := v.outside(f.Since, key, f.Key != "")
		if err != nil || !v.OK {
			return check, err
		}
		check.Since = o.heads[len(o.heads)-1]
	}
	if f.Checkpoint != "" {
		o, err := v.outside(f.Checkpoint, key, f.Key != "")
		if err != nil || !v.OK {
			return check, err
		}
		check.Against = o.heads
	}
	if f.Run == "" && f.Since == "" && key != nil {
		heads, err := v.sinks(l, key, f.Key != "")
		if err != nil || !v.OK {
			return check, err
		}
		check.Against = append(check.Against, heads...)
	}
	check.Against = slices.DeleteFunc(check.Against, func(h kb.Head) bool { return h.Size == 0 }) // every log begins so
	return check, nil
}

// opener believes notes by key alone.
func opener(key *evidence.PublicKey) func([]byte) (kb.Opened, error) {
	return func(note []byte) (kb.Opened, error) {
		if key == nil {
			return kb.Opened{}, errors.New("there is no key that it could be believed by: bring audit.key from where the log " +
				"was made, or name its public key with --key")
		}
		c, lines, err := key.OpenNote(note)
		return kb.Opened{Head: kb.Head{Size: c.Size, Root: c.Root}, Lines: lines}, err
	}
}
