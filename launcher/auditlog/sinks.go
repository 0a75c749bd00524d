package auditlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

// sinks are the checkpoints in the files of [audit] publish, as far as they can
// be read from here: what was told is held against the log without being asked for.
func (v *verification) sinks(l *Log, key *evidence.PublicKey, named bool) ([]kb.Head, error) {
	var heads []kb.Head
	for _, sink := range l.config.Audit.Publish {
		path, ok := strings.CutPrefix(sink, "file:")
		if !ok || v.read(path) != nil {
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue // who was told of more than there is says so below
		}
		o, err := v.outsideIfAny(path, key, named) // which may be of others alone, as long as it was told nothing
		if errors.Is(err, fs.ErrPermission) {
			continue // it may be appended to and not read
		}
		if err != nil || !v.OK {
			return nil, err
		}
		heads = append(heads, o.heads...)
	}
	return heads, nil
}

// read is a file of checkpoints that was read already.
func (v *verification) read(path string) *ask.Outside {
	i := slices.IndexFunc(v.Outside, func(o *ask.Outside) bool { return o.File == path })
	if i < 0 {
		return nil
	}
	return v.Outside[i]
}

// told adds how far each sink was told of the log. A log that is shorter than
// what it said of itself was cut, and so was a file that does not have what it
// was told: nothing else might show that the log was written anew.
func (v *verification) told(l *Log, whole bool) error {
	if len(l.config.Audit.Publish) == 0 || v.Origin == "" {
		return nil
	}
	p, err := compose.Publisher(l.home, l.config, nil)
	if err != nil {
		return nil //nolint:nilerr // without a signing key nobody was told, and the key is judged above
	}
	list, err := p.Told()
	if err != nil {
		return compose.InputErr(err)
	}
	v.Published = list
	for _, t := range list {
		if v.OK && v.checked && t.Size > v.Size {
			v.fault(kb.FaultTruncated, v.Size+1, fmt.Sprintf("%s was told of %d records, and the log has %d", t.Sink, t.Size,
				v.Size))
		}
	}
	for _, t := range list {
		if why := v.lost(t); whole && v.OK && v.checked && why != "" {
			v.fault(evidenceFault, 0, fmt.Sprintf("%s was told of %d records, and %s; bring it back, or name where it is now "+
				"with --checkpoint", t.Sink, t.Size, why))
		}
	}
	return nil
}

// lost says why what a file was told is not there; "": it is, in that file or in
// another that was read, or it cannot be looked at from here.
func (v *verification) lost(t evidence.Told) string {
	path, ok := strings.CutPrefix(t.Sink, "file:")
	if !ok || t.Size == 0 || slices.ContainsFunc(v.Outside, func(o *ask.Outside) bool { return o.Newest >= t.Size }) {
		return ""
	}
	if o := v.read(path); o != nil {
		return fmt.Sprintf("its newest checkpoint is of %d", o.Newest)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "the file is gone"
	case err != nil:
		return ""
	case !info.Mode().IsRegular():
		return "it is no regular file"
	case info.Size() == 0:
		return "the file is empty"
	}
	return ""
}
