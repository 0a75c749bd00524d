package auditlog

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/record/runlog"
	"runloop.dev/rlp/launcher/run"
)

// A toldRun is a run as the lines of log/ tell of it, which are written when its
// beginning and its end are in its journal.
type toldRun struct {
	id, file string    // file: below the tenant's folder, for what is recorded says no place of this host
	last     time.Time // its newest line
	outcome  string    // "": log/ has no end of it
	logged   string    // what the audit log says
}

func (r *toldRun) text() string {
	what := fmt.Sprintf("run %s of %s is in %s", r.id, r.last.UTC().Format(time.RFC3339), r.file)
	if r.logged == "" {
		return what + ", and the audit log has no record of it"
	}
	return fmt.Sprintf("%s, where it ended %q, and the audit log says %q", what, r.outcome, r.logged)
}

// maxLogLine bounds a line of log/ that is looked at.
const maxLogLine = 16 << 20

// toldRuns are the runs that the files of a folder tell of, by id. A run that
// could not be recorded has said so itself.
func toldRuns(dir string) ([]toldRun, error) {
	files, err := runlog.Files(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	runs := map[string]toldRun{}
	for _, f := range files {
		err = errors.Join(err, readTold(dir, f, runs))
	}
	maps.DeleteFunc(runs, func(_ string, r toldRun) bool { return r.outcome == string(run.AuditFailed) })
	list := slices.SortedFunc(maps.Values(runs), func(a, b toldRun) int { return cmp.Compare(a.id, b.id) })
	return list, err
}

// readTold adds the runs of one file.
func readTold(dir, name string, runs map[string]toldRun) error {
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was too old
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 64<<10), maxLogLine)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"msg":"run_start"`)) && !bytes.Contains(lines.Bytes(),
			[]byte(`"msg":"run_end"`)) {
			continue
		}
		var l struct {
			Time    time.Time `json:"time"`
			Msg     string    `json:"msg"`
			RunID   string    `json:"run_id"`
			Outcome string    `json:"outcome"`
		}
		if strictjson.Unmarshal(lines.Bytes(), &l, strictjson.UnknownFields) != nil || l.Msg != "run_start" &&
			l.Msg != "run_end" || l.RunID == "" {
			continue // the process died within it, or it is no such line
		}
		runs[l.RunID] = toldRun{id: l.RunID, file: filepath.Join(filepath.Base(dir), name), last: l.Time, outcome: l.Outcome}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}
