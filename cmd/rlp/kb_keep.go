package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/source"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/knowledge"
)

func kbVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Check every value and both indexes", Args: cobra.NoArgs,
		Long: `Verify compares each value with the digest that was stored with it, and both
indexes with the values. It names the first key, or file of the store, that is
not as it should be, and exits 1.`,
		RunE: func(c *cobra.Command, _ []string) error {
			err := a.withKB(c.Context(), kb.Origin{}, func(s *knowledge.Session) error {
				v, err := s.Verify(c.Context())
				if err != nil {
					return err
				}
				return answer(a, map[string]any{"ok": true, "values": v.Values, "bytes": v.Bytes, "index_entries": v.Postings},
					"ok: %d values, %d bytes, %d index entries", v.Values, v.Bytes, v.Postings)
			})
			if errors.Is(err, kb.ErrDamaged) { // also when that is why it cannot be opened
				return &statusError{Status: launcher.StatusFinding, Err: err}
			}
			return err
		},
	}
}

func kbBackupCommand(a *app) *cobra.Command {
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
			return a.withKB(c.Context(), kb.Origin{}, func(s *knowledge.Session) error {
				b, err := s.WriteBackup(c.Context(), args[0])
				if err != nil {
					return err
				}
				return printBackup(a, b, "backed up")
			})
		},
	}
}

func kbRestoreCommand(a *app) *cobra.Command {
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
			return a.withKB(c.Context(), kb.Origin{}, func(s *knowledge.Session) error {
				b, err := s.RestoreFrom(c.Context(), f, replace)
				if err != nil {
					return err
				}
				return printBackup(a, b, "restored")
			})
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "take away the values that are there")
	return c
}

func printBackup(a *app, b *knowledge.Backup, what string) error {
	if a.json {
		return a.printJSON(b)
	}
	if a.quiet {
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: %s and %s %s\n", b.File, counted(b.Values, "value"), counted(b.Records, "record"), what)
	if b.LogKept {
		fmt.Fprintln(a.stdout, "the audit log of this store was kept; the backup's records were left out")
	}
	if b.MissingKey != "" {
		fmt.Fprintln(a.stdout, bringKey(b.MissingKey))
	}
	return nil
}

// bringKey is what whoever restored a log without its key is told.
func bringKey(path string) string {
	return fmt.Sprintf("its key is in no backup: before the first launch copy %s and %s from the home that was backed "+
		"up into %s, or the log will not verify",
		evidence.KeyFile, evidence.PublicFile, printable(filepath.Dir(path)))
}
