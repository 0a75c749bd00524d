package bundles

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// moduleMagic begins every WebAssembly module.
const moduleMagic = "\x00asm"

// packings are what the first bytes of a file say it is. The name of the file
// says nothing.
var packings = [...]struct{ magic, what, hint string }{
	{"PK\x03\x04", "a zip file", hintTar},
	{"PK\x05\x06", "a zip file", hintTar},
	{"PK\x07\x08", "a zip file", hintTar},
	{moduleMagic, "a WebAssembly module without a bundle around it", hintModule},
	{"BZh", "a bzip2 file", hintTar},
	{"\xfd7zXZ\x00", "an xz file", hintTar},
	{"\x28\xb5\x2f\xfd", "a zstd file", hintTar},
}

const (
	hintTar    = "a bundle is a directory, a .tar or a .tar.gz"
	hintModule = "rlp launch of this machine takes it as it is; elsewhere launch what `rlp agent pack` makes of it"
	hintName   = "pack the files by their names: tar -C DIR -cf bundle.tar $(ls DIR)"
)

// readArchive reads a .tar or .tar.gz of size bytes. Errors about what it holds
// are [*Error] without a file.
func readArchive(r io.ReaderAt, size int64) (map[string][]byte, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 64<<10)
	head, err := in.Peek(8)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, p := range packings {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return nil, entryError("", "archive_format", "this is "+p.what, p.hint)
		}
	}
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		return readGzip(in, size)
	}
	files, err := readTar(&bounded{r: in, left: MaxTotal, over: tooLarge()})
	if err != nil && endsAsZip(r, size) {
		return nil, entryError("", "archive_format", "this is a zip file with something else before it", hintTar)
	}
	var no *Error
	if errors.As(err, &no) && !beginsAsTar(r) {
		return nil, entryError("", no.Code, noBundle, "")
	}
	return files, err
}

// noBundle is said of a file that is nothing of what is launched.
const noBundle = "this is neither a WebAssembly module nor a bundle (a folder with manifest.toml, or a .tar or " +
	".tar.gz of one)"

// beginsAsTar reports whether a file begins with the header of an entry, or as an
// archive of none.
func beginsAsTar(r io.ReaderAt) bool {
	var b [blockSize]byte
	_, err := r.ReadAt(b[:], 0)
	return (err == nil || errors.Is(err, io.EOF)) && (checksumHolds(&b) || err == nil && isZero(b[:]))
}

// readGzip reads one gzip member that holds an archive. A second member would
// be seen by some readers and not by others.
func readGzip(in *bufio.Reader, size int64) (map[string][]byte, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, gzipError(err)
	}
	z.Multistream(false)
	limit := &bounded{r: z, left: MaxTotal, over: tooLarge()}
	if size < MaxTotal/MaxRatio {
		limit.left = size * MaxRatio
		limit.over = entryError("", "archive_limit", fmt.Sprintf("the archive unpacks to more than %d times its size",
			MaxRatio), "")
	}
	files, err := readTar(limit)
	if err != nil {
		return nil, gzipError(err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, err
		}
		return nil, entryError("", "archive_trailing",
			"there is data, or another gzip member, behind the end of the gzip member", "")
	}
	return files, nil
}

func gzipError(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return entryError("", "archive_truncated", "the archive is cut short", "")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return entryError("", "archive_format", "the gzip data is damaged", "")
	}
	return err
}

// endsAsZip reports whether a zip reader, which begins at the end of a file,
// would take this one for a zip.
func endsAsZip(r io.ReaderAt, size int64) bool {
	const longest = 22 + 1<<16
	tail := make([]byte, min(size, longest))
	n, _ := r.ReadAt(tail, size-int64(len(tail)))
	return bytes.Contains(tail[:n], []byte("PK\x05\x06"))
}

// A bounded reader fails, with an error of its own, once more than left bytes
// come out of r.
type bounded struct {
	r    io.Reader
	left int64
	over error
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		b.left = 0
		return 0, b.over
	}
	return n, err
}

// entryError refuses an archive for one of its entries, or for itself if name
// is empty.
func entryError(name, code, message, hint string) error {
	if name != "" {
		message = "entry " + quote(name) + ": " + message
	}
	return &Error{Code: code, Message: message, Hint: hint}
}

// quote makes a name from a bundle safe to print and short.
func quote(name string) string {
	const most = 80
	if len(name) > most {
		return strconv.QuoteToASCII(name[:most]) + "..."
	}
	return strconv.QuoteToASCII(name)
}

func tooLarge() error {
	return entryError("", "archive_limit", fmt.Sprintf("the bundle holds more than %d MiB", MaxTotal>>20), "")
}

// checkSize says why a file of a name may not be as large as it is, or "".
func checkSize(name string, size int64) string {
	switch {
	case name == ManifestName && size > MaxManifest:
		return fmt.Sprintf("the manifest has %d bytes; at most %d are read", size, MaxManifest)
	case size > MaxTotal:
		return fmt.Sprintf("the file has %d bytes; a bundle holds at most %d", size, MaxTotal)
	}
	return ""
}
