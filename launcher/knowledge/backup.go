package knowledge

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/compose"
)

// WriteBackup writes a backup beside its place and puts it there when it is
// whole, so that a file of that name is never half of one.
func (s *Session) WriteBackup(ctx context.Context, path string) (*Backup, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, compose.Usagef("%s is there already; choose another name", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".rlp-backup-*") // for its owner alone
	if err != nil {
		return nil, compose.InputErr(err)
	}
	defer os.Remove(f.Name())
	info, err := s.Backup(ctx, f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), path); err != nil { // never over another file
		return nil, compose.InputErr(err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return backupOf(path, info), errors.Join(dir.Sync(), dir.Close())
}

// RestoreFrom puts what the backup f holds into the store.
func (s *Session) RestoreFrom(ctx context.Context, f *os.File, replace bool) (*Backup, error) {
	info, err := s.Restore(ctx, f, replace)
	if errors.Is(err, kb.ErrNotEmpty) {
		return nil, compose.Usagef("%w; --replace puts the backup in their place", err)
	}
	if err != nil {
		return nil, err
	}
	b := backupOf(f.Name(), info)
	b.MissingKey, err = auditlog.MissingKey(ctx, s.home, s.Store, info)
	return b, err
}

// A Backup is what was written to a file, or put into the store from it.
type Backup struct {
	File       string `json:"file"`
	LogKept    bool   `json:"log_kept"`
	MissingKey string `json:"missing_key,omitempty"` // where the key of the log belongs that was restored
	Records    int    `json:"records"`
	Tenant     string `json:"tenant_id"`
	Time       string `json:"time"`
	Values     int    `json:"values"`
}

func backupOf(path string, info kb.BackupInfo) *Backup {
	return &Backup{
		File: path, LogKept: info.LogKept, Records: info.Records, Tenant: info.Tenant, Time: stamp(info.UnixMS),
		Values: info.Values,
	}
}
