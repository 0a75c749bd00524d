package auditlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

// An outsideFile is a file of checkpoints that is kept outside of this host.
type outsideFile struct {
	ask.Outside
	heads []kb.Head
}

// maxOutside bounds a file that is read whole.
const maxOutside = 256 << 20

// readOutside reads a file that an operator names.
func readOutside(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, compose.InputErr(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxOutside+1))
	if err == nil && len(data) > maxOutside {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxOutside>>20)
	}
	if err != nil {
		return nil, compose.InputErr(err)
	}
	return data, nil
}

// outside reads the checkpoints that a file has of this log, by size, and wants it
// to have some.
func (v *verification) outside(name string, key *evidence.PublicKey, named bool) (*outsideFile, error) {
	o, err := v.outsideIfAny(name, key, named)
	if err == nil && v.OK && o.Checkpoints == 0 {
		err = v.wanting(o)
	}
	return o, err
}

// outsideIfAny reads the checkpoints that a file has of this log. One that says it is of this log and is not signed by
// its key is a fault, and so is one
// by another key for the same tenant, unless the operator named the key: whoever
// replaces the key of a log makes it another log.
func (v *verification) outsideIfAny(name string, key *evidence.PublicKey, named bool) (*outsideFile, error) {
	data, err := readOutside(name)
	if err != nil {
		return nil, err
	}
	o := &outsideFile{Outside: ask.Outside{File: name}}
	v.Outside = append(v.Outside, &o.Outside)
	if key == nil {
		v.fault(evidenceFault, 0, fmt.Sprintf("%s cannot be held against a log that has no key", name))
		return o, nil
	}
	for _, n := range evidence.SplitNotes(data) {
		if n.Torn != "" {
			o.Torn = append(o.Torn, fmt.Sprintf("line %d: %s", n.Line, n.Torn))
			continue
		}
		c, err := key.Open(n.Text)
		switch {
		case err == nil:
			o.heads = append(o.heads, kb.Head{Size: c.Size, Root: c.Root})
		case errors.Is(err, evidence.ErrOther) && (named || path.Base(c.Origin) != path.Base(key.Origin())):
			o.Others++
		default:
			v.fault(evidenceFault, 0, fmt.Sprintf("%s, line %d: %v%s", name, n.Line, err, otherHint(err)))
			return o, nil
		}
	}
	v.held(o)
	return o, nil
}

// held counts what a file has.
func (v *verification) held(o *outsideFile) {
	slices.SortStableFunc(o.heads, func(a, b kb.Head) int { return cmp.Compare(a.Size, b.Size) })
	o.heads = slices.Compact(o.heads)
	o.Checkpoints = len(o.heads)
	if o.Checkpoints > 0 {
		o.Newest = o.heads[o.Checkpoints-1].Size
	}
	for i := 1; i < len(o.heads); i++ {
		if o.heads[i].Size == o.heads[i-1].Size && o.heads[i].Root != o.heads[i-1].Root {
			v.fault(kb.FaultRewritten, 1, fmt.Sprintf("%s has two logs of %d records, both signed", o.File, o.heads[i].Size))
			v.Fault.UpTo = o.heads[i].Size
			return
		}
	}
}

// wanting says what a file is that has no checkpoint of this log.
func (v *verification) wanting(o *outsideFile) error {
	if o.Others == 0 {
		return compose.InputErr(fmt.Errorf("%s has no checkpoint%s; rlp audit checkpoint prints one", o.File,
			o.Rest()))
	}
	v.fault(evidenceFault, 0, fmt.Sprintf("%s has checkpoints of other logs alone", o.File))
	return nil
}

func otherHint(err error) string {
	if errors.Is(err, evidence.ErrOther) {
		return "; the key of this log was replaced, or the file is another host's (--key names the log that is meant)"
	}
	return ""
}
