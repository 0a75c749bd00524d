// Package state is what is known of a store that nobody opens for it: that its
// files are as their last owner left them, or why it could not be opened.
//
// Who opens or closes a store notes it, with a digest of the names, sizes and
// times of its files, while it holds the store's lock. Whoever finds the files
// otherwise knows nothing, and must open the store to know more.
package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/strictjson"
)

// A Place is where the store of a tenant lies, and what there is beside it.
type Place struct {
	Dir          string // its database
	Run          string // the folder of its socket and lock, and of the note
	Socket, Lock string
	note         string
}

// Of is the place of a tenant's store in the home dir; root is the folder of the
// tenant.
func Of(dir, root, tenant string) Place {
	// The name is short, for the path of a socket may not be long.
	name := "kb"
	if tenant != home.DefaultTenant {
		sum := sha256.Sum256([]byte(tenant))
		name = "kb-" + hex.EncodeToString(sum[:6])
	}
	run := filepath.Join(dir, "run")
	at := filepath.Join(run, name)
	return Place{Dir: filepath.Join(root, "kb"), Run: run, Socket: at + ".sock", Lock: at + ".lock", note: at + ".state"}
}

// A Known is what is known of a store.
type Known struct {
	// Changed: its files are not as they were when it was noted last, so that
	// nothing is known.
	Changed bool
	// None: there are no files. Gone: there were some when it was noted last.
	None, Gone bool
	// Bytes is how large they are together.
	Bytes int64
	// Failed is why it could not be opened; "": it could. At is when.
	Failed string
	At     time.Time
}

// LostFile is there from when a store was begun in the place of one that was removed,
// until a backup is restored or the operator removes it: what was recorded in the
// first store stays missed, whoever opens the second one.
func (p Place) LostFile() string { return strings.TrimSuffix(p.note, ".state") + ".lost" }

// Lost reports whether the store was begun in the place of another.
func (p Place) Lost() bool {
	_, err := os.Lstat(p.LostFile())
	return err == nil
}

// Lose notes that a store is begun in the place of another. The caller holds the lock.
func (p Place) Lose(at time.Time) error {
	return os.WriteFile(p.LostFile(), []byte(at.UTC().Format(time.RFC3339)+"\n"), 0o600)
}

// Found says that what was lost is there again.
func (p Place) Found() error {
	if err := os.Remove(p.LostFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// note is the content of the file of a note.
type note struct {
	Files  string    `json:"files"`
	Failed string    `json:"failed,omitempty"`
	At     time.Time `json:"at"`
}

// maxNote bounds a note, in bytes.
const maxNote = 16 << 10

// manifest is the file that a database has from its beginning.
const manifest = "MANIFEST"

// Look says what is known of the store. Where there is none, nothing is wrong.
func (p Place) Look() (Known, error) {
	files, size, err := p.files()
	if err != nil {
		return Known{}, err
	}
	k := Known{None: files == "", Bytes: size}
	if _, err := os.Lstat(filepath.Join(p.Dir, manifest)); !k.None && errors.Is(err, fs.ErrNotExist) {
		k.Changed, k.Failed = true, filepath.Join(p.Dir, manifest)+" is gone, and other files of the database are there"
		return k, nil
	}
	n, err := p.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.Changed = !k.None
	case err != nil || n.Files != files: // a note that cannot be read says nothing but that there was a store
		k.Changed, k.Gone = true, k.None
	default:
		k.Failed, k.At = n.Failed, n.At
	}
	return k, nil
}

func (p Place) read() (n note, err error) {
	f, err := os.OpenFile(p.note, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return n, err
	}
	defer f.Close()
	return n, strictjson.Decode(f, maxNote, &n)
}

// Note notes the files as they are now, and why the store could not be opened; ""
// says that it was closed in order. The caller holds the lock.
func (p Place) Note(failed string, at time.Time) error {
	files, _, err := p.files()
	if err != nil {
		return err
	}
	text, err := json.Marshal(note{files, failed[:min(len(failed), maxNote/8)], at})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(p.Run, ".state-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), p.note)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// files is the digest of what the files of the database look like from outside;
// "" where there are none; and how large they are together.
func (p Place) files() (digest string, size int64, err error) {
	entries, err := os.ReadDir(p.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	var list bytes.Buffer
	for _, e := range entries {
		name := e.Name()
		switch ext := filepath.Ext(name); {
		case ext == ".sst", ext == ".vlog", ext == ".mem", name == manifest, name == "KEYREGISTRY", name == "DISCARD":
		default:
			continue // the database's lock, and what is no part of it
		}
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(p.Dir, name), &st); err != nil {
			return "", 0, &os.PathError{Op: "lstat", Path: filepath.Join(p.Dir, name), Err: err}
		}
		size += st.Size
		fmt.Fprintf(&list, "%s %d %d %v %v\n", strings.ToValidUTF8(name, "?"), st.Size, st.Ino, st.Mtim, st.Ctim)
	}
	if list.Len() == 0 {
		return "", 0, nil
	}
	sum := sha256.Sum256(list.Bytes())
	return hex.EncodeToString(sum[:]), size, nil
}

// Owned reports whether somebody has the store open.
func (p Place) Owned() (bool, error) {
	f, err := os.OpenFile(p.Lock, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
