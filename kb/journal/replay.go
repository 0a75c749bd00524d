package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Replay gives the journals in dir what group files of processes that are gone
// have of them and they have not: after the power was lost, a group file may
// hold what was synced in it alone. done says that nothing more of a run is
// wanted, since all of it was taken elsewhere. damage is about journals that
// cannot be made whole any more; their group files are put aside. After an error
// journals may still lack something: none should be taken for ended.
// Who replays must be the only one that reads journals to their ends.
func Replay(dir string, done func(run string) (bool, error)) (damage []error, err error) {
	names, err := groupNames(dir)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	key, err := readSecret(filepath.Join(dir, secretName))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		found, err := replay(dir, name, key.seed(groupSeed), done)
		if err != nil {
			return damage, fmt.Errorf("completing journals from %s: %w", name, err)
		}
		damage = append(damage, found...)
	}
	return damage, nil
}

func groupNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing journals: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing journals: %w", err)
	}
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, groupPrefix) }), nil
}

// replay completes the journals that one group file stands for, and removes it.
func replay(dir, name string, seed uint64, done func(run string) (bool, error)) (damage []error, err error) {
	path := filepath.Join(dir, name)
	f, data, err := openGroup(path)
	if errors.Is(err, errNoGroup) {
		// Nothing of a journal is in it. What cannot be put aside stays, and is told each time.
		_, aside := Quarantine(dir, name)
		return []error{errors.Join(fmt.Errorf("%s: %w", path, err), aside)}, nil
	}
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	disk := systemDisk{}
	for run, pieces := range piecesOf(data, seed) {
		over, err := done(run)
		if err == nil && !over {
			err = complete(disk, dir, run, pieces)
		}
		var lost *lostError
		if errors.As(err, &lost) {
			damage = append(damage, err)
		} else if err != nil {
			return damage, fmt.Errorf("run %s: %w", run, err)
		}
	}
	if err := disk.SyncDir(dir); err != nil {
		return damage, err
	}
	if len(damage) > 0 {
		_, err := Quarantine(dir, name)
		return damage, err
	}
	return nil, os.Remove(path)
}

var errNoGroup = errors.New("it is named like a group file and is none")

// openGroup opens and reads the group file of a process that is gone; it is nil
// when the process lives: its journals have all of it.
func openGroup(path string) (*os.File, []byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|oNoFollow|oNonBlock, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case errors.Is(err, unix.EISDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return nil, nil, fmt.Errorf("%w: %w", errNoGroup, err)
	case err != nil:
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > 2*maxGroup) {
		err = errNoGroup
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if ours, err := flock(f, unix.LOCK_EX); err != nil || !ours {
		return nil, nil, errors.Join(err, f.Close())
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, data, nil
}

// A lostError says that a journal is not there, and its group file has not all of it.
type lostError struct {
	run  string
	from int64
}

func (e *lostError) Error() string {
	return fmt.Sprintf("the journal of run %s is gone, of which the first %d bytes were on the disk", e.run, e.from)
}

// A piece is bytes of a journal and where they belong.
type piece struct {
	at   int64
	data []byte
}

// piecesOf are the pieces in a group file, by run, in order.
func piecesOf(p []byte, seed uint64) map[string][]piece {
	all := map[string][]piece{}
	epoch := uint64(0)
	for first := true; len(p) >= pieceHeader; first = false {
		commit, word := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		size, head := uint64(uint32(commit)), word&^0xffffffff
		if size < pieceHeader || size > uint64(len(p)) || size%8 != 0 || !first && commit>>32 != epoch {
			break
		}
		if sum(seed, commit, head, p[16:size]) != uint32(word) {
			break
		}
		epoch = commit >> 32
		named, n := head>>32, binary.LittleEndian.Uint64(p[24:])
		from := pieceHeader + uint64(pad8(int(named)))
		if named > 64 || n > size || from+n != size {
			break
		}
		if run := string(p[pieceHeader : pieceHeader+named]); ValidRun(run) {
			at := binary.LittleEndian.Uint64(p[16:])
			all[run] = append(all[run], piece{int64(at & (1<<62 - 1)), p[from:size]})
		}
		p = p[size:]
	}
	return all
}

// complete sees to it that the journal of run has the pieces.
func complete(disk Disk, dir, run string, pieces []piece) error {
	path := filepath.Join(dir, run)
	f, err := os.OpenFile(path, os.O_RDWR|oNoFollow|oNonBlock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if pieces[0].at != 0 {
			return &lostError{run, pieces[0].at}
		}
		return recreate(disk, dir, path, pieces)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if gone, err := writerGone(f); err != nil || !gone {
		return err // as if it had never ended: it has all that it wrote
	}
	changed := false
	for _, p := range pieces {
		there := make([]byte, len(p.data))
		if n, err := f.ReadAt(there, p.at); err != nil && !errors.Is(err, io.EOF) {
			return err
		} else if n == len(there) && string(there) == string(p.data) {
			continue
		}
		if _, err := f.WriteAt(p.data, p.at); err != nil {
			return err
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return disk.SyncFile(f)
}

// recreate makes a journal of which nothing but its pieces is left.
func recreate(disk Disk, dir, path string, pieces []piece) error {
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return err
	}
	defer f.Close()
	defer os.Remove(f.Name()) //nolint:errcheck // it has another name by then, or is of no use
	for _, p := range pieces {
		if _, err := f.WriteAt(p.data, p.at); err != nil {
			return err
		}
	}
	if err := disk.SyncFile(f); err != nil {
		return err
	}
	return renameNew(f.Name(), path)
}
