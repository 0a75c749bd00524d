package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/record/audit"
)

// tempPrefix begins the name of a journal that is not yet one.
const tempPrefix = ".new-"

// ValidRun reports whether id can name a run: letters, digits, "_" and "-", at
// most 64, not beginning with "-".
func ValidRun(id string) bool {
	if id == "" || len(id) > 64 || id[0] == '-' {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// Create makes the journal of a run. The file appears under its name whole,
// locked and with its head in it; a second journal of the same run is an error
// that wraps [fs.ErrExist].
func Create(o Options) (*Journal, error) {
	j, err := create(o)
	if err != nil {
		return nil, fmt.Errorf("making the journal of run %q: %w", o.Head.RunID, err)
	}
	return j, nil
}

func create(o Options) (*Journal, error) {
	if !ValidRun(o.Head.RunID) {
		return nil, errors.New("the run id is not one")
	}
	if o.Disk == nil {
		o.Disk = systemDisk{}
	}
	if err := makeDir(o.Dir, o.Disk); err != nil {
		return nil, err
	}
	key, err := loadSecret(o.Dir, o.Disk)
	if err != nil {
		return nil, err
	}
	codec, err := audit.NewCodec()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(o.Dir, tempPrefix) // 0600, O_EXCL
	if err != nil {
		return nil, err
	}
	j := &Journal{
		file: f, path: filepath.Join(o.Dir, o.Head.RunID), max: o.MaxBytes, codec: codec,
		names: map[string]audit.Name{}, secret: key, clock: o.Clock, disk: o.Disk,
	}
	j.seed = key.seed(o.Head.RunID)
	j.most, j.grow.small = o.MaxDecisions, o.Synced
	if j.most == 0 {
		j.most = MaxDecisions
	}
	if o.Group != nil {
		j.group, j.seat.wake = o.Group, make(chan bool, 1)
	}
	if j.max == 0 {
		j.max = MaxBytes
	}
	if err := j.begin(o.Head); err != nil {
		return nil, errors.Join(err, unmap(j.win), os.Remove(f.Name()), f.Close())
	}
	if j.clock == nil {
		j.own = NewClock(nil)
		j.clock = j.own
	}
	if o.Observe != nil {
		j.obs = newObserver(j, o.Observe, o.Events)
	}
	return j, nil
}

// Try makes in dir what [Create] makes first, and removes it: why no run could
// have a journal there now. What it leaves when it is killed, [Sweep] removes.
func Try(dir string) error {
	if err := makeDir(dir, systemDisk{}); err != nil {
		return fmt.Errorf("no journal can be made: %w", err)
	}
	if _, err := loadSecret(dir, systemDisk{}); err != nil {
		return fmt.Errorf("no journal can be made: %w", err)
	}
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return fmt.Errorf("no journal can be made: %w", err)
	}
	_, err = f.WriteString("x") // what a quota refuses too
	if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("no journal can be made: %w", err)
	}
	return nil
}

// begin locks the new file, gives it its head and then its name.
func (j *Journal) begin(head audit.Head) error {
	if err := lockWriter(j.file); err != nil {
		return err
	}
	body, err := j.codec.Marshal(fileHead{formatVersion, head})
	if err != nil {
		return err
	}
	if err := j.slow(kindHead, pad8(len(body))-len(body), body, reserve); err != nil {
		return err
	}
	return renameNew(j.file.Name(), j.path)
}

// makeDir makes a directory for its owner alone, and refuses one that others can enter.
func makeDir(dir string, disk Disk) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := keepName(disk, dir); err != nil {
			return err
		}
		info, err = os.Lstat(dir)
	}
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s must be open to its owner alone (mode 0700, it has %#o)", dir, info.Mode().Perm())
	}
	return nil
}
