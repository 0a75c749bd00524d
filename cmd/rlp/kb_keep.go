package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/source"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/auditlog"
)

func (a *app) kbVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Check every value and both indexes", Args: cobra.NoArgs,
		Long: `Verify compares each value with the digest that was stored with it, and both
indexes with the values. It names the first key, or file of the store, that is
not as it should be, and exits 1.`,
		RunE: func(c *cobra.Command, _ []string) error {
			err := a.withKB(c.Context(), kb.Origin{}, func(s *kbSession) error {
				v, err := s.store.Verify(c.Context())
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"ok": true, "values": v.Values, "bytes": v.Bytes, "index_entries": v.Postings})
				}
				if !a.quiet {
					fmt.Fprintf(a.stdout, "ok: %d values, %d bytes, %d index entries\n", v.Values, v.Bytes, v.Postings)
				}
				return nil
			})
			if errors.Is(err, kb.ErrDamaged) { // also when that is why it cannot be opened
				return &statusError{Status: launcher.StatusFinding, Err: err}
			}
			return err
		},
	}
}

func (a *app) kbBackupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write everything that the store holds at one moment to a new file",
		Args: exactly("a FILE"),
		Long: `Backup writes values, who wrote them, and the audit log, as they are at one
moment, to a file that must not be there yet. Personal data is in it unmasked, so
the file is readable by you alone. Running agents are not disturbed.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.reader().OwnPaths(args[0]); err != nil {
				return err
			}
			return a.withKB(c.Context(), kb.Origin{}, func(s *kbSession) error {
				info, err := writeBackup(c.Context(), s.store, args[0])
				if err != nil {
					return err
				}
				return a.printBackup(args[0], "backed up", info, "")
			})
		},
	}
}

// writeBackup writes a backup beside its place and puts it there when it is
// whole, so that a file of that name is never half of one.
func writeBackup(ctx context.Context, s *kb.Store, path string) (info kb.BackupInfo, err error) {
	if _, err := os.Lstat(path); err == nil {
		return info, usagef("%s is there already; choose another name", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".rlp-backup-*") // for its owner alone
	if err != nil {
		return info, inputErr(err)
	}
	defer os.Remove(f.Name())
	info, err = s.Backup(ctx, f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return info, err
	}
	if err := os.Link(f.Name(), path); err != nil { // never over another file
		return info, inputErr(err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return info, err
	}
	return info, errors.Join(dir.Sync(), dir.Close())
}

func (a *app) kbRestoreCommand() *cobra.Command {
	var replace bool
	c := &cobra.Command{
		Use: "restore FILE", Short: "Put what a backup holds into the store", Args: exactly("a FILE"),
		Long: `Restore checks the whole file before it changes anything. A store that holds
values is left alone unless you say --replace. An audit log that has records is
never changed: then the backup's stays out. The log's key (audit.key) is in no
backup: copy it from the home that was backed up before the first launch.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.reader().OwnPaths(args[0]); err != nil {
				return err
			}
			f, err := source.Open(args[0])
			if err != nil {
				return inputErr(err)
			}
			defer f.Close()
			return a.withKB(c.Context(), kb.Origin{}, func(s *kbSession) error {
				info, err := s.store.Restore(c.Context(), f, replace)
				if errors.Is(err, kb.ErrNotEmpty) {
					return usagef("%w; --replace puts the backup in their place", err)
				}
				if err != nil {
					return err
				}
				key, err := auditlog.MissingKey(c.Context(), s.home, s.store, info)
				if err != nil {
					return err
				}
				return a.printBackup(args[0], "restored", info, key)
			})
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "take away the values that are there")
	return c
}

func (a *app) printBackup(path, what string, info kb.BackupInfo, missingKey string) error {
	if a.json {
		document := map[string]any{
			"file": path, "tenant_id": info.Tenant, "time": stamp(info.UnixMS), "values": info.Values, "records": info.Records,
			"log_kept": info.LogKept,
		}
		if missingKey != "" {
			document["missing_key"] = missingKey
		}
		return a.printJSON(document)
	}
	if a.quiet {
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: %d values and %d records %s\n", path, info.Values, info.Records, what)
	if info.LogKept {
		fmt.Fprintln(a.stdout, "the audit log of this store was kept; the backup's records were left out")
	}
	if missingKey != "" {
		fmt.Fprintln(a.stdout, bringKey(missingKey))
	}
	return nil
}

// bringKey is what whoever restored a log without its key is told.
func bringKey(path string) string {
	return fmt.Sprintf("its key is in no backup: before the first launch copy %s and %s from the home that was backed "+
		"up into %s, or the log will not verify",
		evidence.KeyFile, evidence.PublicFile, printable(filepath.Dir(path)))
}
