package kb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/blake3"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

// backupMagic begins a backup; messages follow: a head, pages of pairs, and an
// end with the digest of all bytes before it.
const backupMagic = "rlp-kb-backup\n"

// backupFormat changes when an older rlp could not restore what this one writes.
const backupFormat = 1

type backupHead struct {
	Format int    `cbor:"1,keyasint"`
	Schema int    `cbor:"2,keyasint"`
	Tenant string `cbor:"3,keyasint"`
	UnixMS int64  `cbor:"4,keyasint"`
}

// A backupPart is a page, or, with End, what closes a backup.
type backupPart struct {
	Pairs []pair      `cbor:"1,keyasint,omitempty"`
	End   *BackupInfo `cbor:"2,keyasint,omitempty"`
	Sum   []byte      `cbor:"3,keyasint,omitempty"`
}

// A BackupInfo says what a backup holds.
type BackupInfo struct {
	Tenant  string `cbor:"1,keyasint"`
	UnixMS  int64  `cbor:"2,keyasint"` // when it was begun
	Values  int    `cbor:"3,keyasint"`
	Records int    `cbor:"4,keyasint"` // of the audit log
	// LogKept, of a restore: the store had a log, which was left as it was.
	LogKept bool `cbor:"-"`
}

func (i *BackupInfo) count(pairs []pair) {
	for _, p := range pairs {
		if len(p.Key) == 0 {
			continue
		}
		switch p.Key[0] {
		case values.SpaceData:
			i.Values++
		case log.SpaceRecord:
			i.Records++
		}
	}
}

// Backup writes everything that the store holds at one moment to w, values and
// audit log, unmasked, while the store is in use. It takes in journals first.
func (s *Store) Backup(ctx context.Context, w io.Writer) (BackupInfo, error) {
	info := BackupInfo{Tenant: s.opt.Tenant, UnixMS: s.opt.Now().UnixMilli()}
	err := s.backupTo(ctx, w, &info)
	if err != nil {
		return info, fmt.Errorf("backing up the store: %w", err)
	}
	return info, nil
}

func (s *Store) backupTo(ctx context.Context, w io.Writer, info *BackupInfo) error {
	if _, err := s.Ingest(ctx); err != nil {
		return err
	}
	codec, err := audit.NewCodec()
	if err != nil {
		return err
	}
	sum := blake3.New()
	all := io.MultiWriter(w, sum)
	if _, err := io.WriteString(all, backupMagic); err != nil {
		return err
	}
	out := wire.NewConn(struct {
		io.Reader
		io.Writer
	}{nil, all}, codec)
	if err := out.Send(backupHead{backupFormat, schema, info.Tenant, info.UnixMS}); err != nil {
		return err
	}
	q := &backupRequest{}
	for {
		r, err := wire.Ask(ctx, s.whole(), q)
		if err != nil {
			return err
		}
		info.count(r.Pairs)
		if err := out.Send(backupPart{Pairs: r.Pairs}); err != nil {
			return err
		}
		if !r.More {
			return out.Send(backupPart{End: info, Sum: sum.Sum(nil)})
		}
		q.Snapshot, q.Page = r.Snapshot, q.Page+1
	}
}

// readBackup reads a whole backup, gives each page of it to visit, and checks
// that it is complete. Whatever r holds, it allocates little more than a page.
func readBackup(r io.Reader, visit func(pairs []pair) error) (BackupInfo, error) {
	var have BackupInfo
	codec, err := audit.NewCodec()
	if err != nil {
		return have, err
	}
	sum := blake3.New()
	all := io.TeeReader(r, sum)
	magic := make([]byte, len(backupMagic))
	if _, err := io.ReadFull(all, magic); err != nil || string(magic) != backupMagic {
		return have, fmt.Errorf("%w: it does not begin as one", ErrBackup)
	}
	in := wire.NewConn(struct {
		io.Reader
		io.Writer
	}{all, nil}, codec)
	var head backupHead
	if err := receive(in, &head); err != nil {
		return have, err
	}
	if head.Format != backupFormat || head.Schema > schema {
		return have, fmt.Errorf("%w: it was made by another version of rlp (format %d, schema %d)", ErrBackup, head.Format,
			head.Schema)
	}
	have.Tenant, have.UnixMS = head.Tenant, head.UnixMS
	for {
		before := sum.Sum(nil)
		var part backupPart
		if err := receive(in, &part); err != nil {
			return have, err
		}
		if part.End == nil {
			have.count(part.Pairs)
			if err := visit(part.Pairs); err != nil {
				return have, err
			}
			continue
		}
		if *part.End != have || !bytes.Equal(part.Sum, before) || len(part.Pairs) > 0 {
			return have, fmt.Errorf("%w: what it holds is not what was written", ErrBackup)
		}
		if n, err := io.ReadFull(r, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			return have, fmt.Errorf("%w: something follows its end", ErrBackup)
		}
		return have, nil
	}
}

// receive reads a message of a backup.
func receive(in *wire.Conn, into any) error {
	err := in.Receive(into)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut", ErrBackup)
	}
	if errors.Is(err, wire.ErrMalformed) {
		return fmt.Errorf("%w: %w", ErrBackup, err)
	}
	return err
}

// Restore puts what a backup holds into the store. All of r is checked before
// anything changes. A store that has values is left alone, unless replace says
// that they may go; they get revisions that were never given out. An audit log
// that has records is never touched: then the backup's stays out. A restore
// that is interrupted leaves a store that answers nothing but another one.
func (s *Store) Restore(ctx context.Context, r io.ReadSeeker, replace bool) (BackupInfo, error) {
	info, err := s.restoreFrom(ctx, r, replace)
	if err != nil {
		return info, fmt.Errorf("restoring the store: %w", err)
	}
	return info, nil
}

func (s *Store) restoreFrom(ctx context.Context, r io.ReadSeeker, replace bool) (BackupInfo, error) {
	codec, err := audit.NewCodec()
	if err != nil {
		return BackupInfo{}, err
	}
	info, err := readBackup(r, func(pairs []pair) error {
		for _, p := range pairs {
			if err := checkPair(codec, p); err != nil {
				return unusable(err)
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return info, err
	}
	if info.Tenant != s.opt.Tenant {
		return info, fmt.Errorf("%w: it is one of tenant %s", ErrBackup, info.Tenant)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return info, err
	}
	begun, err := wire.Ask(ctx, s.whole(), &restoreRequest{Stage: restoreBegin, Replace: replace})
	if err != nil {
		return info, err
	}
	info, err = readBackup(r, func(pairs []pair) error {
		_, err := wire.Ask(ctx, s.whole(), &restoreRequest{Stage: restorePage, Pairs: pairs})
		if errors.Is(err, wire.ErrInvalid) {
			return unusable(err)
		}
		return err
	})
	if err != nil {
		return info, err
	}
	info.LogKept = begun.LogKept
	if _, err = wire.Ask(ctx, s.whole(), &restoreRequest{Stage: restoreEnd}); err == nil {
		err = s.layout.place.Found()
	}
	return info, err
}
