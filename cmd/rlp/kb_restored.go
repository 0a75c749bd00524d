package main

import (
	"context"
	"fmt"
	"path/filepath"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
)

// missingKey is where the key of a log that was restored belongs, "" when it is
// there or the log was never signed. A backup has no key: what is signed before
// it is brought is signed by another, and the log never verifies again.
func (s *kbSession) missingKey(ctx context.Context, info kb.BackupInfo) (string, error) {
	if info.LogKept {
		return "", nil
	}
	h, err := s.home()
	if err != nil {
		return "", err
	}
	for c, err := range s.store.Checkpoints(ctx, 0) {
		if err != nil {
			return "", err
		}
		if signs(h, c) != nil {
			return filepath.Join(h.Root(), evidence.KeyFile), nil
		}
		return "", nil
	}
	return "", nil
}

// signs is nil when the tenant's key is the one that signed a checkpoint.
func signs(h home.Home, c kb.Checkpoint) error {
	key, err := evidence.ReadKey(h.Root(), h.Tenant())
	if err == nil {
		_, _, err = key.Public().OpenNote(c.Note)
	}
	return err
}

// bringKey is what whoever restored a log without its key is told.
func bringKey(path string) string {
	return fmt.Sprintf("its key is in no backup: before the first launch copy %s and %s from the home that was backed "+
		"up into %s, or the log will not verify",
		evidence.KeyFile, evidence.PublicFile, printable(filepath.Dir(path)))
}
