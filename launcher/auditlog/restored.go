package auditlog

import (
	"context"
	"path/filepath"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
)

// MissingKey is where the key of a log that was restored belongs, "" when it is
// there or the log was never signed. A backup has no key: what is signed before
// it is brought is signed by another, and the log never verifies again.
func MissingKey(ctx context.Context, h home.Home, s *kb.Store, info kb.BackupInfo) (string, error) {
	if info.LogKept {
		return "", nil
	}
	for c, err := range s.Checkpoints(ctx, 0) {
		if err != nil {
			return "", err
		}
		if Signs(h, c) != nil {
			return filepath.Join(h.Root(), evidence.KeyFile), nil
		}
		return "", nil
	}
	return "", nil
}

// Signs is nil when the tenant's key is the one that signed a checkpoint.
func Signs(h home.Home, c kb.Checkpoint) error {
	key, err := evidence.ReadKey(h.Root(), h.Tenant())
	if err == nil {
		_, _, err = key.Public().OpenNote(c.Note)
	}
	return err
}
