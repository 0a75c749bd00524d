package compose

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/record/runlog"
	"runloop.dev/rlp/launcher/run"
)

// There is one rule for what cannot be closed: a record that may be missing is the
// end of the run, and anything else a warning to whoever reads the report, the log or
// the terminal. Everything is closed, whatever else was not, and the last first.
//
//rlp:holds D2
func TestOneRuleForWhatCannotBeClosed(t *testing.T) {
	for _, c := range []struct {
		name          string
		other, store  bool // cannot be closed
		log           bool // cannot be written
		outcome, told string
	}{
		{"nothing", false, false, false, "ok 0", ""},
		{"a component", true, false, false, "ok 0", "closing the run: the lane is busy"},
		{"a store", false, true, false, "audit_failed 74", ""},
		{"the log", false, false, true, "audit_failed 74", ""},
		{"all", true, true, true, "audit_failed 74", "closing the run: the lane is busy"},
	} {
		h, err := readerOf(filepath.Join(t.TempDir(), "home")).Home()
		if err != nil {
			t.Fatal(err)
		}
		if c.log { // nobody appends to a folder
			now := time.Now().UTC()
			for day := range 2 { // it may become midnight
				name := now.AddDate(0, 0, day).Format(time.DateOnly) + ".jsonl"
				if err := os.MkdirAll(filepath.Join(h.Log(), name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
		var closed, warned []string
		closer := func(name string, fails bool, err error) func() error {
			return func() error {
				closed = append(closed, name)
				if fails {
					return err
				}
				return nil
			}
		}
		busy, full := errors.New("the lane is busy"), errors.New("the disk is full")
		e := &equipment{
			log:  runlog.Open(h, config.Log{}, time.Now, nil),
			warn: func(format string, args ...any) { warned = append(warned, fmt.Sprintf(format, args...)) },
			others: []func() error{
				closer("library", false, nil), closer("lane", c.other, busy),
			},
			stores: []func() error{closer("clock", false, nil), closer("store", c.store, full)},
		}
		e.log.Warn("a line")
		report := &run.Report{Outcome: run.OK}
		e.close(report)
		if got := fmt.Sprintf("%s %d", report.Outcome, report.ExitCode); got != c.outcome {
			t.Errorf("%s: %s, want %s: %s", c.name, got, c.outcome, report.Message)
		}
		if want := []string{"lane", "library", "store", "clock"}; !slices.Equal(closed, want) {
			t.Errorf("%s: closed %q, want %q", c.name, closed, want)
		}
		if told := strings.Join(report.Warnings, "\n"); told != c.told || strings.Join(warned, "\n") != c.told {
			t.Errorf("%s: the report warns %q, whoever asked is told %q", c.name, told, warned)
		}
		for text, said := range map[string]bool{"disk is full": c.store, "writing the log": c.log} {
			if strings.Contains(report.Message, text) != said {
				t.Errorf("%s: %q", c.name, report.Message)
			}
		}
	}
}
