package bundles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxMeta bounds the data of an entry that only names the next one.
const maxMeta = 64 << 10

// firstAlloc is what an entry's claim about its size allocates at once; beyond
// it memory grows with the bytes that are really there.
const firstAlloc = 4 << 20

// A tarReader reads an archive into memory. It is not archive/tar: that package
// accepts what a usual archive may hold, and this one only what every reader
// takes for the same files. Fuzzing holds it to that: what this one accepts,
// archive/tar does not read as other names or bytes.
type tarReader struct {
	r       io.Reader
	names   nameSet
	files   map[string][]byte
	entries int
	at      string // name of the entry being read, for errors
}

// readTar reads an archive up to and including the zeros behind its end. Errors
// are [*Error] without a file, or those of r.
func readTar(r io.Reader) (map[string][]byte, error) {
	t := &tarReader{r: r, files: make(map[string][]byte)}
	for {
		more, err := t.entry()
		if err != nil {
			return nil, err
		}
		if !more {
			return t.files, nil
		}
	}
}

// entry reads one file or folder together with the headers that name it, or the
// end of the archive.
func (t *tarReader) entry() (more bool, err error) {
	long := ""
	for {
		h, end, err := t.header()
		if err != nil {
			return false, err
		}
		if end {
			if long != "" {
				return false, t.refuse("archive_format", "the archive ends behind the header of an entry", "")
			}
			return false, nil
		}
		if h.kind == typePax || h.kind == typeGNUName {
			if long != "" {
				return false, t.refuse("archive_format", "an entry has more than one extended header", "")
			}
			if long, err = t.longName(h); err != nil {
				return false, err
			}
			continue
		}
		if long != "" && long != onlyAttributes {
			h.name = long
		}
		return true, t.take(h)
	}
}

// onlyAttributes stands for an extended header that gives no name. It is no
// name that an entry could have.
const onlyAttributes = "/"

func (t *tarReader) longName(h header) (string, error) {
	if h.size > maxMeta {
		return "", t.refuse("archive_format", fmt.Sprintf("an extended header has %d bytes; at most %d are read", h.size,
			maxMeta), "")
	}
	data, err := t.data(h.size)
	if err != nil {
		return "", err
	}
	name, wrong := "", ""
	if h.kind == typePax {
		name, wrong = parsePax(data)
	} else {
		name, wrong = parseGNUName(data)
	}
	if wrong != "" {
		return "", t.refuse("archive_format", wrong, "")
	}
	if name == "" {
		return onlyAttributes, nil
	}
	return name, nil
}

func (t *tarReader) take(h header) error {
	if t.entries++; t.entries > MaxEntries {
		return t.refuse("archive_limit", fmt.Sprintf("the archive has more than %d entries", MaxEntries), "")
	}
	t.at = h.name
	dir := h.kind == typeDir
	if !dir && h.kind != typeFile && h.kind != typeFileOld {
		return t.refuse("entry_type", refusedType(h.kind)+" in a bundle, which holds files and folders only", "")
	}
	name := h.name
	if dir {
		if n := len(name); n > 1 && name[n-1] == '/' {
			name = name[:n-1]
		}
		if h.size != 0 {
			return t.refuse("archive_format", "a folder with data", "")
		}
	}
	if wrong := checkName(name); wrong != "" {
		return t.refuse("entry_name", wrong, nameHint(name))
	}
	if wrong := t.names.add(name, dir); wrong != "" {
		return t.refuse("entry_duplicate", wrong, "")
	}
	if dir {
		return nil
	}
	if wrong := checkSize(name, h.size); wrong != "" {
		return t.refuse("size", wrong, "")
	}
	data, err := t.data(h.size)
	if err != nil {
		return err
	}
	t.files[name] = data
	return nil
}

// header reads the next header; end is true behind the two zero blocks and the
// zeros that may follow them.
func (t *tarReader) header() (h header, end bool, err error) {
	t.at = ""
	var b [blockSize]byte
	if err := t.full(b[:]); err != nil {
		return h, false, err
	}
	if b == [blockSize]byte{} {
		if err := t.full(b[:]); err != nil {
			return h, false, err
		}
		if b != [blockSize]byte{} {
			return h, false, t.refuse("archive_trailing", "there is data behind the end of the archive", "")
		}
		return h, true, t.padding()
	}
	h, wrong := parseHeader(&b)
	if wrong != "" {
		return h, false, t.refuse("archive_format", wrong, "")
	}
	return h, false, nil
}

// padding reads what is left, which must be zeros.
func (t *tarReader) padding() error {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.r.Read(buf)
		if !isZero(buf[:n]) {
			return t.refuse("archive_trailing", "there is data behind the end of the archive", "")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return t.cut(err)
		}
	}
}

// data reads the data of an entry and the zeros that fill its last block.
func (t *tarReader) data(size int64) ([]byte, error) {
	data, err := t.exactly(size)
	if err != nil {
		return nil, err
	}
	var fill [blockSize]byte
	rest := fill[:(blockSize-size%blockSize)%blockSize]
	if err := t.full(rest); err != nil {
		return nil, err
	}
	if !isZero(rest) {
		return nil, t.refuse("archive_format", "there is data behind its end", "")
	}
	return data, nil
}

func (t *tarReader) exactly(size int64) ([]byte, error) {
	if size <= firstAlloc {
		data := make([]byte, size)
		return data, t.full(data)
	}
	var buf bytes.Buffer
	buf.Grow(firstAlloc)
	if _, err := io.CopyN(&buf, t.r, size); err != nil {
		return nil, t.cut(err)
	}
	return buf.Bytes(), nil
}

func (t *tarReader) full(b []byte) error {
	if _, err := io.ReadFull(t.r, b); err != nil {
		return t.cut(err)
	}
	return nil
}

func (t *tarReader) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return t.refuse("archive_truncated", "the archive is cut short", "")
	}
	return err
}

// refuse makes an error about the entry being read.
func (t *tarReader) refuse(code, message, hint string) error {
	return entryError(t.at, code, message, hint)
}

// nameHint helps with archives that were made of ".", whose names all begin
// with "./".
func nameHint(name string) string {
	if name == "." || strings.HasPrefix(name, "./") {
		return hintName
	}
	return ""
}
