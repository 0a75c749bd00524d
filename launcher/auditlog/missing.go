package auditlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
)

// faultMissing is the kind of what is known from elsewhere to have been recorded,
// or from the log itself, and is not in the log.
const faultMissing kb.Fault = "missing"

// missing compares the log, which is in itself as it was recorded or not, with
// what else is known of it. Of one run, and of what came since, the log's own
// records alone are looked at.
func (v *verification) missing(ctx context.Context, l *Log, f Check) error {
	for _, found := range v.Findings {
		v.lacks("record %d, of run %s: %s", found.Seq, found.Run, found.Message)
	}
	if more := v.found - len(v.Findings); more > 0 {
		v.lacks("%d records more say that something is missing", more)
	}
	if f.Run == "" && f.Since == "" {
		v.unreadJournals(l)
		v.keyIsGone(l, f)
		if err := v.lostRuns(ctx, l); err != nil {
			return err
		}
	}
	if v.OK && len(v.Missing) > 0 {
		v.fault(faultMissing, 0, v.Missing[0])
	}
	return nil
}

func (v *verification) lacks(format string, args ...any) {
	v.Missing = append(v.Missing, fmt.Sprintf(format, args...))
}

// unreadJournals are what waits and could not be taken in, and what was put aside.
func (v *verification) unreadJournals(l *Log) {
	said := func(text string) bool {
		return slices.ContainsFunc(v.Findings, func(f kb.Finding) bool { return strings.Contains(text, f.Message) })
	}
	for _, d := range l.damaged {
		if !said(d) {
			v.lacks("taking in journals: %s", d)
		}
	}
	for _, path := range l.aside {
		run := strings.Split(filepath.Base(path), ".")[0]
		if !slices.ContainsFunc(v.Findings, func(f kb.Finding) bool {
			return f.Run == run || strings.Contains(f.Message,
				run)
		}) {
			v.lacks("%s was put aside as damaged", path)
		}
	}
}

// keyIsGone tells of a public key that lies there without its other half.
func (v *verification) keyIsGone(l *Log, f Check) {
	if f.Key != "" || v.Origin == "" {
		return
	}
	path := filepath.Join(l.home.Root(), evidence.KeyFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		v.lacks("%s is gone, and %s of it is there: what is recorded now is signed by nobody; bring it back, or name the "+
			"public key with --key where this is a copy", path, evidence.PublicFile)
	}
}

// maxLost is how many runs that are not in the log are named.
const maxLost = 100

// lostRuns are the runs that log/ tells of and the log does not, or otherwise.
func (v *verification) lostRuns(ctx context.Context, l *Log) error {
	told, err := toldRuns(l.home.Log())
	if err != nil {
		v.lacks("%v", err)
	}
	if v.PrunedAt != nil { // what ended before may be gone
		told = slices.DeleteFunc(told, func(r toldRun) bool { return r.last.Before(*v.PrunedAt) })
	}
	lost, err := l.unlike(ctx, told)
	if err == nil && len(lost) > 0 { // their journals may have been written meanwhile
		if _, err = l.Ingest(ctx); err == nil {
			lost, err = l.unlike(ctx, lost)
		}
	}
	if errors.Is(err, kb.ErrDamaged) && !v.OK {
		return nil // which is what was found
	}
	if err != nil {
		return err
	}
	for i, r := range lost {
		if i == maxLost {
			v.lacks("%d runs more that log/ tells of are not in the log as it tells of them", len(lost)-i)
			break
		}
		v.lacks("%s", r.text())
		// else it may be read later
		if _, err := os.Lstat(filepath.Join(l.home.Journal(), r.id)); errors.Is(err, fs.ErrNotExist) {
			v.unlike = append(v.unlike, r.text())
		}
	}
	return nil
}

// unlike are those of runs that are not in the log as they are told of.
func (l *Log) unlike(ctx context.Context, runs []toldRun) ([]toldRun, error) {
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = r.id
	}
	outcomes, err := l.Outcomes(ctx, names)
	if err != nil {
		return nil, err
	}
	var list []toldRun
	for i, r := range runs {
		if r.logged = outcomes[i]; r.logged == "" || r.outcome != "" && r.outcome != r.logged {
			list = append(list, r)
		}
	}
	return list, nil
}

// remember records what was found, so that it stays told when it can be seen no
// more. What may be mended, such as a key that is not here, is not recorded.
func (v *verification) remember(ctx context.Context, l *Log, f Check) error {
	if f.Key != "" || l.copied {
		return nil
	}
	var errs []error
	if v.Fault != nil && v.Fault.Kind != evidenceFault && v.Fault.Kind != faultMissing &&
		v.Fault.Kind != kb.FaultUnsealed {
		errs = append(errs, l.Record(ctx, v.Fault.String()))
	}
	for _, text := range v.unlike {
		errs = append(errs, l.Record(ctx, text))
	}
	return errors.Join(errs...)
}
