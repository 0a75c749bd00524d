package bundles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// A dirReader reads a directory into memory by the rules of an archive. It
// holds a handle of each folder, never follows a link, and opens nothing that
// is not a regular file or a folder.
type dirReader struct {
	names   nameSet
	files   map[string][]byte
	entries int
	left    int64

	anyOwner bool // who may write a file is not looked at
}

// readDir reads everything below the directory that info is about. How one gets
// there is the operator's business and may be by links; below it there are none.
// Errors about what is there are [*Error] whose File is the name inside the
// directory.
func readDir(path string, info fs.FileInfo) (map[string][]byte, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := stillThat(root, "", info); err != nil {
		return nil, err
	}
	d := &dirReader{files: make(map[string][]byte), left: MaxTotal}
	if err := d.folder(root, ""); err != nil {
		return nil, err
	}
	return d.files, nil
}

func (d *dirReader) folder(root *os.Root, name string) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := checkOwner(name, f, info); err != nil {
		return err
	}
	list, err := d.list(f, name)
	if err != nil {
		return err
	}
	for _, base := range list {
		if err := d.entry(root, name, base); err != nil {
			return err
		}
	}
	return nil
}

// list returns the names in a folder, sorted.
func (d *dirReader) list(f *os.File, name string) ([]string, error) {
	var list []string
	for {
		some, err := f.Readdirnames(256)
		list = append(list, some...)
		if d.entries += len(some); d.entries > MaxEntries {
			return nil, &Error{
				File: name, Code: "archive_limit",
				Message: fmt.Sprintf("the directory holds more than %d entries", MaxEntries),
			}
		}
		if errors.Is(err, io.EOF) {
			slices.Sort(list)
			return list, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (d *dirReader) entry(root *os.Root, folder, base string) error {
	name := base
	if folder != "" {
		name = folder + "/" + base
	}
	if wrong := checkName(name); wrong != "" {
		return &Error{File: folder, Code: "entry_name", Message: "entry " + quote(name) + ": " + wrong}
	}
	info, err := root.Lstat(base)
	if err != nil {
		return err
	}
	if wrong := d.names.add(name, info.IsDir()); wrong != "" {
		return &Error{File: folder, Code: "entry_duplicate", Message: wrong}
	}
	switch {
	case info.IsDir():
		sub, err := root.OpenRoot(base)
		if err != nil {
			return err
		}
		defer sub.Close()
		if err := stillThat(sub, name, info); err != nil {
			return err
		}
		return d.folder(sub, name)
	case info.Mode().IsRegular():
		return d.file(root, name, base, info)
	}
	return &Error{
		File: name, Code: "entry_type", Message: "this is " + modeWord(info.Mode()) +
			"; a bundle holds files and folders only",
		Hint: "put the file itself there",
	}
}

// file reads the regular file that info is about. The handle is judged again:
// what was a file may be a link or a pipe by the time it is opened, and opening
// a pipe must not wait for a writer.
func (d *dirReader) file(root *os.Root, name, base string, info fs.FileInfo) error {
	f, err := root.OpenFile(base, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !now.Mode().IsRegular() || !os.SameFile(info, now) {
		return changed(name)
	}
	if !d.anyOwner {
		if err := checkOwner(name, f, now); err != nil {
			return err
		}
	}
	if wrong := checkSize(name, now.Size()); wrong != "" {
		return &Error{File: name, Code: "size", Message: wrong}
	}
	most := d.left
	if name == ManifestName {
		most = min(most, MaxManifest)
	}
	data, err := readSized(f, now.Size(), most)
	if err != nil {
		return err
	}
	d.left -= int64(len(data))
	d.files[name] = data
	return nil
}

// readSized reads all of r, which should have size bytes and may not have more
// than most.
func readSized(r io.Reader, size, most int64) ([]byte, error) {
	if size > most {
		return nil, tooLarge()
	}
	// One byte more than is there, so that the end is seen without growing.
	data := make([]byte, 0, size+1)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if int64(len(data)) > most {
			return nil, tooLarge()
		}
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// stillThat checks that an opened folder is the one that was looked at, and not
// what a link put in its place leads to.
func stillThat(root *os.Root, name string, info fs.FileInfo) error {
	now, err := root.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = changed(name)
	}
	return err
}

// codeReplaced refuses what does not stand still, as during a build.
const codeReplaced = "replaced"

func changed(name string) error {
	return &Error{
		File: name, Code: codeReplaced, Message: "this was replaced by something else while it was read",
		Hint: "try again",
	}
}

func modeWord(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsDir():
		return "a folder"
	}
	return "no regular file"
}
